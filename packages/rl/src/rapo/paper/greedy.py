"""Greedy on psi: the action that the gate lets most of through, now."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.served import served_by_action
from rapo.cascade.setting import ACTIONS
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]


class GreedyPolicy:
    """Looks at the present fields and picks the action with the largest served injections.

    `S_a = sum_v b_v psi_v / (b_v psi_v + 1 - b_v)` is the reward of this step but for what is
    active outside V_sens; what it does to later steps is not asked. Of equal actions the first.
    Nothing is learned: it is told the stimulus, the injection rates and psi, which no method of
    the paper sees.
    """

    def __init__(self) -> None:
        self._env: GraphDiffusionVectorEnv | None = None

    def watch(self, env: GraphDiffusionVectorEnv) -> None:
        """Look at the episodes of `env` from now on."""
        if env.engine.scope.kind != "full":
            raise UserError(
                f"greedy looks at a kernel that is deformed everywhere, got {env.engine.scope}"
            )
        self._env = env

    def reset(self, episodes: int, seed: int) -> None:
        """It remembers nothing."""

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[np.int64], Float]:
        """Actions (E,) and their law (E, 3); observations and draws are not looked at."""
        actions = self.served().argmax(axis=1)
        return actions, np.eye(len(ACTIONS))[actions]

    def served(self) -> npt.NDArray[np.float64]:
        """(E, 3) expected served injections of every action, the stimulus taken as on."""
        if self._env is None:
            raise UserError("greedy watches no environment yet; call watch(env) first")
        return served_by_action(self._env.engine)
