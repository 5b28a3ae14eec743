"""`check`: what an environment lacks or breaks of the `ReplayEnv` protocol, in words."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rapo.rsd.adapters import OPTIONAL, protocol_layer
from rapo.rsd.check_runs import (
    RESTART,
    Array,
    Step,
    Trial,
    differs,
    equal,
    first_difference,
    restart_problem,
)
from rapo.rsd.policy import as_actor
from rapo_core.checks import UserError, whole_number


@dataclass
class CheckReport:
    """Problems to mend, and notes on what could not be looked at."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        lines = [f"problem: {text}" for text in self.problems]
        lines = lines or ["fine: nothing is missing or broken"]
        return "\n".join(lines + [f"note: {text}" for text in self.notes])


def check(env: Any, policy: Any = None, *, steps: int = 150, seed: int = 0) -> CheckReport:
    """Exercise an environment, and a policy if given, and tell what RSD would trip over.

    Args:
        env: an environment that should offer `ReplayEnv`.
        policy: of any kind that `evaluate` takes.
        steps: length of the trial phases; longer than the delay of harm, or a leak of the memory
            into the observation cannot show.
        seed: of the trials.

    Looks for: missing members; an `info` without reach and sensitive mass; an observable that does
    not reset; memory that shows in the observation beyond `memory_mask`, harm that is still pending
    when Replay begins included, or that `reset_observable` wipes; draws that a seed does not
    restart; a `snapshot` that loses state; a `deactivate` without effect; a policy of another
    action space or whose memory survives its reset. Works on a copy.
    """
    steps = whole_number("steps", steps, 4)
    report = CheckReport()
    try:
        base = protocol_layer(env)
    except ValueError as error:
        report.problems.append(str(error))
        return report
    try:
        base = deepcopy(base)  # the trials leave the author's environment alone
    except Exception as error:  # whatever cannot be copied is tried as it is
        report.notes.append(f"the environment cannot be copied ({error}): it was reset and stepped")
    absent = [name for name in OPTIONAL if not hasattr(base, name)]
    if absent:
        report.notes.append(f"without {absent} some checks, ASD or off@rep are left out")
    trial = Trial(base, steps, seed)
    looks = (
        _info,
        _unknown_stimulus,
        _draws,
        _observable,
        _leak,
        _pending,
        _memory,
        _snapshot,
        _off,
    )
    for look in looks:
        try:
            look(trial, report)
        except Exception as error:  # whatever an author's code raises is a finding
            report.problems.append(f"{look.__name__.strip('_')}: {_raised(error)}")
        if report.problems and look is _info:
            return report
    if policy is not None:
        try:
            _policy(trial, policy, report)
        except Exception as error:
            report.problems.append(f"the policy: {_raised(error)}")
    return report


def _raised(error: Exception) -> str:
    """An error in words: the sentence of a `UserError`, the type before the text of any other."""
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"


def _reports(report: CheckReport, phrase: str) -> bool:
    return any(phrase in text for text in report.problems)


def _info(trial: Trial, report: CheckReport) -> None:
    trial.start()
    (_, _, info), *_ = trial.run(1)
    for name in ("reach", "sensitive_mass"):
        value = info.get(name)
        if value is None:
            report.problems.append(f"the info of step() lacks {name!r}; report it as a number >= 0")
        elif np.ndim(value) != 0 or not (np.isfinite(value) and value >= 0):
            report.problems.append(f"info[{name!r}] is {value}; it must be a number >= 0")


def _unknown_stimulus(trial: Trial, report: CheckReport) -> None:
    stimuli = trial.env.stimuli
    if not isinstance(stimuli, int | np.integer) or stimuli < 1:
        report.problems.append(f"stimuli must be a whole number >= 1, it is {stimuli!r}")
        return
    try:
        trial.env.activate(stimuli + 1)
    except ValueError:
        return
    report.problems.append(
        f"activate({stimuli + 1}) is accepted with {stimuli} stimuli; raise a ValueError"
    )


