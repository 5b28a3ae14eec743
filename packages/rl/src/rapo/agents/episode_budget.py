"""PPO on a task whose budget is a mean cost per episode, in any unit.

The dual follows the episodes that ended in a rollout by their excess `e = cost / budget - 1`, cut
to [-1, 1] so that it falls as fast as it rises: `lambda <- clip(lambda + lr e, 0, cap)`. Costs
weigh `lambda + e` beside a reward of weight 1: without the second term, which answers at once,
policy and dual swing around each other (Stooke, Achiam and Abbeel 2020). Both advantages have one
spread, so that neither the unit of the cost nor that of the reward matters to `lr`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.agents.config import PPOConfig
from rapo.agents.cost_env import GymTask, means
from rapo.agents.lagrangian import Constraint, Duals, weighed
from rapo.agents.ppo import PPO, TRAINING_SEEDS

SMALLEST_SPREAD = 0.01
"""Advantages of a cost that hardly occurs, of a smaller spread in budgets, are not blown up."""


@dataclass(frozen=True)
class EpisodeBudget(Constraint):
    """`mean cost of an episode <= budget`, undiscounted, in the unit of the cost (reference 1)."""

    gamma: float = 0.99
    """Discount of the cost."""

    @property
    def scale(self) -> float:
        """The critic answers in budgets, of order 1 whatever the unit of the cost."""
        return 1 / (self.budget * (1 - self.gamma))


class EpisodeDuals(Duals):
    """Duals of budgets per episode: relative ascent, and advantages of one spread."""

    def __init__(
        self, constraints: Sequence[Constraint], lr: float, start: float, cap: float
    ) -> None:
        super().__init__(constraints, lr, start, cap)
        floors = [1e-8, *(SMALLEST_SPREAD * c.budget * c.scale for c in constraints)]
        self.floors = np.array(floors, np.float32)
        self.push = np.zeros(len(constraints))
        """(K,) excess of the last episodes, in [-1, 1]; a run that goes on begins with 0."""

    def ascend(self, costs: npt.NDArray[np.float64]) -> None:
        """One step from mean costs of an episode (K,); where none has ended (NaN), none."""
        excess = np.clip(costs / self.budgets - 1, -1, 1)
        self.values = np.clip(self.values + self.lr * np.nan_to_num(excess), 0, self.cap)
        self.push = np.where(np.isnan(excess), self.push, excess)

    def weigh(self, advantage: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Advantage of the Lagrangian; each signal is divided by its spread in the rollout."""
        spread = advantage.reshape(-1, advantage.shape[-1]).std(axis=0)
        weights = np.clip(self.values + self.push, 0, self.cap)
        return weighed(advantage / np.maximum(spread, self.floors), weights)


class EpisodicPPO(PPO):
    """PPO on a `GymTask`: tells of whole episodes, and goes on with new ones after a kill.

    Args:
        env: the task.
        config: numbers of the optimiser.
        budget: of the cost; None for none.
        seed: of weights, actions, minibatches and the environment.
    """

    env: GymTask

    def __init__(
        self, env: GymTask, config: PPOConfig, *, budget: EpisodeBudget | None, seed: int = 0
    ) -> None:
        super().__init__(env, config, constraints=() if budget is None else (budget,), seed=seed)
        self.duals = EpisodeDuals(
            self.constraints, config.dual_lr, config.dual_start, config.dual_cap
        )
        self.episodes = np.full(3, np.nan)
        """Mean return, cost and length of those that ended last."""

    def iterate(self) -> dict[str, float]:
        """As PPO's; the cost is that of an episode. NaN until the first has ended."""
        means = super().iterate()
        for constraint in self.constraints:
            means[f"cost_{constraint.name}"] = float(self.episodes[1])
        return {**means, "return": float(self.episodes[0]), "length": float(self.episodes[2])}

    def spent(self, costs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Mean cost (K,) of the episodes that ended in this rollout, NaN if none did."""
        ended = means(self.env.ended())
        self.episodes = np.where(np.isnan(ended), self.episodes, ended)
        return ended[1 : 1 + len(costs)]

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over weights, optimiser, normalisation and duals; the episodes begin anew."""
        super().load(state)
        place = self.updates * 10**6 + self.seed * self.config.envs
        self.x, _ = self.env.reset(seed=TRAINING_SEEDS + place)
        self.state = self.model.start(self.config.envs)
        self.forget = np.ones(self.config.envs, np.bool_)
        self.incomplete = self.incomplete.since(
            len(self.incomplete)
        )  # of episodes that are not gone on with
