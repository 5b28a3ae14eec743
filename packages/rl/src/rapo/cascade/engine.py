"""`Cascade`: many episodes of the diffusion on one graph, one kernel call per step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo.cascade.backends import LanesBackend, PushBackend, choose_backend
from rapo.cascade.graph import Graph
from rapo.cascade.harm_history import HarmHistory
from rapo.cascade.injection import injection_rates
from rapo.cascade.kernel_arrays import FRAMES, constants_of
from rapo.cascade.phases import (
    CLOCK,
    ENTRIES,
    EPISODE_KEY,
    GATED,
    INJECTING,
    PHASE,
    PHASE_KEY,
    RECORDING,
    SLOT,
    STIMULUS,
    TAGS,
    PhasedEpisodes,
    Whole,
    enter_phases,
    schedule_of,
)
from rapo.cascade.regions import RegionSpec, make_regions
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY, Setting
from rapo.cascade.stats import COUNT, STATS
from rapo_core.bits import unpacked
from rapo_core.checks import (
    UserError,
    check_episodes,
    checked_actions,
    checked_active,
    checked_harm_regions,
    checked_keys,
    checked_phases,
    checked_state,
    checked_stimuli,
    need_kind,
    truth,
    whole_number,
)
from rapo_core.deformation import Scope
from rapo_core.params import FieldParams, single_precision

__all__ = ["STATS", "Cascade"]


_WHOLE, _SINGLE = np.dtype(np.int64), np.dtype(np.float32)


class Activity(NamedTuple):
    """Which nodes were active in some steps of an engine."""

    visits: npt.NDArray[np.int64]
    """(n,) in how many steps of all episodes a node was active."""
    ever: npt.NDArray[np.bool_]
    """(E, n) whether a node was active in any step."""
    first: npt.NDArray[np.bool_]
    """(T, n) the active sets of the first episode after each step."""


class Cascade(PhasedEpisodes):
    """The engine: active sets, fields, delayed harm and schedule of `episodes` episodes.

    A trajectory depends on its key, stimulus and actions alone. The number of episodes, the threads
    and the backend change nothing.

    Args:
        graph: the network.
        episodes: how many run side by side, >= 1.
        setting: choices that the paper leaves open; default `Setting.default()`.
        params: constants of the fields; default those of the setting.
        regions: spec, (n,) array or callable, see `make_regions`; default `setting.regions`.
        deformation: `full`, `off`, `topk:<k>`, `local[:<share>]` or a `Scope`.
        deform_phases: in which of exposure, decay, replay the kernel is deformed.
        coupled: whether Replay reuses the draws of Exposure.
        scheduled: whether phases follow `setting.horizons`; otherwise the caller begins them.
        harm_region_of: (n,) region that receives the harm of a sensitive node; default its own.
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
        regions: RegionSpec | None = None,
        deformation: str | Scope = "full",
        deform_phases: tuple[bool, bool, bool] = (True, True, True),
        coupled: bool = False,
        scheduled: bool = True,
        harm_region_of: npt.ArrayLike | None = None,
        backend: str = "auto",
        threads: int = 1,
    ) -> None:
        self.graph = need_kind("graph", graph, Graph)
        self.episodes = whole_number("episodes", episodes, 1)
        self.threads = whole_number("threads", threads, 1)
        setting = Setting.default() if setting is None else setting
        self.setting = need_kind("setting", setting, Setting)
        self.params = single_precision(self.setting.params if params is None else params)
        self.scope = Scope.parse(deformation)
        self.regions = make_regions(
            self.setting.regions if regions is None else regions,
            graph,
            straddle=self.setting.straddle,
        )
        self.region_count = int(self.regions.max()) + 1
        self.rates = injection_rates(graph, self.setting)
        self.harm_region_of = self.regions
        if harm_region_of is not None:
            self.harm_region_of = checked_harm_regions(harm_region_of, graph.n, self.region_count)
        self.harm_regions = np.unique(self.harm_region_of[graph.sensitive])
        """(R,) regions that can ever carry harm; the fields of all other regions stay 0."""
        self.gated_regions = self.scope.gated_regions(len(self.harm_regions))
        """(R,) which of the harm regions may be deformed."""
        phases = checked_phases(deform_phases)
        self._schedule = schedule_of(
            self.setting.horizons if truth("scheduled", scheduled) else None,
            coupled=truth("coupled", coupled),
            gated=[phase and self.scope.kind != "off" for phase in phases],
        )
        self._history: HarmHistory | None = None
        if self.setting.harm is not None:
            args = (self.episodes, graph.n, self.setting.delay)
            self._history = HarmHistory(self.setting.harm, *args)
        self._frames: list[npt.NDArray[np.uint64]] | None = None
        self._pool: ThreadPoolExecutor | None = None
        kind = choose_backend(backend, self)
        self._backend = (LanesBackend if kind == "lanes" else PushBackend)(self, self._schedule)
        self._episode, self._keys = self._backend.episode, self._backend.keys
        self._shape = (self.episodes,)
        self._room = (COUNT, self._backend.rows)
        self._unpadded = self._backend.rows == self.episodes

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
    def spent(self) -> npt.NDArray[np.bool_]:
        """(E, n) nodes that were active in this phase and try no neighbours any more.

        Under `outbreak` they are not active, under `cascade` they are; under `contact` none is.
        """
        return self._backend.read_spent()

    @property
    def G(self) -> npt.NDArray[np.float32]:
        """(E, regions) harm trace."""
        return self._all_regions(self._backend.read_field(0))

    @property
    def H(self) -> npt.NDArray[np.float32]:
        """(E, regions) scar."""
        return self._all_regions(self._backend.read_field(1))

    def place(self, active: npt.ArrayLike, episodes: npt.ArrayLike | None = None) -> None:
        """Put started episodes into the observable states `active`; clock, draws and memory stay.

        Args:
            active: bool, a row of n nodes for each placed episode.
            episodes: indices to place; default all.
        """
        rows = self.rows_of(episodes)
        states = checked_active(active, len(rows), self.graph.n)
        idle = rows[self._episode[STIMULUS, rows] == 0]
        if len(idle):
            raise UserError(f"episodes {idle[:5].tolist()} are not started; call start() first")
        self._backend.write_active(rows, states)

    def set_deformation(self, on: bool) -> None:
        """Deform the kernel in all phases, or in none; the fields evolve either way."""
        self._schedule[GATED] = truth("on", on) and self.scope.kind != "off"

    def set_params(self, params: FieldParams) -> None:
        """Take other constants of the fields from the next step on; the state stays."""
        self.params = single_precision(params)
        self._backend.constants[:] = constants_of(self.params, self.setting.persistence)

    def reweight(self, graph: Graph) -> None:
        """Take the probabilities of a graph that differs in them alone; start all episodes anew."""
        kept = ("indptr", "indices", "sensitive", "support", "weights")
        if not all(np.array_equal(getattr(graph, n), getattr(self.graph, n)) for n in kept):
            raise UserError(
                "reweight() takes a graph with the edges, V_sens and stimuli of this one"
            )
        self.graph, self.rates = graph, injection_rates(graph, self.setting)
        self._backend.reweight(graph.prob, self.rates)
        self.__dict__.pop("_layout", None)

    def step(self, actions: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """One step of every episode.

        Args:
            actions: (E,) in {0 aggressive, 1 moderate, 2 conservative}.

        Returns:
            (len(STATS), E) statistics of the step, rows named by `STATS`.
        """
        if not (  # the form that agents pass: 100 ns are a fiftieth of a step of 64 episodes
            type(actions) is np.ndarray
            and actions.dtype is _WHOLE
            and actions.shape == self._shape
            and actions.flags.carray
        ):
            actions = checked_actions(actions, self.episodes, self._shape)
        trace = np.empty(self._room, _SINGLE)
        self._run(actions, trace)
        return trace if self._unpadded else trace[:, : self.episodes]

    def run(self, actions: npt.ArrayLike, steps: int) -> npt.NDArray[np.float32]:
        """Run `steps` steps in one call; return (steps, len(STATS), E) statistics.

        Args:
            actions: (E,) for all steps, or (steps, E).
            steps: number of steps, >= 1.
        """
        steps = whole_number("steps", steps, 1)
        each_step = (steps, self.episodes)
        checked = checked_actions(actions, self.episodes, self._shape, each_step)
        trace = np.empty((steps, *self._room), _SINGLE)
        most = steps if self._frames is None else FRAMES
        for first in range(0, steps, most):
            part = checked if checked.ndim == 1 else checked[first : first + most]
            self._run(part.reshape(-1), trace[first : first + most].reshape(-1, self._room[1]))
        return trace[:, :, : self.episodes]

    def _run(self, actions: npt.NDArray[np.int64], trace: npt.NDArray[np.float32]) -> None:
        """Fill the trace, (steps * len(STATS), rows); an unknown action is an error."""
        if self._history is None:
            self._run_kernel(actions, trace)
            return
        each_step = actions.reshape(-1, self.episodes)
        for step in range(len(trace) // COUNT):
            now = each_step[step % len(each_step)]
            harm = self._history.next_harm(self.active, now)
            self._backend.own_harm[: self.episodes] = harm
            self._run_kernel(now, trace[step * COUNT : (step + 1) * COUNT])

    def _run_kernel(self, actions: npt.NDArray[np.int64], trace: npt.NDArray[np.float32]) -> None:
        """`_run` where no harm function needs to see every step."""
        backend = self._backend
        if self.threads == 1:
            bad = backend.run(0, actions, trace)
        else:
            self._pool = self._pool or ThreadPoolExecutor(self.threads)
            jobs = [self._pool.submit(backend.run, i, actions, trace) for i in range(self.threads)]
            bad = max(job.result() for job in jobs)
        if bad >= 0:
            raise UserError(
                f"actions must be 0, 1 or 2, got {actions[bad]} for episode {bad % self.episodes}"
            )
        if self._frames is not None:
            self._frames.append(backend.frames[: len(trace) // COUNT].copy())

    def record_activity(self) -> None:
        """Record from now on which nodes are active; an earlier record is forgotten."""
        backend = self._backend
        backend.visits[:], backend.ever[:], self._frames = 0, 0, []
        for thread_state in backend.thread_states:
            thread_state[RECORDING] = 1

    def read_activity(self) -> Activity:
        """Return the record since `record_activity`, and end it."""
        backend = self._backend
        for thread_state in backend.thread_states:
            thread_state[RECORDING] = 0
        frames = np.concatenate(self._frames or [backend.frames[:0]])
        self._frames = None
        first = unpacked(frames, self.graph.n)
        return Activity(backend.visits.sum(axis=0), backend.read_ever(), first)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that evolves, as plain arrays that any backend can restore.

        `affected` is (D, E, R) over the harm regions, the oldest entry of the delay buffer first.
        """
        ring = self._backend.read_ring()
        return {
            "active": self.active,
            "spent": self.spent,
            "G": self._backend.read_field(0),
            "H": self._backend.read_field(1),
            "affected": np.roll(ring, -self._backend.thread_states[0][SLOT], axis=0),
            "clock": self.clock,
            "phase": self.phase,
            "stimulus": self.stimulus,
            "entries": self._episode[ENTRIES:, : self.episodes].copy(),
            "keys": self._keys[:, : self.episodes].copy(),
            "layout": np.array(self._layout),
            **({} if self._history is None else self._history.snapshot()),
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a `snapshot` of an engine with the same graph, regions, delay and episodes."""
        arrays = checked_state(state, self.snapshot())
        if str(arrays["layout"]) != self._layout:
            raise UserError(
                "the snapshot is of another graph, other regions or harm regions; restore "
                "it into an engine built alike"
            )
        check_episodes(arrays, self.graph.stimuli, "G", "H", "affected")
        for thread_state in self._backend.thread_states:
            thread_state[SLOT] = 0
        self._backend.write(*(arrays[name] for name in ("active", "spent", "G", "H", "affected")))
        if self._history is not None:
            self._history.restore(arrays)
        rows = slice(0, self.episodes)
        self._episode[CLOCK, rows] = arrays["clock"]
        self._episode[PHASE, rows] = arrays["phase"]
        self._episode[STIMULUS, rows] = arrays["stimulus"]
        self._episode[ENTRIES:, rows] = arrays["entries"]
        self._episode[INJECTING] = 0
        self._keys[:, rows] = arrays["keys"]

    def close(self) -> None:
        """End the threads; the next step starts new threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}  # a pool of threads cannot be copied

    @cached_property
    def _layout(self) -> str:
        """Digest of graph and regions, which give the rows and columns of a state their meaning."""
        digest = hashlib.sha256(self.graph.hash.encode())
        digest.update(self.regions.astype("<i4").tobytes())
        digest.update(self.harm_region_of.astype("<i4").tobytes())
        digest.update(self.setting.spread.encode())
        return digest.hexdigest()[:16]

    def _begin_episodes(
        self, rows: Whole, keys: npt.ArrayLike, stimuli: Whole, keep_memory: bool
    ) -> None:
        k = checked_keys(keys, len(rows))
        self._episode[ENTRIES:, rows] = 0
        self._keys[EPISODE_KEY, rows] = k
        if not keep_memory:
            self._backend.clear_memory(rows)
            if self._history is not None:
                self._history.forget(rows)
        self._begin_phase(rows, EXPOSURE, stimuli)

    def _begin_phase(self, rows: Whole, phase: int, stimuli: Whole | None) -> None:
        if stimuli is not None:
            self._episode[STIMULUS, rows] = stimuli
        enter_phases(self._episode, self._keys, self._schedule, rows, phase)
        if phase != DECAY:
            self._backend.clear_active(rows)

    def check_stimuli(self, stimuli: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
        """(count,) 1-based stimuli from one or one per episode; an unknown one is an error."""
        return checked_stimuli(stimuli, count, self.graph.stimuli)

    def _all_regions(self, field: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        whole = np.zeros((self.episodes, self.region_count), np.float32)
        whole[:, self.harm_regions] = field
        return whole
