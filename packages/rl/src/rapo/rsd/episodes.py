"""Exposure, decay and replay of the episodes of a stage, with a frozen policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import derive
from rapo.cascade.engine import Activity
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo.rsd.adapters import Stage
from rapo.rsd.policy import Actor, Watcher
from rapo.rsd.result import TRACES
from rapo_core.checks import UserError

Array = npt.NDArray[Any]
Tick = Callable[[int], object]


def run_phases(
    stage: Stage,
    actor: Actor,
    spans: tuple[int, int, int],
    space: gymnasium.Space[Any],
    tick: Tick,
    *,
    keep: bool = False,
) -> dict[str, Any]:
    """All phases of the episodes of one stage; arrays by name, time on axis 1.

    With `keep`, `state` is the state at the start of Replay, where the environment can save it.
    """
    E, T = stage.episodes, sum(spans)
    traces = {name: np.full((E, T), np.nan, np.float32) for name in TRACES}
    entries = np.zeros((2, E))
    laws: list[Array] = []
    records: list[Activity] = []
    state: Any = None
    shown: tuple[list[Array], list[Array]] = ([], [])  # memory in Exposure, all in Replay
    mask = stage.memory_mask
    t = 0
    try:
        for phase, span in enumerate(spans):
            if phase == REPLAY and keep:
                state = stage.save_state()
            stage.record_activity()
            constant = run_constant(stage, actor, phase, span, tick)
            if constant is not None:
                rewards, info, probabilities = constant
                _record(traces, slice(t, t + span), rewards.T, _by_episode(info))
                laws += [probabilities] * span
                if phase == REPLAY and "entry_nominal" in info and "entry_deformed" in info:
                    both = (info["entry_nominal"], info["entry_deformed"])
                    entries = np.stack([np.cumsum(e, axis=0, dtype=np.float64)[-1] for e in both])
                t += span
            else:
                for x, law, reward, info in walk(stage, actor, phase, span, space, tick):
                    if law is not None:
                        laws.append(law.astype(np.float32))
                    if mask is not None and phase == EXPOSURE:
                        shown[0].append(x[:, mask])
                    if mask is not None and phase == REPLAY:
                        shown[1].append(x)
                    _record(traces, t, reward, info)
                    if phase == REPLAY and "entry_nominal" in info and "entry_deformed" in info:
                        entries += np.stack([info["entry_nominal"], info["entry_deformed"]])
                    t += 1
            record = stage.read_activity()
            if record is not None:
                records.append(record)
        shift = np.full(E, np.nan)
        if len(laws) == T and stage.knows_memory:
            shift = _action_shift(stage, actor, laws[-spans[REPLAY] :], shown)
    finally:
        stage.finish()
    with np.errstate(invalid="ignore", divide="ignore"):
        gating = np.where(entries[0] > 0, 1 - entries[1] / entries[0], np.nan)
    visits = [record.visits / (E * span) for record, span in zip(records, spans, strict=False)]
    return {
        "traces": traces,
        "stimulus": np.array(stage.stimulus),
        "ASD": shift,
        "GatingRate": gating,
        "ever": records[REPLAY].ever if records else None,
        "scars": stage.scars(),
        "laws": np.stack(laws, axis=1) if len(laws) == T else None,
        "cascade": np.concatenate([record.first for record in records]) if records else None,
        "activity": np.stack(visits) if records else None,
        "state": state,
    }


def run_constant(
    stage: Stage,
    actor: Actor,
    phase: int,
    span: int,
    tick: Tick,
    stimulus: npt.NDArray[np.int64] | None = None,
) -> tuple[Array, dict[str, Array], Array] | None:
    """Run a phase at once for a policy that always takes one action; None where it does not.

    Returns:
        Rewards (span, E), info of (span, E) each, and the action probabilities (E, A).
    """
    action = getattr(actor, "constant_action", None)
    if action is None or not stage.whole_phases:
        return None
    x = stage.begin(phase, stimulus)
    _, law = actor.act(x, np.zeros(len(x)))
    rewards, info = stage.run(action, span)
    for _ in range(span):
        tick(1)
    return rewards, info, np.asarray(law, np.float32)


def _by_episode(info: dict[str, Array]) -> dict[str, Array]:
    """Info of (span, E) each as (E, span)."""
    return {name: values.T for name, values in info.items() if name in TRACES}


def run_replay(
    stage: Stage,
    actor: Actor,
    spans: tuple[int, int, int],
    space: gymnasium.Space[Any],
    tick: Tick,
    *,
    stimulus: npt.NDArray[np.int64] | None = None,
    state: Any = None,
) -> dict[str, Array]:
    """The traces of one more Replay alone, (E, T_rep) by name, with the draws of the first.

    Args:
        stage: of the episodes.
        actor: the frozen policy.
        spans: steps of the phases; Replay may be cut short.
        space: of the actions.
        tick: told of every step.
        stimulus: (E,) another one for Replay; None for that of Exposure.
        state: the state in which Replay begins; without it Exposure and Decay are run again.
    """
    traces = {name: np.full((stage.episodes, spans[REPLAY]), np.nan, np.float32) for name in TRACES}
    try:
        if state is None:
            for phase in (EXPOSURE, DECAY):
                if run_constant(stage, actor, phase, spans[phase], tick) is None:
                    for _ in walk(stage, actor, phase, spans[phase], space, tick):
                        pass
        else:
            stage.restore_state(state)
        constant = run_constant(stage, actor, REPLAY, spans[REPLAY], tick, stimulus)
        if constant is not None:
            _record(traces, slice(None), constant[0].T, _by_episode(constant[1]))
        else:
            replay = walk(stage, actor, REPLAY, spans[REPLAY], space, tick, stimulus)
            for t, (_, _, reward, info) in enumerate(replay):
                _record(traces, t, reward, info)
    finally:
        stage.finish()
    return traces


def walk(
    stage: Stage,
    actor: Actor,
    phase: int,
    span: int,
    space: gymnasium.Space[Any],
    tick: Tick,
    stimulus: npt.NDArray[np.int64] | None = None,
) -> Iterator[tuple[Array, Array | None, Array, dict[str, Array]]]:
    """Observation, law, reward and info of every step of a phase.

    The policy's memory is reset when Exposure and Replay begin; Decay goes on with it.
    """
    x = stage.begin(phase, stimulus)
    if phase != DECAY:
        actor.reset(stage.episodes, _own_seed(stage, phase))
    for step in range(span):
        first = phase == EXPOSURE and step == 0
        actions, law = _act(actor, x, stage.draws(step), space, first=first)
        seen = x if stage.memory_mask is None else x.copy()  # the step may write over it
        x, reward, info = stage.step(actions)
        yield seen, law, reward, info
        tick(1)


def _record(
    traces: dict[str, Array], t: int | slice, reward: Array, info: dict[str, Array]
) -> None:
    """Write reward and info of a step, or of some steps, into the traces."""
    traces["reward"][:, t] = reward
    for name in TRACES:
        if name in info:
            traces[name][:, t] = info[name]


def _own_seed(stage: Stage, phase: int) -> int:
    """Seed of a policy that draws by itself; coupled phases share it."""
    return int(derive(stage.seed, stage.tags[phase])) % 2**31


def _act(
    actor: Actor, x: Array, draws: Array, space: gymnasium.Space[Any], *, first: bool
) -> tuple[Array, Array | None]:
    """Checked actions; what a policy raises at its first observation is told with that."""
    try:
        actions, law = actor.act(x, draws)
    except (TypeError, RuntimeError, IndexError) as error:
        if not first:
            raise
        raise UserError(
            f"the policy failed on its first observations, of shape {x.shape}: {error}"
        ) from error
    _check_actions(actions, len(x), space)
    return actions, law


def _check_actions(actions: Array, episodes: int, space: gymnasium.Space[Any]) -> None:
    """A policy of another action space is caught at its first action."""
    if not isinstance(space, gymnasium.spaces.Discrete):
        for action in actions:
            if not space.contains(action):
                raise UserError(f"the policy must return actions in {space}, got {action!r}")
        return
    last = space.start + space.n - 1
    fits = actions.shape == (episodes,) and actions.dtype.kind in "iub"
    if not fits or actions.min() < space.start or actions.max() > last:
        raise UserError(
            f"the policy must return actions {space.start}..{last}, one per observation, got "
            f"{actions.dtype} {actions.shape}: {actions.ravel()[:5].tolist()}"
        )


def _action_shift(
    stage: Stage,
    actor: Actor,
    laws: Sequence[Array],
    shown: tuple[list[Array], list[Array]],
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
    if getattr(actor, "constant_action", None) is not None:
        return shift
    actor.reset(stage.episodes, _own_seed(stage, REPLAY))
    for step, (x, law) in enumerate(zip(replayed, laws, strict=True)):
        other = x.copy()
        other[:, stage.memory_mask] = exposed[min(step, len(exposed) - 1)]
        before = actor.act(other, np.zeros(len(x)))[1]
        gap = np.abs(law - np.asarray(before, np.float32)).sum(axis=1)
        shift += 0.5 * gap / len(replayed)
    return shift