def _observable(trial: Trial, report: CheckReport) -> None:
    first = trial.start()
    before = trial.run(3)
    second = trial.restart()
    if not trial.same(first, second):
        report.problems.append(
            "the observable does not reset: after reset_observable() "
            f"{differs(first, second, trial)}"
        )
        return
    if _reports(report, RESTART):
        return  # its consequence, not another problem
    after = trial.run(3)
    t = next(
        (
            t
            for t in range(3)
            if not trial.same(before[t][0], after[t][0])
            or before[t][2]["reach"] != after[t][2]["reach"]
        ),
        None,
    )
    if t is None:
        return
    mask = getattr(trial.env, "memory_mask", None)
    if mask is not None and equal(first[np.asarray(mask, bool)], second[np.asarray(mask, bool)]):
        report.problems.append(
            "the observable does not reset: the memory is still what it was at the first step, the "
            f"draws are the same, and yet step {t} after reset_observable() differs; reset "
            "everything that is not memory"
        )
    elif not hasattr(trial.env, "set_deformation"):  # else `_leak` looks without the memory's hand
        report.notes.append(
            f"step {t} of a Replay after three steps of Exposure differs already: right if the "
            "memory acts at once, else reset_observable() leaves something behind; with "
            "set_deformation or memory_mask that could be told"
        )


LEAK = "leaks through the observation"


def _replayed(trial: Trial, washout: int) -> tuple[Array, Array, list[Step], list[Step]]:
    """First observations of Exposure and, after `washout` steps, of Replay; then their steps.

    All under P0 where the environment can switch to it; where not, Replay has no steps.
    """
    switch: Callable[[bool], None] | None = getattr(trial.env, "set_deformation", None)
    if switch is not None:
        switch(False)  # under P0 only a leak can make Replay look different
    try:
        first = trial.start()
        exposure = trial.run(trial.steps)
        trial.env.deactivate()
        trial.run(washout)
        second = trial.restart()
        replay = trial.run(trial.steps) if switch is not None else []
    finally:
        if switch is not None:
            switch(True)
    return first, second, exposure, replay


def _difference(trial: Trial, exposure: list[Step], replay: list[Step]) -> str | None:
    """What the first step of Replay that is not as Exposure's shows, in words."""
    for t, (before, after) in enumerate(zip(exposure, replay, strict=False)):
        if not trial.same(before[0], after[0]):
            return f"{differs(before[0], after[0], trial)} at step {t} of Replay"
    return None


def _leak(trial: Trial, report: CheckReport) -> None:
    first, second, exposure, replay = _replayed(trial, washout=trial.steps)
    if _reports(report, "does not reset") or _reports(report, RESTART):
        return  # its consequence, not another problem
    if not trial.same(first, second):
        report.problems.append(
            f"the memory {LEAK}: after Exposure and Decay "
            f"{differs(first, second, trial)}; reset it, or declare it in memory_mask"
        )
        return
    difference = _difference(trial, exposure, replay)
    if difference is not None:
        report.problems.append(
            f"the memory {LEAK}: with the deformation off and the same draws, {difference}; "
            "declare it in memory_mask, or let reset_observable(seed) restart all draws"
        )


def _pending(trial: Trial, report: CheckReport) -> None:
    """Harm on its way: Replay begins a step after Exposure, before the harm of that has arrived.

    Where the observation shows harm as it arrives, what Exposure and the washout left pending shows
    up in Replay, and Exposure had none of it. After a washout that is longer than delay and drain
    together nothing is pending, which is why `_leak` cannot see it.
    """
    if getattr(trial.env, "set_deformation", None) is None:
        return  # without P0 it cannot be told from what the memory does on purpose
    if any(_reports(report, phrase) for phrase in ("does not reset", RESTART, LEAK)):
        return  # its consequence, not another problem
    _, _, exposure, replay = _replayed(trial, washout=1)
    difference = _difference(trial, exposure, replay)
    if difference is not None:
        report.problems.append(
            f"pending harm {LEAK}: with the deformation off, the same draws and a washout of one "
            f"step, {difference}; let reset_observable() empty what the observation shows of harm "
            "on its way, or declare it in memory_mask"
        )


