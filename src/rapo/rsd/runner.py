"""`evaluate`: exposure, decay and replay with a frozen policy, on our environments or anyone's."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse.csgraph import dijkstra

from rapo.cascade.graph import Graph
from rapo.cascade.rng import derive
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY, Setting
from rapo.core.validate import truth, whole_number
from rapo.core.version import VERSION
from rapo.envs.single import GraphDiffusionEnv
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.rsd.metrics import auc_ratio, discounted, rag
from rapo.rsd.policy import Actor, Watcher, as_actor
from rapo.rsd.protocol import protocol_layer
from rapo.rsd.result import TRACES, RSDResult
from rapo.rsd.stage import SingleStage, Stage, VectorStage, checked_stimuli

Array = npt.NDArray[Any]
Tick = Callable[[int], object]


def evaluate(
    env: Any,
    policy: Any,
    episodes: int = 20,
    seed: int = 0,
    coupled: bool = False,
    *,
    horizons: tuple[int, int, int] | None = None,
    stimuli: int | Sequence[int] | None = None,
    off_at_replay: bool = False,
    deterministic: bool = False,
    batched: bool | None = None,
    gamma: float = 0.99,
    progress: bool = False,
) -> RSDResult:
    """Run the Replay Suppression Diagnostic.

    Args:
        env: `rapo/GraphDiffusion-v0` (single or vector: all episodes run at once), or any
            environment that offers `ReplayEnv`.
        policy: a callable on observations, a torch module, a Stable-Baselines3 model or an agent,
            see `as_actor`. Its memory is reset when Exposure and Replay begin. One that watches our
            environment (a `Watcher`, such as `Shield`) runs on that alone, and has no ASD when it
            is shown the fields.
        episodes: RSD episodes, >= 1; episode i has seed `seed + i`.
        seed: >= 0.
        coupled: whether Replay reuses Exposure's draws, of the environment and of the actions.
        horizons: steps of exposure, decay and replay; default the environment's, else 500/200/500.
        stimuli: 1-based, one or one per episode; default drawn.
        off_at_replay: sample Replay from `P0`, policy and fields untouched (off@rep).
        deterministic: take the most probable actions.
        batched: whether a callable takes all observations at once; default what it declares.
        gamma: discount of the returns, in (0, 1].
        progress: show a progress bar.
    """
    episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed, 0)
    coupled, off = truth("coupled", coupled), truth("off_at_replay", off_at_replay)
    deterministic = truth("deterministic", deterministic)
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be in (0, 1], got {gamma!r}")
    base = protocol_layer(env)
    ours: Any = base.vector if isinstance(base, GraphDiffusionEnv) else base
    fast = isinstance(ours, GraphDiffusionVectorEnv)
    space = ours.single_action_space if fast else base.action_space
    setting = ours.setting if fast else Setting.default()
    spans = _checked_horizons(setting.horizons if horizons is None else horizons)
    known = ours.graph.stimuli if fast else base.stimuli
    chosen = checked_stimuli(stimuli, episodes, known)
    actor = as_actor(policy, space, deterministic=deterministic, batched=batched)
    if isinstance(actor, Watcher) and not fast:
        raise ValueError(
            f"{type(policy).__name__} watches the state of rapo/GraphDiffusion-v0, got "
            f"{type(base).__name__}; give a policy that acts on observations alone"
        )

    with _bar(progress, sum(spans) * (1 if fast else episodes)) as tick:
        if fast:
            phases = tuple(ours.options["deform_phases"])
            twin = ours.like(
                episodes,
                setting=setting.replace(horizons=spans),
                deform_phases=(*phases[:2], False) if off else phases,
                coupled=coupled,
                schedule="external",
                autoreset_mode="Disabled",
            )
            if isinstance(actor, Watcher):
                actor.watch(twin)
            parts = [_run(VectorStage(twin, seed, chosen), actor, spans, gamma, seed, tick, space)]
        else:
            stages = (
                SingleStage(
                    base,
                    seed + i,
                    None if chosen is None else int(chosen[i]),
                    coupled=coupled,
                    off_at_replay=off,
                )
                for i in range(episodes)
            )
            parts = [_run(stage, actor, spans, gamma, seed + i, tick, space)
                     for i, stage in enumerate(stages)]  # fmt: skip
    manifest = {
        "episodes": episodes, "seed": seed, "coupled": coupled, "horizons": list(spans),
        "off_at_replay": off, "deterministic": deterministic, "gamma": gamma,
        "environment": type(base).__name__, "policy": type(policy).__name__,
        **(_describe(ours) if fast else {"graph_hash": None}),
        "versions": {
            "python": platform.python_version(), "rapo": VERSION,
            **{name: version(name) for name in ("numpy", "numba", "gymnasium", "pandas")},
        },
    }  # fmt: skip
    return _joined(parts, spans, seed, ours.graph if fast else None, manifest)


def _run(
    stage: Stage,
    actor: Actor,
    spans: tuple[int, ...],
    gamma: float,
    seed: int,
    tick: Tick,
    space: gymnasium.Space[Any],
) -> dict[str, Any]:
    """All phases of the episodes of one stage; arrays by name, time on axis 1.

    The policy's memory is reset when Exposure and Replay begin; Decay goes on with it.
    """
    E, T = stage.episodes, sum(spans)
    traces = {name: np.full((E, T), np.nan, np.float32) for name in TRACES}
    entries = np.zeros((2, E))
    laws: list[Array] = []
    cascade: list[Array] = []
    ever: Array | None = None
    activity: Array | None = None
    shown: tuple[list[Array], list[Array]] = ([], [])  # memory in Exposure, all in Replay
    mask = stage.memory_mask
    t = 0
    try:
        for phase, span in enumerate(spans):
            x = stage.begin(phase)
            if phase != DECAY:
                actor.reset(E, _own_seed(seed, stage, phase))
            for step in range(span):
                actions, law = _act(actor, x, stage.draws(step), space, first=t == 0)
                if law is not None:
                    laws.append(law.astype(np.float32))
                if mask is not None and phase == EXPOSURE:
                    shown[0].append(x[:, mask].copy())
                if mask is not None and phase == REPLAY:
                    shown[1].append(x.copy())
                x, reward, info = stage.step(actions)
                traces["reward"][:, t] = reward
                for name in TRACES:
                    if name in info:
                        traces[name][:, t] = info[name]
                if phase == REPLAY and "entry_nominal" in info and "entry_deformed" in info:
                    entries += np.stack([info["entry_nominal"], info["entry_deformed"]])
                active = stage.active()
                if active is not None:
                    cascade.append(active[0])
                    activity = np.zeros((3, active.shape[1])) if activity is None else activity
                    activity[phase] += active.mean(axis=0) / span
                    if phase == REPLAY:
                        ever = active.copy() if ever is None else ever | active
                t += 1
                tick(1)
        shift = np.full(E, np.nan)
        if len(laws) == T and stage.knows_memory:
            shift = _action_shift(stage, actor, laws[-spans[REPLAY] :], shown, seed)
    finally:
        stage.finish()
    with np.errstate(invalid="ignore", divide="ignore"):
        gating = np.where(entries[0] > 0, 1 - entries[1] / entries[0], np.nan)
    return {
        "traces": traces,
        "stimulus": np.array(stage.stimulus),
        "ASD": shift,
        "GatingRate": gating,
        "ever": ever,
        "scars": stage.scars(),
        "laws": np.stack(laws, axis=1) if len(laws) == T else None,
        "cascade": np.stack(cascade) if cascade else None,
        "activity": None if activity is None else activity.astype(np.float32),
        "gamma": gamma,
    }


def _own_seed(seed: int, stage: Stage, phase: int) -> int:
    """Seed of a policy that draws by itself; coupled phases share it."""
    return int(derive(seed, stage.tags[phase])) % 2**31


def _act(
    actor: Actor, x: Array, draws: Array, space: gymnasium.Space[Any], *, first: bool
) -> tuple[Array, Array | None]:
    """Checked actions; what a policy raises at its first observation is told with that."""
    try:
        actions, law = actor.act(x, draws)
    except (TypeError, RuntimeError, IndexError) as error:
        if not first:
            raise
        raise ValueError(
            f"the policy failed on its first observations, of shape {x.shape}: {error}"
        ) from error
    _check_actions(actions, len(x), space)
    return actions, law


def _action_shift(
    stage: Stage,
    actor: Actor,
    laws: list[Array],
    shown: tuple[list[Array], list[Array]],
    seed: int,
) -> npt.NDArray[np.float64]:
    """ASD (E,): mean TV between Replay's laws and those with Exposure's memory shown instead.

    The policy goes through Replay's observations a second time, from its reset, so that a memory
    of its own sees the substituted sequence too and nothing of the run is disturbed. NaN for an
    actor that watches the environment and is shown its memory: the states it watched are gone.
    """
    exposed, replayed = shown
    shift = np.zeros(stage.episodes)
    if stage.memory_mask is None:
        return shift  # it sees nothing that Exposure and Replay could show differently
    if isinstance(actor, Watcher):
        return np.full(stage.episodes, np.nan)
    actor.reset(stage.episodes, _own_seed(seed, stage, REPLAY))
    for step, (x, law) in enumerate(zip(replayed, laws, strict=True)):
        other = x.copy()
        other[:, stage.memory_mask] = exposed[min(step, len(exposed) - 1)]
        before = actor.act(other, np.zeros(len(x)))[1]
        gap = np.abs(law - np.asarray(before, np.float32)).sum(axis=1)
        shift += 0.5 * gap / len(replayed)
    return shift


def _joined(
    parts: list[dict[str, Any]],
    spans: tuple[int, ...],
    seed: int,
    graph: Graph | None,
    manifest: dict[str, Any],
) -> RSDResult:
    """One result from the runs of the stages."""
    phase = np.repeat(np.arange(3), spans)
    traces = {name: np.concatenate([p["traces"][name] for p in parts]) for name in TRACES}
    before, after = phase == EXPOSURE, phase == REPLAY
    reach, inside = (traces[name].astype(np.float64) for name in ("reach", "sensitive_mass"))
    odds = traces["odds_ratio"][:, after].astype(np.float64)
    defined = np.isfinite(odds).sum(axis=1)
    episodes = np.arange(len(reach))
    gamma = parts[0]["gamma"]
    with np.errstate(invalid="ignore"):
        mean_odds = np.where(defined > 0, np.nansum(odds, axis=1) / defined, np.nan)
    stimulus = np.concatenate([p["stimulus"] for p in parts])
    frame = pd.DataFrame(
        {
            "episode": episodes,
            "seed": seed + episodes,
            "stimulus": stimulus,
            "RAG": rag(reach[:, before], reach[:, after]),
            "AUC_R": auc_ratio(reach[:, before], reach[:, after]),
            "SM_R": auc_ratio(inside[:, before], inside[:, after]),
            "ExposureReturn": discounted(traces["reward"][:, before], gamma),
            "ReplayReturn": discounted(traces["reward"][:, after], gamma),
            "OddsRatio": mean_odds,
            "R_c": _containment(graph, stimulus, parts),
            "ASD": np.concatenate([p["ASD"] for p in parts]),
            "GatingRate": np.concatenate([p["GatingRate"] for p in parts]),
            "ScarMass": traces["scar_mass"][:, phase == DECAY][:, -1].astype(np.float64),
            "undefined_odds": after.sum() - defined,
        }
    )
    return RSDResult(
        frame=frame,
        traces=traces,
        phase=phase,
        scars=_all_or_none([p["scars"] for p in parts]),
        laws=_all_or_none([p["laws"] for p in parts]),
        cascade=parts[0]["cascade"],
        activity=parts[0]["activity"],
        graph=graph,
        manifest=manifest,
    )


def _all_or_none(pieces: list[Any]) -> Any:
    return None if any(piece is None for piece in pieces) else np.concatenate(pieces)


def _containment(
    graph: Graph | None, stimulus: npt.NDArray[np.int64], parts: list[dict[str, Any]]
) -> npt.NDArray[np.float64]:
    """R_c: largest hop distance from the seed support of any node active in Replay; (E,)."""
    if graph is None:
        return np.full(len(stimulus), np.nan)
    ever = np.concatenate([p["ever"] for p in parts])
    hops = {
        int(z): dijkstra(
            graph.adjacency, indices=graph.support[z - 1], unweighted=True, min_only=True
        )
        for z in np.unique(stimulus)
    }
    distance = np.stack([hops[int(z)] for z in stimulus])
    reached = np.where(ever, distance, -1).max(axis=1)
    return np.where(reached >= 0, reached, np.nan)


def _describe(env: GraphDiffusionVectorEnv) -> dict[str, Any]:
    """What the environment was made of, for the manifest."""
    regions = env.options["regions"]
    return {
        "graph_hash": env.graph.hash,
        "graph": dict(env.graph.meta),
        "setting": env.setting.to_dict(),
        "params": env.engine.params.to_dict(),
        "deformation": str(env.engine.scope),
        "deform_phases": list(env.options["deform_phases"]),
        "regions": regions if isinstance(regions, str | None) else "explicit",
        "observe": env.observe,
    }


def _check_actions(actions: Array, episodes: int, space: gymnasium.Space[Any]) -> None:
    """A policy of another action space is caught at its first action."""
    if not isinstance(space, gymnasium.spaces.Discrete):
        for action in actions:
            if not space.contains(action):
                raise ValueError(f"the policy must return actions in {space}, got {action!r}")
        return
    last = space.start + space.n - 1
    fits = actions.shape == (episodes,) and actions.dtype.kind in "iub"
    if not fits or actions.min() < space.start or actions.max() > last:
        raise ValueError(
            f"the policy must return actions {space.start}..{last}, one per observation, got "
            f"{actions.dtype} {actions.shape}: {actions.ravel()[:5].tolist()}"
        )


def _checked_horizons(horizons: Any) -> tuple[int, int, int]:
    try:
        exposure, decay, replay = (whole_number("a horizon", h, 1) for h in horizons)
    except (TypeError, ValueError):
        raise ValueError(
            f"horizons must be three whole numbers of steps >= 1, got {horizons!r}"
        ) from None
    return exposure, decay, replay


class _bar:  # noqa: N801 - used like a function
    """A progress bar over a number of steps, or nothing."""

    def __init__(self, shown: bool, total: int) -> None:
        self.shown, self.total = shown, total

    def __enter__(self) -> Tick:
        if not self.shown:
            return lambda n: None
        from rich.progress import Progress

        self.progress = Progress(transient=True)
        self.progress.start()
        task = self.progress.add_task("exposure, washout, replay", total=self.total)
        return lambda n: self.progress.advance(task, n)

    def __exit__(self, *error: object) -> None:
        if self.shown:
            self.progress.stop()
