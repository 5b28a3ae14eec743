"""The greedy policy: take the action of which the present conductance lets most through.

The policy knows the stimulus, the injection rates and psi, which no method of the paper sees.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rapo.cascade.engine import Cascade
from rapo.cascade.setting import ACTIONS
from rapo_core.checks import UserError
from rapo_core.deformation import conductance

Float = npt.NDArray[np.floating[Any]]


def served_by_action(engine: Cascade) -> npt.NDArray[np.float64]:
    """(E, 3) injections that would pass the present fields under each action.

    The sum over seeds of `b psi / (b psi + 1 - b)`. The stimulus counts as on and the kernel as
    deformed, whatever the present phase.
    """
    z = engine.stimulus - 1
    psi = conductance(engine.G, engine.H, engine.params)
    at_seeds = np.take_along_axis(psi, engine.regions[engine.graph.support[z]], axis=1)[:, None]
    b = engine.rates[z].astype(np.float64)
    through = b * at_seeds
    return np.asarray((through / (through + 1 - b)).sum(axis=2))


def greedy(engine: Cascade) -> npt.NDArray[np.int64]:
    """(E,) the action of which most passes; the first of equal actions."""
    return np.asarray(served_by_action(engine).argmax(axis=1))


class HasEngine(Protocol):
    """An environment on a `Cascade`."""

    @property
    def engine(self) -> Cascade:
        """The engine of the episodes."""


class GreedyPolicy:
    """A policy for RSD that reads the fields and takes the action of `greedy`.

    Served injections are the reward of the present step, apart from what is active outside V_sens.
    The policy ignores the effect of an action on later steps, and it learns nothing.
    """

    def __init__(self) -> None:
        self._env: HasEngine | None = None

    def watch(self, env: HasEngine) -> None:
        """Read the fields of the episodes of `env` from now on."""
        if env.engine.scope.kind != "full":
            raise UserError(
                f"greedy looks at a kernel that is deformed everywhere, got {env.engine.scope}"
            )
        self._env = env

    def reset(self, episodes: int, seed: int) -> None:
        """Do nothing: the policy has no memory."""

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[np.int64], Float]:
        """Actions (E,) and their probabilities (E, 3); observations and draws are not used."""
        actions = self.served().argmax(axis=1)
        return actions, np.eye(len(ACTIONS))[actions]

    def served(self) -> npt.NDArray[np.float64]:
        """(E, 3) expected served injections of every action, with the stimulus on."""
        if self._env is None:
            raise UserError("greedy watches no environment yet; call watch(env) first")
        return served_by_action(self._env.engine)