def _memory(trial: Trial, report: CheckReport) -> None:
    mask = getattr(trial.env, "memory_mask", None)
    memory: Any = getattr(trial.env, "harm_memory", None)
    if mask is None and memory is None:
        report.notes.append("whether reset_observable() keeps the memory cannot be seen from here")
        return
    trial.start()
    last = trial.run(trial.steps)[-1][0]
    before = last[np.asarray(mask, bool)] if mask is not None else np.array(memory.H)
    x = trial.restart()
    after = x[np.asarray(mask, bool)] if mask is not None else np.array(trial.env.harm_memory.H)
    if np.any(before > 0) and not np.any(after > 0):
        report.problems.append(
            "reset_observable() wipes the memory: it was up to "
            f"{before.max():g} before and is 0 after; reset only what is observable"
        )


def _off(trial: Trial, report: CheckReport) -> None:
    if not (hasattr(trial.env, "snapshot") and hasattr(trial.env, "restore")):
        return
    trial.start()
    trial.run(trial.steps // 2)
    state = trial.env.snapshot()
    trial.env.deactivate()
    off = [info["reach"] for _, _, info in trial.run(trial.steps)]
    trial.env.restore(state)
    on = [info["reach"] for _, _, info in trial.run(trial.steps)]
    if off == on and max(on) > 0:
        report.problems.append(
            "deactivate() changes nothing: with and without it the same nodes are reached; switch "
            "the stimulus off"
        )


def _draws(trial: Trial, report: CheckReport) -> None:
    problem = restart_problem(trial)
    if problem is not None:
        report.problems.append(problem)


def _snapshot(trial: Trial, report: CheckReport) -> None:
    if not (hasattr(trial.env, "snapshot") and hasattr(trial.env, "restore")):
        return
    trial.start()
    trial.run(trial.steps // 2)
    state = trial.env.snapshot()
    ahead = trial.run(30)
    trial.env.reset(seed=trial.seed + 1)
    trial.env.activate(trial.env.stimuli)
    trial.env.reset_observable(trial.seed + 1)
    trial.run(10)
    trial.env.restore(state)
    t = first_difference(ahead, trial.run(30))
    if t is not None:
        report.problems.append(
            f"snapshot() loses state: after restore() the run differs at step {t}; put "
            "everything that evolves into the snapshot, draws included"
        )


def _policy(trial: Trial, policy: Any, report: CheckReport) -> None:
    trial.start()
    seen = [x for x, _, _ in trial.run(trial.steps)]
    draws = np.random.default_rng(trial.seed).random(len(seen))
    actor = as_actor(policy, trial.env.action_space)
    weights = _weights(policy)
    passes = []
    for _ in range(2):
        actor.reset(1, trial.seed)
        passes.append([actor.act(x[None], draws[t : t + 1]) for t, x in enumerate(seen)])
    for actions, _ in passes[0]:
        if not trial.env.action_space.contains(actions[0]):
            report.problems.append(
                f"the policy returned {actions[0]}, the action space is {trial.env.action_space}"
            )
            return
    for t, ((a, law_a), (b, law_b)) in enumerate(zip(*passes, strict=True)):
        moved = law_a is not None and law_b is not None and not np.array_equal(law_a, law_b)
        if moved or not np.array_equal(a, b):
            report.problems.append(
                "the policy is not frozen: after reset() it acts differently on the same "
                f"observations, first at step {t}; clear all its state in reset(), and if it draws "
                "by itself give it law(x)"
            )
            break
    after = _weights(policy)
    if weights is not None and not all(map(np.array_equal, weights, after or [])):
        report.problems.append("the policy is not frozen: its parameters changed while it acted")


def _weights(policy: Any) -> list[Array] | None:
    module = getattr(policy, "policy", policy)
    if not hasattr(module, "parameters") or not hasattr(module, "forward"):
        return None
    return [p.detach().cpu().numpy().copy() for p in module.parameters()]
