"""`EnvAgent`: the policy of a run on any Gymnasium environment, and whole episodes of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, flatten

from rapo.agents.agent import Agent
from rapo.agents.cost_env import CostFunction, GymTask, find_cost, make_env, seeds_from
from rapo.agents.run_config import RunConfig
from rapo_core.action_probs import sample


class EnvAgent:
    """A frozen policy that takes observations as its environment gives them.

    Args:
        agent: the networks and the normalisation, for flat observations.
        observations: the observation space of the environment.
        actions: the action space of the environment.
        seed: seed of the draws of `act`.
    """

    def __init__(
        self, agent: Agent, observations: gymnasium.Space[Any], actions: Discrete, seed: int = 0
    ) -> None:
        self.agent, self.observation_space, self.action_space = agent, observations, actions
        self._rng = np.random.default_rng(seed)

    @property
    def actor(self) -> Any:
        """The policy as the diagnostic takes it.

        Where observations are flat and actions start at 0 it is the bare agent, which tells its
        action probabilities; else this object, which draws its actions by itself.
        """
        space = self.observation_space
        flat = isinstance(space, Box) and len(space.shape) == 1 and self.action_space.start == 0
        return self.agent if flat else self

    def set_random_seed(self, seed: int) -> None:
        """Begin the draws of `act` anew."""
        self._rng = np.random.default_rng(seed)

    def law(self, observation: Any) -> npt.NDArray[np.float64]:
        """(A,) probabilities of the actions at one observation of the environment."""
        flat = np.asarray(flatten(self.observation_space, observation), np.float32)
        return np.asarray(self.agent.law(flat.reshape(1, -1))[0])

    def act(self, observation: Any, *, greedy: bool = False) -> int:
        """An action for one observation: drawn, or the most probable one."""
        law = self.law(observation)
        pick = law.argmax() if greedy else self._rng.choice(len(law), p=law / law.sum())
        return int(self.action_space.start + pick)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[npt.NDArray[np.int64], None]:
        """Actions as Stable-Baselines3 gives them: for one observation, or a list or batch."""
        if self.observation_space.contains(observation):
            return np.array(self.act(observation, greedy=deterministic)), None
        return np.array([self.act(one, greedy=deterministic) for one in observation]), None


def play(
    agent: EnvAgent,
    config: RunConfig,
    *,
    cost: str | CostFunction | None = None,
    episodes: int = 20,
    seed: int = 0,
    greedy: bool = False,
) -> npt.NDArray[np.float64]:
    """Return, cost and length of whole episodes, (E, 3), side by side.

    Args:
        agent: a frozen policy.
        config: names the environment.
        cost: instead of the config's, such as one that the policy was not trained with.
        episodes: how many, E.
        seed: of episodes and actions; training meets others.
        greedy: take the most probable action instead of drawing.
    """
    wanted = config.cost if cost is None else cost
    function = find_cost(wanted) if isinstance(wanted, str) else wanted
    task = GymTask(partial(make_env, config.env, config.env_kwargs), episodes, function)
    x, _ = task.reset(seed=seeds_from(seed, episodes, held_out=True))
    rng = np.random.default_rng(seed)
    running = np.ones(episodes, np.bool_)
    while running.any():
        law = agent.agent.law(x)
        actions = law.argmax(axis=1)
        if not greedy:
            actions = sample(law, rng.random(episodes))
        x, _, terminated, truncated, _ = task.step(actions)
        running &= ~(terminated | truncated)
    totals = np.array([meter.ended[0] for meter in task.meters])
    task.close()
    return totals
