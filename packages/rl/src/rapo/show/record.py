"""`record`: one RSD episode under one kernel, written down for films and for the lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.envs.stage import VectorStage
from rapo.platforms.map import PlatformMap
from rapo.rsd.adapters import EnvAdapter
from rapo.rsd.episodes import walk
from rapo.rsd.policy import as_actor
from rapo.rsd.runner import checked_horizons, let_watch
from rapo_core.checks import UserError, checked_stimuli, truth, whole_number
from rapo_core.deformation import conductance
from rapo_core.params import FieldParams

Array = npt.NDArray[Any]
Spans = tuple[int, int, int]
HEADINGS = ("P₀: stationary", "RAPO: deformed")
"""Heading of a recording under `P0`, and of one under the deformed kernel."""
MOST_FIELDS = 400_000
"""Values of G, and as many of H, that a recording holds at most."""


@dataclass(frozen=True)
class Fields:
    """G and H of R regions, after steps `every`, 2 `every`, ... of the episode."""

    every: int
    regions: npt.NDArray[np.integer[Any]]
    """(R,) numbers of the regions; all others never carry harm."""
    never_gated: npt.NDArray[np.bool_]
    """(R,) whether the scope of the deformation leaves a region out."""
    G: npt.NDArray[np.float32]
    """(rows, R)."""
    H: npt.NDArray[np.float32]
    """(rows, R)."""
    params: FieldParams

    def closed(self, step: int) -> npt.NDArray[np.float32]:
        """(R,) how far scars have closed each region after a step: 1 where psi is at its floor."""
        row = step // self.every - 1
        if row < 0 or self.params.psi_min >= 1:
            return np.zeros(len(self.regions), np.float32)
        psi = conductance(np.zeros_like(self.H[row]), self.H[row], self.params)
        return np.asarray((1 - psi) / (1 - self.params.psi_min), np.float32)


@dataclass(frozen=True)
class GraphView:
    """What can be seen of a cascade on a graph of n nodes."""

    graph: Graph
    regions: npt.NDArray[np.int32]
    """(n,) region of each node."""
    bits: npt.NDArray[np.uint8]
    """(T, ceil(n / 8)) the active set after every step, a bit per node, the lowest first."""

    def active(self, first: int, last: int) -> npt.NDArray[np.bool_]:
        """(last - first + 1, n) the active sets after steps `first` to `last`, counted from 1."""
        rows = self.bits[first - 1 : last]
        return np.unpackbits(rows, axis=1, count=self.graph.n, bitorder="little").view(np.bool_)


@dataclass(frozen=True)
class PlatformView:
    """What can be seen of a platform: its state at the frames, its walkers after every step."""

    env: Any
    """A `PlatformVectorEnv` of one episode, which a state is put back into to be drawn."""
    states: Mapping[int, Any]
    """A snapshot by the number of the step, for every frame."""
    walkers: npt.NDArray[np.uint16]
    """(T, m, 2) position of each walker on the platform's map; empty without a map."""
    load: npt.NDArray[np.uint16]
    """(T, R) how full each region is, where the platform counts that; else (T, 0)."""

    def picture(self, step: int, *, scars: bool) -> npt.NDArray[np.uint8]:
        """The platform's picture (H, W, 3) after a step, with or without its memory."""
        self.env.restore(self.states[step])
        if not scars:
            self.env.engine.memory.reset(np.array([0]))
        return np.asarray(self.env.engine.frame(0), np.uint8)


@dataclass(frozen=True)
class Recording:
    """One RSD episode of T steps under one kernel."""

    name: str
    """Heading in a film."""
    spans: Spans
    """Steps of exposure, washout and replay; T is their sum."""
    every: int
    """Steps between two frames of a phase, see `frame_steps`."""
    stimulus: int
    """1-based; 0 where `of_steps` was not told."""
    deformed: bool
    """Whether scars act on the kernel; under `P0` films leave them out."""
    reach: npt.NDArray[np.float64]
    """(T,) after each step."""
    sensitive: npt.NDArray[np.float64]
    """(T,) sensitive mass after each step."""
    fields: Fields
    view: GraphView | PlatformView

    @classmethod
    def of_steps(
        cls,
        name: str,
        graph: Graph,
        regions: npt.ArrayLike,
        *,
        active: npt.ArrayLike,
        H: npt.ArrayLike,
        params: FieldParams,
        spans: Spans,
        every: int,
        deformed: bool = True,
    ) -> Recording:
        """A recording from the states after every step of an episode on a graph of n nodes.

        Args:
            name: heading in a film.
            graph: the graph.
            regions: (n,) region of each node.
            active: (T, n) truth values, the active sets.
            H: (T, R) scars.
            params: constants of the fields, for how far a scar closes its region.
            spans: steps of the phases, T together.
            every: steps between frames.
            deformed: whether the scars act on the kernel.
        """
        sets, scars, T = np.asarray(active), np.asarray(H, np.float32), sum(spans)
        frame_steps(spans, every)
        if sets.shape != (T, graph.n) or sets.dtype != np.bool_ or scars.shape[:1] != (T,):
            raise UserError(
                f"active must be bool of shape {(T, graph.n)} and H have {T} rows, got "
                f"{sets.dtype} {sets.shape} and {scars.shape}"
            )
        R = scars.shape[1]
        fields = Fields(1, np.arange(R), np.zeros(R, np.bool_), np.zeros_like(scars), scars, params)
        bits = np.packbits(sets, axis=1, bitorder="little")
        view = GraphView(graph, np.asarray(regions, np.int32), bits)
        reach, sensitive = (s.sum(axis=1).astype(float) for s in (sets, sets & graph.sensitive))
        return cls(name, spans, every, 0, deformed, reach, sensitive, fields, view)


