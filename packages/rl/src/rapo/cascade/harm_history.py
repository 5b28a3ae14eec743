"""Harm as a function of one's own: what it is computed from, and the checks on what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.bits import packed, unpacked, word_count
from rapo_core.checks import UserError

HarmFunction = Callable[[npt.NDArray[np.bool_], npt.NDArray[np.int64]], npt.ArrayLike]
"""`g(active, actions)` of all episodes at once: the active sets (D+1, E, n) and the actions
(D+1, E) of the last D+1 steps, the present step last. It returns (E,) harm in [0, 1]."""


class HarmHistory:
    """The last D+1 active sets and actions of every episode, and the harm they cause.

    Args:
        harm: the function of the setting.
        episodes: E.
        nodes: n.
        delay: D.
    """

    def __init__(self, harm: HarmFunction, episodes: int, nodes: int, delay: int) -> None:
        self.harm, self.nodes = harm, nodes
        self.active = np.zeros((delay + 1, episodes, word_count(nodes)), np.uint64)
        self.actions = np.zeros((delay + 1, episodes), np.int64)
        self.steps = np.zeros(episodes, np.int64)
        """(E,) steps since the memory was empty. Harm arrives from step D on."""

    def forget(self, rows: npt.NDArray[np.int64]) -> None:
        """Empty the history of some episodes."""
        self.active[:, rows], self.actions[:, rows], self.steps[rows] = 0, 0, 0

    def next_harm(
        self, active: npt.NDArray[np.bool_], actions: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """(E,) harm of this step, after its active sets (E, n) and actions (E,) were added.

        Raises:
            UserError: the function returned another shape, or a value outside [0, 1].
        """
        self.active = np.roll(self.active, -1, axis=0)
        self.actions = np.roll(self.actions, -1, axis=0)
        self.active[-1], self.actions[-1] = packed(active), actions
        delay, episodes = len(self.active) - 1, len(self.steps)
        harm = np.asarray(self.harm(unpacked(self.active, self.nodes), self.actions.copy()), float)
        if harm.shape != (episodes,):
            raise UserError(
                f"setting.harm must return one number for each of {episodes} episodes, got shape "
                f"{harm.shape}"
            )
        if not ((harm >= 0) & (harm <= 1)).all():  # NaN is neither
            wrong = harm[~((harm >= 0) & (harm <= 1))][0]
            raise UserError(f"setting.harm must return numbers in [0, 1], got {wrong}")
        arrives = self.steps >= delay
        self.steps += 1
        return np.where(arrives, harm, 0).astype(np.float32)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """The history as plain arrays."""
        return {
            "past_active": unpacked(self.active, self.nodes),
            "past_actions": self.actions.copy(),
            "past_steps": self.steps.copy(),
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over checked arrays of a `snapshot`."""
        self.active = packed(state["past_active"])
        self.actions, self.steps = state["past_actions"], state["past_steps"]
