"""`check`: what an environment lacks or breaks of the `ReplayEnv` protocol, in words."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.validate import whole_number
from rapo.rsd.policy import as_actor
from rapo.rsd.protocol import OPTIONAL, protocol_layer

Array = npt.NDArray[Any]


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
    not reset; memory that shows in the observation beyond `memory_mask`, or that `reset_observable`
    wipes; draws that a seed does not restart; a `snapshot` that loses state; a `deactivate` without
    effect; a policy of another action space or whose memory survives its reset. Works on a copy.
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
    trial = _Trial(base, steps, seed)
    looks = (_info, _unknown_stimulus, _observable, _leak, _memory, _draws, _snapshot, _off)
    for look in looks:
        try:
            look(trial, report)
        except Exception as error:  # whatever an author's code raises is a finding
            report.problems.append(f"{look.__name__.strip('_')}: {type(error).__name__}: {error}")
        if report.problems and look is _info:
            return report
    if policy is not None:
        try:
            _policy(trial, policy, report)
        except Exception as error:
            report.problems.append(f"the policy: {type(error).__name__}: {error}")
    return report


class _Trial:
    """Short runs of an environment with one fixed sequence of actions."""

    def __init__(self, env: Any, steps: int, seed: int) -> None:
        self.env, self.steps, self.seed = env, steps, seed
        env.action_space.seed(seed)
        self.actions = [env.action_space.sample() for _ in range(steps)]
        mask = getattr(env, "memory_mask", None)
        self.shown = slice(None) if mask is None else ~np.asarray(mask, bool)

    def start(self) -> Array:
        """A new episode in Exposure; its first observation."""
        self.env.reset(seed=self.seed)
        self.env.activate(1)
        return np.atleast_1d(np.asarray(self.env.reset_observable(self.seed)))

    def again(self) -> Array:
        """Replay of the same stimulus with the same draws; its first observation."""
        self.env.activate(1)
        return np.atleast_1d(np.asarray(self.env.reset_observable(self.seed)))

    def run(self, steps: int) -> list[tuple[Array, float, dict[str, Any]]]:
        """Observation, reward and info of each step."""
        out = []
        for action in self.actions[:steps]:
            x, reward, _, _, info = self.env.step(action)
            out.append((np.atleast_1d(np.asarray(x)).copy(), float(reward), dict(info)))
        return out

    def same(self, a: Array, b: Array) -> bool:
        """Whether two observations agree outside the declared memory."""
        return a.shape == b.shape and _equal(a[self.shown], b[self.shown])


def _equal(a: Array, b: Array) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _differs(a: Array, b: Array, trial: _Trial) -> str:
    if a.shape != b.shape:
        return f"the observation has shape {b.shape}, it had {a.shape}"
    first, second = a[trial.shown].ravel(), b[trial.shown].ravel()
    i = next(i for i in range(first.size) if not _equal(first[i : i + 1], second[i : i + 1]))
    return f"entry {i} of the observable part is {second[i]}, it was {first[i]}"


def _info(trial: _Trial, report: CheckReport) -> None:
    trial.start()
    (_, _, info), *_ = trial.run(1)
    for name in ("reach", "sensitive_mass"):
        value = info.get(name)
        if value is None:
            report.problems.append(f"the info of step() lacks {name!r}; report it as a number >= 0")
        elif np.ndim(value) != 0 or not (np.isfinite(value) and value >= 0):
            report.problems.append(f"info[{name!r}] is {value}; it must be a number >= 0")


def _unknown_stimulus(trial: _Trial, report: CheckReport) -> None:
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


def _observable(trial: _Trial, report: CheckReport) -> None:
    first = trial.start()
    before = trial.run(3)  # too short for any harm to arrive: the memory is still empty
    second = trial.again()
    if not trial.same(first, second):
        report.problems.append(
            "the observable does not reset: after reset_observable() "
            f"{_differs(first, second, trial)}"
        )
        return
    for t, (a, b) in enumerate(zip(before, trial.run(3), strict=True)):
        if not trial.same(a[0], b[0]) or a[2]["reach"] != b[2]["reach"]:
            report.problems.append(
                "the draws do not restart: after reset_observable(seed) with the same seed, step "
                f"{t} differs; draw from a generator that reset_observable(seed) seeds"
            )
            return


def _leak(trial: _Trial, report: CheckReport) -> None:
    switch: Callable[[bool], None] | None = getattr(trial.env, "set_deformation", None)
    if switch is not None:
        switch(False)  # under P0 only a leak can make Replay look different
    try:
        first = trial.start()
        exposure = trial.run(trial.steps)
        trial.env.deactivate()
        trial.run(trial.steps)
        second = trial.again()
        replay = trial.run(trial.steps) if switch is not None else []
    finally:
        if switch is not None:
            switch(True)
    if any("does not reset" in text for text in report.problems):
        return  # its consequence, not another problem
    if not trial.same(first, second):
        report.problems.append(
            "the memory leaks through the observation: after Exposure and Decay "
            f"{_differs(first, second, trial)}; reset it, or declare it in memory_mask"
        )
        return
    for t, (before, after) in enumerate(zip(exposure, replay, strict=False)):
        if not trial.same(before[0], after[0]):
            report.problems.append(
                "the memory leaks through the observation: with the deformation off and the same "
                f"draws, {_differs(before[0], after[0], trial)} at step {t} of Replay; declare it "
                "in memory_mask, or let reset_observable(seed) restart all draws"
            )
            return


def _memory(trial: _Trial, report: CheckReport) -> None:
    mask = getattr(trial.env, "memory_mask", None)
    memory: Any = getattr(trial.env, "memory", None)
    if mask is None and memory is None:
        report.notes.append("whether reset_observable() keeps the memory cannot be seen from here")
        return
    trial.start()
    last = trial.run(trial.steps)[-1][0]
    before = last[np.asarray(mask, bool)] if mask is not None else np.array(memory.H)
    x = trial.again()
    after = x[np.asarray(mask, bool)] if mask is not None else np.array(trial.env.memory.H)
    if np.any(before > 0) and not np.any(after > 0):
        report.problems.append(
            "reset_observable() wipes the memory: it was up to "
            f"{before.max():g} before and is 0 after; reset only what is observable"
        )


def _off(trial: _Trial, report: CheckReport) -> None:
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


def _draws(trial: _Trial, report: CheckReport) -> None:
    if any("do not restart" in text for text in report.problems):
        return
    runs = []
    for _ in range(2):
        trial.start()
        runs.append(trial.run(30))
    for t, (a, b) in enumerate(zip(*runs, strict=True)):
        if not _equal(a[0], b[0]) or a[1] != b[1]:
            report.problems.append(
                f"the draws do not restart: two runs with seed {trial.seed} differ at step {t}; "
                "draw from a generator that reset(seed) and reset_observable(seed) seed"
            )
            return


def _snapshot(trial: _Trial, report: CheckReport) -> None:
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
    for t, (a, b) in enumerate(zip(ahead, trial.run(30), strict=True)):
        if not _equal(a[0], b[0]) or a[1] != b[1] or a[2]["reach"] != b[2]["reach"]:
            report.problems.append(
                f"snapshot() loses state: after restore() the run differs at step {t}; put "
                "everything that evolves into the snapshot, draws included"
            )
            return


def _policy(trial: _Trial, policy: Any, report: CheckReport) -> None:
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