def record(
    env: Any,
    policy: Any,
    *,
    deformed: bool = True,
    name: str | None = None,
    seed: int = 0,
    stimulus: int | None = None,
    coupled: bool = True,
    horizons: Spans | None = None,
    every: int = 10,
    on_progress: Callable[[int, int], object] | None = None,
) -> Recording:
    """Run exposure, washout and replay once and write the episode down.

    The keys are those of `rapo.rsd.evaluate(env, policy, 1, seed, coupled)`, and two recordings
    that differ in `deformed` alone share them.

    Args:
        env: a `GraphDiffusionVectorEnv` or `PlatformVectorEnv`; it is not touched.
        policy: see `rapo.rsd.evaluate`.
        deformed: False for the `P0` reference run.
        name: heading in a film; default that of the kernel.
        seed: of the episode.
        stimulus: 1-based; default drawn.
        coupled: whether Replay reuses the draws of Exposure.
        horizons: steps of the phases; default the environment's.
        every: steps between two frames of a film.
        on_progress: called after every step with the steps done and their number. It may raise,
            which ends the run.
    """
    adapter = EnvAdapter.of(env)
    spans = checked_horizons(adapter.horizons if horizons is None else horizons)
    frames = set(frame_steps(spans, every).tolist())
    stimuli = None if stimulus is None else checked_stimuli(stimulus, 1, adapter.base.stimuli)
    actor = as_actor(policy, adapter.action_space)
    stages: Sequence[Any] = adapter.stages(
        1, whole_number("seed", seed, 0), stimuli, spans, coupled=truth("coupled", coupled),
        off_at_replay=False, P0=not truth("deformed", deformed),
    )  # fmt: skip
    stage = stages[0]
    if type(stage) is not VectorStage:
        raise UserError(f"a film needs a graph or a platform of rapo, got {env!r}")
    let_watch(actor, stages, adapter, policy)
    log = _GraphLog(stage) if stage.graph is not None else _PlatformLog(stage, frames)
    T = sum(spans)
    fields_every = max(1, -(-T * len(log.regions) // MOST_FIELDS))
    counts: list[tuple[float, float]] = []
    memory: list[tuple[Array, Array]] = []
    for phase, span in enumerate(spans):
        for _, _, _, info in walk(stage, actor, phase, span, adapter.action_space, lambda n: None):
            counts.append((info["reach"][0], info["sensitive_mass"][0]))
            step = len(counts)
            log.write(step)
            if step % fields_every == 0:
                engine = stage.env.engine
                memory.append((engine.G[0, log.regions], engine.H[0, log.regions]))
            if on_progress is not None:
                on_progress(step, T)
    G, H = (np.array(each, np.float32) for each in zip(*memory, strict=True))
    fields = Fields(fields_every, log.regions, log.never_gated, G, H, stage.env.engine.params)
    reach, sensitive = np.array(counts, float).T
    return Recording(
        HEADINGS[deformed] if name is None else name, spans, every, int(stage.stimulus[0]),
        deformed, reach, sensitive, fields, log.view(),
    )  # fmt: skip


def frame_steps(spans: Spans, every: int) -> npt.NDArray[np.int64]:
    """(F,) how many steps are done at each frame.

    Every phase has frames at its steps every, 2 every, ...: so Exposure and Replay are shown at the
    same steps of their clocks.
    """
    every = whole_number("every", every, 1)
    if every > min(spans):
        raise UserError(
            f"every must be at most the {min(spans)} steps of the shortest phase, got {every}"
        )
    starts = np.cumsum([0, *spans[:2]])
    return np.concatenate(
        [s + np.arange(every, n + 1, every) for s, n in zip(starts, spans, strict=True)]
    )


class _GraphLog:
    """The active sets of a stage on a graph."""

    def __init__(self, stage: VectorStage) -> None:
        self.engine = stage.env.engine
        self.regions = self.engine.harm_regions
        self.never_gated = ~self.engine.gated_regions
        self._bits: list[Array] = []

    def write(self, step: int) -> None:
        self._bits.append(np.packbits(self.engine.active[0], bitorder="little"))

    def view(self) -> GraphView:
        return GraphView(self.engine.graph, self.engine.regions, np.array(self._bits))


class _PlatformLog:
    """The walkers of a platform after every step, and its state at every frame."""

    def __init__(self, stage: VectorStage, frames: set[int]) -> None:
        self.stage, self.frames, self.engine = stage, frames, stage.env.engine
        self.regions = np.arange(self.engine.G.shape[1])
        self.never_gated = self.engine.memory.never_gated
        self._map: PlatformMap | None = self.engine.map()
        self._states: dict[int, Any] = {}
        self._walkers: list[Array] = []
        self._load: list[Array] = []

    def write(self, step: int) -> None:
        if step in self.frames:
            self._states[step] = self.stage.save_state()
        if self._map is not None:
            self._walkers.append(self._map.walkers(self.engine.state))
            self._load.append(self._map.load(self.engine.state))

    def view(self) -> PlatformView:
        return PlatformView(
            self.stage.env, self._states, np.array(self._walkers), np.array(self._load)
        )
