"""`Trial`: short runs of an environment with one fixed sequence of actions, for `check`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Step = tuple[Array, float, dict[str, Any]]
"""Observation, reward and info of one step."""


class Trial:
    """Runs of an environment that see the same actions and, where it keeps its word, draws."""

    def __init__(self, env: Any, steps: int, seed: int) -> None:
        self.env, self.steps, self.seed = env, steps, seed
        env.action_space.seed(seed)
        self.actions = [env.action_space.sample() for _ in range(steps)]
        mask = getattr(env, "memory_mask", None)
        self.shown = slice(None) if mask is None else ~np.asarray(mask, bool)

    def start(self) -> Array:
        """A new episode in Exposure; its first observation."""
        self.env.reset(seed=self.seed)
        return self.again()

    def again(self) -> Array:
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
    """Whether two arrays are, NaN equalling NaN."""
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def differs(a: Array, b: Array, trial: Trial) -> str:
    """Where two observations that are not the `same` differ, in words."""
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
