"""`record`: one RSD episode under one kernel, kept at the steps that a film shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.envs.stage import VectorStage
from rapo.rsd.episodes import walk
from rapo.rsd.plan import Place
from rapo.rsd.policy import as_actor
from rapo.rsd.runner import checked_horizons, let_watch
from rapo.rsd.stage import checked_stimuli
from rapo_core.checks import UserError, truth, whole_number
from rapo_core.deformation import conductance
from rapo_core.params import FieldParams

Array = npt.NDArray[Any]
Spans = tuple[int, int, int]
HEADINGS = ("P₀: stationary", "RAPO: deformed")
"""Of a recording under `P0`, and under the deformed kernel."""


@dataclass(frozen=True)
class GraphView:
    """What F frames show of a cascade on a graph."""

    graph: Graph
    regions: npt.NDArray[np.int32]
    """(n,) region of each node."""
    active: npt.NDArray[np.bool_]
    """(F, n) the active set at the frame's step."""
    recent: npt.NDArray[np.float32]
    """(F, n) share of the steps since the frame before in which a node was active."""
    scar: npt.NDArray[np.float32]
    """(F, R) how far a region's scar has closed it, 0 to 1 (psi at its floor)."""


@dataclass(frozen=True)
class PlatformView:
    """What F frames show of a platform: its own picture of each state."""

    env: Any
    """A `PlatformVectorEnv` of one episode, which the states are put back into to be drawn."""
    states: Sequence[Any]
    """F snapshots of it."""
    scars: bool
    """Whether the memory is drawn; under `P0` nothing reads it."""

    def picture(self, frame: int) -> npt.NDArray[np.uint8]:
        """The platform's picture (H, W, 3) of a frame."""
        self.env.restore(self.states[frame])
        if not self.scars:
            self.env.engine.memory.reset(np.array([0]))
        return np.asarray(self.env.engine.frame(0), np.uint8)


@dataclass(frozen=True)
class Recording:
    """One RSD episode of T steps under one kernel, as a film shows it in F frames."""

    name: str
    """Heading of its half of the picture."""
    spans: Spans
    """Steps of exposure, washout and replay; T is their sum."""
    every: int
    """Steps between two frames of a phase, see `frame_steps`."""
    reach: npt.NDArray[np.float64]
    """(T,) after each step."""
    sensitive: npt.NDArray[np.float64]
    """(T,) sensitive mass after each step."""
    view: GraphView | PlatformView
    """The frames."""

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
        """A recording from the states after every step of an episode on a graph.

        Args:
            name: heading of its half of the picture.
            graph: of n nodes.
            regions: (n,) region of each node.
            active: (T, n) truth values, the active sets.
            H: (T, R) scars.
            params: constants of the fields, for how far a scar closes its region.
            spans: steps of the phases, T together.
            every: steps between frames.
            deformed: whether the scars act on the kernel; those of `P0` are not shown.
        """
        sets, field = np.asarray(active), np.asarray(H, np.float32)
        steps = frame_steps(spans, every)
        T = sum(spans)
        if sets.shape != (T, graph.n) or sets.dtype != np.bool_ or field.shape[:1] != (T,):
            raise UserError(
                f"active must be bool of shape {(T, graph.n)} and H have {T} rows, got "
                f"{sets.dtype} {sets.shape} and {field.shape}"
            )
        windows = (steps - every)[:, None] + np.arange(every)
        recent = np.stack([sets[window].mean(axis=0, dtype=np.float32) for window in windows])
        view = GraphView(
            graph, np.asarray(regions, np.int32), sets[steps - 1], recent,
            closed(field[steps - 1], params, deformed),
        )  # fmt: skip
        inside = (sets & graph.sensitive).sum(axis=1)
        return cls(name, spans, every, sets.sum(axis=1).astype(float), inside.astype(float), view)


