"""`Cascade`: many episodes of the diffusion on one graph, one kernel call per step."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.backends import LanesBackend, PushBackend, choose_backend
from rapo.cascade.clock import (
    CLOCK,
    EPISODE_KEY,
    FOREVER,
    GATED,
    HORIZONS,
    INJECTING,
    PHASE,
    PHASE_KEY,
    STIMULUS,
    TAGS,
    first_unknown,
)
from rapo.cascade.graph import Graph
from rapo.cascade.injection import injection_rates
from rapo.cascade.regions import make_regions
from rapo.cascade.rng import derive
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY, Setting
from rapo.cascade.stats import STATS
from rapo.core.deformation import Scope
from rapo.core.params import FieldParams

__all__ = ["STATS", "Cascade"]

_STATE = ("active", "G", "H", "affected", "clock", "phase", "stimulus", "keys")


class Cascade:
    """The engine: active sets, fields, delayed harm and schedule of `episodes` episodes.

    A trajectory depends on its key, stimulus and actions alone: not on the number of episodes, the
    threads or the backend.

    Args:
        graph: the network.
        episodes: how many run side by side, >= 1.
        setting: open choices of the platform; default `Setting.default()`.
        params: constants of the fields.
        regions: spec or (n,) array, see `make_regions`; default `setting.regions`.
        deformation: `full`, `off`, `topk:<k>`, `local[:<share>]` or a `Scope`.
        deform_phases: in which of exposure, decay, replay the kernel is deformed.
        coupled: whether Replay reuses the draws of Exposure.
        scheduled: whether phases follow `setting.horizons`; else the caller moves them on.
        credit: (n,) region to which the harm of a sensitive node is credited; default its own.
        backend: `lanes`, `push` or `auto`.
        threads: threads over the episodes, >= 1.
    """

    def __init__(
        self,
        graph: Graph,
        episodes: int,
        *,
        setting: Setting | None = None,
        params: FieldParams | None = None,
        regions: str | npt.ArrayLike | None = None,
        deformation: str | Scope = "full",
        deform_phases: tuple[bool, bool, bool] = (True, True, True),
        coupled: bool = False,
        scheduled: bool = True,
        credit: npt.ArrayLike | None = None,
        backend: str = "auto",
        threads: int = 1,
    ) -> None:
        for name, value in (("episodes", episodes), ("threads", threads)):
            if int(value) != value or value < 1:
                raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
        self.graph = graph
        self.episodes = int(episodes)
        self.setting = Setting.default() if setting is None else setting
        self.params = FieldParams() if params is None else params
        self.scope = Scope.parse(deformation)
        self.regions = make_regions(
            self.setting.regions if regions is None else regions,
            graph,
            straddle=self.setting.straddle,
        )
        self.region_count = int(self.regions.max()) + 1
        self.rates = injection_rates(graph, self.setting)
        self.credit = self.regions if credit is None else self._checked_credit(credit)
        self.live = np.unique(self.credit[graph.sensitive])
        """(R_live,) regions that can ever carry harm; the fields of all others stay 0."""
        self.designated = self._designate()
        gated = [self.scope.kind != "off" and bool(phase) for phase in deform_phases]
        if len(gated) != 3:
            raise ValueError(f"deform_phases needs three truth values, got {deform_phases}")
        self._schedule = np.zeros((3, 3), np.int64)
        self._schedule[HORIZONS] = self.setting.horizons if scheduled else FOREVER
        self._schedule[TAGS] = (0, 1, 0) if coupled else (0, 1, 2)
        self._schedule[GATED] = gated
        self.threads = int(threads)
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        kind = choose_backend(backend, self)
        self._backend = (LanesBackend if kind == "lanes" else PushBackend)(self)
        self._episode = np.zeros((4, self._backend.rows), np.int64)
        self._keys = np.zeros((2, self._backend.rows), np.uint64)
        self._slot = 0

    @property
    def backend(self) -> str:
        """Name of the backend in use."""
        return self._backend.name

    @property
    def coupled(self) -> bool:
        """Whether Replay reuses the draws of Exposure."""
        return bool(self._schedule[TAGS, REPLAY] == self._schedule[TAGS, EXPOSURE])

    @property
    def clock(self) -> npt.NDArray[np.int64]:
        """(E,) step within the present phase."""
        return self._episode[CLOCK, : self.episodes].copy()

    @property
    def phase(self) -> npt.NDArray[np.int64]:
        """(E,) present phase: 0 exposure, 1 decay, 2 replay."""
        return self._episode[PHASE, : self.episodes].copy()

    @property
    def stimulus(self) -> npt.NDArray[np.int64]:
        """(E,) stimulus of the episode, 1-based; 0 before it is started."""
        return self._episode[STIMULUS, : self.episodes].copy()

    @property
    def keys(self) -> npt.NDArray[np.uint64]:
        """(E,) key of the present phase: its draws are `rng.uniform(key, clock, node)`."""
        return self._keys[PHASE_KEY, : self.episodes].copy()

    @property
    def active(self) -> npt.NDArray[np.bool_]:
        """(E, n) the active set A_t."""
        return self._backend.read_active()

    @property
    def G(self) -> npt.NDArray[np.float32]:
        """(E, regions) harm trace."""
        return self._spread(self._backend.read_field(0))

    @property
    def H(self) -> npt.NDArray[np.float32]:
        """(E, regions) scar."""
        return self._spread(self._backend.read_field(1))

    def start(
        self,
        keys: npt.ArrayLike,
        stimuli: npt.ArrayLike,
        episodes: npt.ArrayLike | None = None,
        *,
        keep_memory: bool = False,
    ) -> None:
        """Begin new RSD episodes: empty active set, Exposure at clock 0, memory forgotten.

        Args:
            keys: uint64 keys, one per started episode.
            stimuli: 1-based stimulus of each.
            episodes: indices to start; default all.
            keep_memory: leave fields and delay buffer as they are.
        """
        rows = self._rows(episodes)
        z = self._checked_stimuli(stimuli, len(rows))
        k = np.broadcast_to(np.asarray(keys, np.uint64), (len(rows),))
        self._episode[STIMULUS, rows] = z
        self._keys[EPISODE_KEY, rows] = k
        if not keep_memory:
            self._backend.clear_memory(rows)
        self._enter(rows, EXPOSURE, clear=True)

    def enter(
        self,
        phase: int,
        episodes: npt.ArrayLike | None = None,
        *,
        stimuli: npt.ArrayLike | None = None,
    ) -> None:
        """Move episodes to the start of a phase; memory stays.

        Exposure and Replay reset the observable state and switch the stimulus on, Decay only
        switches it off. `stimuli` replaces the stimulus (1-based).
        """
        if phase not in (EXPOSURE, DECAY, REPLAY):
            raise ValueError(f"phase must be 0, 1 or 2, got {phase!r}")
        rows = self._rows(episodes)
        if stimuli is not None:
            self._episode[STIMULUS, rows] = self._checked_stimuli(stimuli, len(rows))
        self._enter(rows, phase, clear=phase != DECAY)

    def step(self, actions: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """One step of every episode.

        Args:
            actions: (E,) in {0 aggressive, 1 moderate, 2 conservative}.

        Returns:
            (len(STATS), E) what the step did, rows named by `STATS`.
        """
        return np.asarray(self.run(actions, 1)[0])

    def run(self, actions: npt.ArrayLike, steps: int) -> npt.NDArray[np.float32]:
        """`steps` steps with constant actions in one call; (steps, len(STATS), E)."""
        if steps < 1:
            raise ValueError(f"steps must be >= 1, got {steps}")
        chosen = self._checked_actions(actions)
        trace = np.empty((steps, len(STATS), self._backend.rows), np.float32)
        shared = (self._slot, self._schedule, self._episode, self._keys, chosen, trace)
        if self._pool is None:
            self._backend.run(0, 1, steps, *shared)
        else:
            jobs = [
                self._pool.submit(self._backend.run, i, self.threads, steps, *shared)
                for i in range(self.threads)
            ]
            for job in jobs:
                job.result()
        self._backend.finish(steps)
        self._slot = (self._slot + steps) % self.setting.delay
        return trace[:, :, : self.episodes]

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that evolves, as plain arrays that any backend can restore.

        `affected` is (D, E, R_live), the oldest entry of the delay buffer first.
        """
        ring = self._backend.read_ring()
        return {
            "active": self.active,
            "G": self._backend.read_field(0),
            "H": self._backend.read_field(1),
            "affected": np.roll(ring, -self._slot, axis=0),
            "clock": self.clock,
            "phase": self.phase,
            "stimulus": self.stimulus,
            "keys": self._keys[:, : self.episodes].copy(),
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a `snapshot` of an engine with the same graph, regions, delay and episodes."""
        mine = self.snapshot()
        if set(state) != set(_STATE):
            raise ValueError(f"a snapshot has {sorted(_STATE)}, got {sorted(state)}")
        arrays = {name: np.asarray(state[name]) for name in _STATE}
        for name, array in arrays.items():
            if array.shape != mine[name].shape:
                raise ValueError(
                    f"{name} must have shape {mine[name].shape}, got {array.shape}; restore into "
                    "an engine of the same graph, regions, delay and episodes"
                )
        for name in ("G", "H", "affected"):
            if not np.all((arrays[name] >= 0) & np.isfinite(arrays[name])):
                raise ValueError(f"{name} must be finite and >= 0")
        z, phase = arrays["stimulus"], arrays["phase"]
        if np.any((z < 0) | (z > self.graph.stimuli)) or np.any((phase < 0) | (phase > REPLAY)):
            raise ValueError(f"stimulus must be 0..{self.graph.stimuli} and phase 0..2")
        self._slot = 0
        self._backend.write(arrays["active"], arrays["G"], arrays["H"], arrays["affected"])
        rows = slice(0, self.episodes)
        self._episode[CLOCK, rows] = arrays["clock"]
        self._episode[PHASE, rows] = phase
        self._episode[STIMULUS, rows] = z
        self._episode[INJECTING] = 0
        self._keys[:, rows] = arrays["keys"]

    def _enter(self, rows: npt.NDArray[np.int64], phase: int, *, clear: bool) -> None:
        self._episode[PHASE, rows] = phase
        self._episode[CLOCK, rows] = 0
        self._keys[PHASE_KEY, rows] = derive(
            self._keys[EPISODE_KEY, rows], self._schedule[TAGS, phase]
        )
        if clear:
            self._backend.clear_active(rows)

    def _rows(self, episodes: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
        if episodes is None:
            return np.arange(self.episodes)
        rows = np.atleast_1d(np.asarray(episodes))
        if rows.dtype == np.bool_ and rows.shape == (self.episodes,):
            return np.flatnonzero(rows)
        if not np.issubdtype(rows.dtype, np.integer) or np.any(
            (rows < 0) | (rows >= self.episodes)
        ):
            raise ValueError(f"episodes must be indices 0..{self.episodes - 1}, got {episodes!r}")
        return rows.astype(np.int64)

    def _checked_stimuli(self, stimuli: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
        z = np.asarray(stimuli)
        if (
            z.shape not in ((), (count,))
            or not np.issubdtype(z.dtype, np.integer)
            or np.any((z < 1) | (z > self.graph.stimuli))
        ):
            raise ValueError(
                f"stimulus must be in 1..{self.graph.stimuli}, one per episode, got {stimuli!r}"
            )
        return np.broadcast_to(z, (count,)).astype(np.int64)

    def _checked_actions(self, actions: npt.ArrayLike) -> npt.NDArray[np.int64]:
        given = np.asarray(actions)
        if given.shape not in ((), (self.episodes,)) or given.dtype.kind not in "iu":
            raise ValueError(
                f"actions must be whole numbers of shape ({self.episodes},), got {given.dtype} "
                f"{given.shape}"
            )
        if given.dtype == np.int64 and given.shape == (self._backend.rows,):
            chosen = np.ascontiguousarray(given)
        else:
            chosen = np.zeros(self._backend.rows, np.int64)
            chosen[: self.episodes] = given
        bad = first_unknown(chosen)
        if bad >= 0:
            raise ValueError(f"actions must be 0, 1 or 2, got {chosen[bad]} for episode {bad}")
        return chosen

    def _checked_credit(self, credit: npt.ArrayLike) -> npt.NDArray[np.int32]:
        array = np.asarray(credit)
        if array.shape != (self.graph.n,) or array.dtype.kind not in "iu":
            raise ValueError(f"credit must name a region for each of {self.graph.n} nodes")
        if array.min() < 0 or array.max() >= self.region_count:
            raise ValueError(
                f"credit must name regions 0..{self.region_count - 1}, got "
                f"{array.min()}..{array.max()}"
            )
        return array.astype(np.int32)

    def _designate(self) -> npt.NDArray[np.bool_]:
        """Which live regions may be deformed: all, or the share of a `local` scope."""
        designated = np.ones(len(self.live), np.bool_)
        if self.scope.kind == "local":
            order = np.random.default_rng(0).permutation(len(self.live))
            designated[order[int(np.ceil(self.scope.share * len(self.live))) :]] = False
        return designated

    def _spread(self, field: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        whole = np.zeros((self.episodes, self.region_count), np.float32)
        whole[:, self.live] = field
        return whole
