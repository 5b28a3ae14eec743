"""Short runs of an environment for `check`: the same actions again, and whether draws restart."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Step = tuple[Array, float, dict[str, Any]]
"""Observation, reward and info of one step."""
RESTART = "the draws do not restart"
_STEPS = 30


class Trial:
    """Runs of an environment with the same actions and, if it keeps its word, the same draws."""

    def __init__(self, env: Any, steps: int, seed: int) -> None:
        self.env, self.steps, self.seed = env, steps, seed
        env.action_space.seed(seed)
        self.actions = [env.action_space.sample() for _ in range(steps)]
        mask = getattr(env, "memory_mask", None)
        self.shown = slice(None) if mask is None else ~np.asarray(mask, bool)

    def start(self) -> Array:
        """A new episode in Exposure; its first observation."""
        self.env.reset(seed=self.seed)
        return self.restart()

    def restart(self) -> Array:
        """Replay of the same stimulus with the same draws; its first observation."""
        self.env.activate(1)
        return np.atleast_1d(np.array(self.env.reset_observable(self.seed)))

    def run(self, steps: int) -> list[Step]:
        """Observation, reward and info of each step."""
        out = []
        for action in self.actions[:steps]:
            x, reward, _, _, info = self.env.step(action)
            out.append((np.atleast_1d(np.asarray(x)).copy(), float(reward), dict(info)))
        return out

    def same(self, a: Array, b: Array) -> bool:
        """Whether two observations agree outside the declared memory."""
        return a.shape == b.shape and equal(a[self.shown], b[self.shown])


def equal(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, with NaN equal to NaN."""
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def differs(a: Array, b: Array, trial: Trial) -> str:
    """Say where two observations that are not the `same` differ."""
    if a.shape != b.shape:
        return f"the observation has shape {b.shape}, it had {a.shape}"
    first, second = a[trial.shown].ravel(), b[trial.shown].ravel()
    i = next(i for i in range(first.size) if not equal(first[i : i + 1], second[i : i + 1]))
    return f"entry {i} of the observable part is {second[i]}, it was {first[i]}"


def first_difference(one: list[Step], two: list[Step]) -> int | None:
    """The first step at which observation, reward or reach differ; None if none does."""
    for t, (a, b) in enumerate(zip(one, two, strict=True)):
        if not equal(a[0], b[0]) or a[1] != b[1] or a[2]["reach"] != b[2]["reach"]:
            return t
    return None


def restart_problem(trial: Trial) -> str | None:
    """Say what is wrong with the draws; None if nothing is.

    Two episodes of the same seeds must agree. Then a run is begun again after three steps, by the
    environment and by a copy of it whose generators have been drawn from in between: with the same
    memory and the same seed nothing but a generator that was not restarted can tell them apart.
    A memory that acts at once is no problem, since both runs have the same memory.
    """
    trial.start()
    first = trial.run(_STEPS)
    trial.start()
    t = first_difference(first, trial.run(_STEPS))
    if t is not None:
        return (
            f"{RESTART}: two runs with seed {trial.seed} differ at step {t}; draw from a "
            "generator that reset(seed) and reset_observable(seed) seed"
        )
    runs = _with_other_draws(trial)
    t = _without_copies(trial, first) if runs is None else first_difference(*runs)
    if t is None:
        return None
    return (
        f"{RESTART}: after reset_observable(seed) with the same seed and the same memory, step {t} "
        "differs; draw from a generator that reset_observable(seed) seeds"
    )


def _with_other_draws(trial: Trial) -> tuple[list[Step], list[Step]] | None:
    """Two runs after `restart`, one with other draws before it; None without a copy."""
    trial.start()
    trial.run(3)
    copied: dict[int, Any] = {}
    try:
        copied_env = deepcopy(trial.env, copied)
    except Exception:  # some environments cannot be copied
        return None
    if copied_env is trial.env:
        return None
    for thing in list(copied.values()):
        _draw_from(thing)
    runs = []
    for env in (trial.env, copied_env):
        other = Trial(env, trial.steps, trial.seed)
        other.restart()
        runs.append(other.run(_STEPS))
    return runs[0], runs[1]


def _draw_from(thing: Any) -> None:
    """Draw from a generator; leave everything else alone."""
    if isinstance(thing, np.random.Generator):
        thing.random(7)
    elif isinstance(thing, np.random.RandomState):
        thing.random_sample(7)
    elif isinstance(thing, random.Random):
        thing.random()


def _without_copies(trial: Trial, first: list[Step]) -> int | None:
    """The first step that differs in both of two tests of an environment without a copy.

    The first test runs again after three steps, when most memories are still empty. The second
    runs in an episode that another seed reset, after draws from the global generators. A generator
    that is not restarted differs in both.
    """
    trial.start()
    trial.run(3)
    trial.restart()
    soon = first_difference(first[:3], trial.run(3))
    if soon is None:
        return None
    trial.env.reset(seed=trial.seed + 1)
    random.random()
    np.random.random()  # noqa: NPY002 (the global one is meant)
    trial.restart()
    return first_difference(first, trial.run(_STEPS))
