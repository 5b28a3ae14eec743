"""RWARE, the multi-robot warehouse of Papoudakis et al., on the floor of one of our platforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.platforms.warehouse import Warehouse


class Rware:
    """One episode with as many robots, shelves where ours are, and our doors as its goals.

    Args:
        like: the platform whose floor and robots are taken.
        seed: of the robots' random actions.
    """

    def __init__(self, like: Warehouse, seed: int = 0) -> None:
        from rware.warehouse import RewardType
        from rware.warehouse import Warehouse as Theirs

        floor = np.where(like.orders.floor.free, ".", "x")
        floor[[0, -1]] = floor[:, [0, -1]] = "."  # it has no walls, only shelves
        floor.flat[like.orders.doors] = "g"
        self._env: Any = Theirs(
            0, 0, 0, like.walkers, 0, 1, like.walkers, None, None, RewardType.GLOBAL,
            layout="\n".join("".join(line) for line in floor),
        )  # fmt: skip
        self._env.reset(seed=seed)
        rng = np.random.default_rng(seed)
        self._actions = [tuple(a) for a in rng.integers(0, 5, (64, like.walkers)).tolist()]
        self._at = 0

    def step(self, action: int) -> None:
        """All robots act, each as it pleases; `action` is ours."""
        self._env.step(self._actions[self._at % len(self._actions)])
        self._at += 1