def record(
    env: Any,
    policy: Any,
    *,
    deformed: bool = True,
    name: str | None = None,
    seed: int = 0,
    stimulus: int | None = None,
    horizons: Spans | None = None,
    every: int = 10,
    tick: Callable[[int], object] | None = None,
) -> Recording:
    """Run exposure, washout and replay once, Replay with the draws of Exposure.

    The keys are those of `rapo.rsd.evaluate(env, policy, 1, seed, coupled=True)`, and two
    recordings that differ in `deformed` alone share them.

    Args:
        env: a `GraphDiffusionVectorEnv` or `PlatformVectorEnv`; it is not touched.
        policy: see `rapo.rsd.evaluate`.
        deformed: False for the `P0` twin.
        name: heading; default that of the kernel.
        seed: of the episode.
        stimulus: 1-based; default drawn.
        horizons: steps of the phases; default the environment's.
        every: steps between two frames.
        tick: told 1 after every step.
    """
    truth("deformed", deformed)
    place = Place.of(env)
    spans = checked_horizons(place.horizons if horizons is None else horizons)
    steps = frame_steps(spans, every)
    chosen = checked_stimuli(stimulus, 1, int(place.base.stimuli))
    actor = as_actor(policy, place.action_space)
    stages: Sequence[Any] = place.stages(
        1, whole_number("seed", seed, 0), chosen, spans, coupled=True, off_at_replay=False,
        P0=not deformed,
    )  # fmt: skip
    stage = stages[0]
    if type(stage) is not VectorStage:
        raise UserError(f"a film needs a graph or a platform of rapo, got {env!r}")
    let_watch(actor, stages, place, policy)
    notes = _GraphNotes(stage, deformed) if stage.graph is not None else _Snapshots(stage, deformed)
    counts: list[tuple[float, float]] = []
    shown = set(steps.tolist())
    for phase, span in enumerate(spans):
        notes.begin()
        for _, _, _, info in walk(stage, actor, phase, span, place.action_space, tick or _nothing):
            counts.append((info["reach"][0], info["sensitive_mass"][0]))
            notes.note(len(counts) in shown)
    reach, sensitive = np.array(counts, float).T
    heading = HEADINGS[deformed] if name is None else name
    return Recording(heading, spans, every, reach, sensitive, notes.view(every))


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


def closed(
    H: npt.NDArray[np.float32], params: FieldParams, deformed: bool
) -> npt.NDArray[np.float32]:
    """How far scars of any shape close their regions, 0 to 1; nothing if they act on nothing."""
    if not deformed or params.psi_min >= 1:
        return np.zeros(H.shape, np.float32)
    psi = conductance(np.zeros_like(H), H, params)
    return np.asarray((1 - psi) / (1 - params.psi_min), np.float32)


def _nothing(steps: int) -> None:
    """A tick that nobody listens to."""


class _GraphNotes:
    """Active sets and scars of a stage on a graph, written down at frames."""

    def __init__(self, stage: VectorStage, deformed: bool) -> None:
        self.stage, self.deformed = stage, deformed
        self.count = np.zeros(stage.env.engine.graph.n, np.float32)
        self.active: list[Array] = []
        self.recent: list[Array] = []
        self.H: list[Array] = []

    def begin(self) -> None:
        self.count[:] = 0  # the steps after a phase's last frame are not shown

    def note(self, shown: bool) -> None:
        active = self.stage.env.engine.active[0]
        self.count += active
        if shown:
            self.active.append(active)
            self.recent.append(self.count.copy())
            self.H.append(self.stage.env.engine.H[0])
            self.count[:] = 0

    def view(self, every: int) -> GraphView:
        engine = self.stage.env.engine
        return GraphView(
            engine.graph, engine.regions, np.array(self.active),
            np.array(self.recent, np.float32) / np.float32(every),
            closed(np.array(self.H), engine.params, self.deformed),
        )  # fmt: skip


class _Snapshots:
    """Snapshots of a stage on a platform, taken at frames."""

    def __init__(self, stage: VectorStage, deformed: bool) -> None:
        self.stage, self.deformed = stage, deformed
        self.states: list[Any] = []

    def begin(self) -> None:
        pass

    def note(self, shown: bool) -> None:
        if shown:
            self.states.append(self.stage.keep())

    def view(self, every: int) -> PlatformView:
        return PlatformView(self.stage.env, self.states, self.deformed)
