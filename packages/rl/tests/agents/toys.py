"""Small environments that several tests of PPO run on, and what those tests ask of a learner."""

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class Toy(VectorEnv):
    """Small environments with autoreset in the same step; subclasses give `length` and `act`."""

    length = 1
    size = 2
    terminates: bool | list[bool] = True
    """Whether episodes end in a terminal state, else they are truncated; perhaps per copy."""

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (self.size,))
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.clock = np.zeros(num_envs, int)
        self.lengths = [[] for _ in range(num_envs)]

    def begin(self, rows):
        self.clock[rows] = 0

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        rows = np.flatnonzero((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        for n in rows[self.clock[rows] > 0]:
            self.lengths[n].append(int(self.clock[n]))
        self.begin(rows)
        return self.seen(), {}

    def step(self, actions):
        reward = self.act(actions)
        self.clock += 1
        over = self.clock >= self.length
        final = np.full(self.num_envs, None, object)
        seen = self.seen()
        for n in np.flatnonzero(over):
            final[n] = seen[n]
            self.lengths[n].append(int(self.clock[n]))
        self.begin(np.flatnonzero(over))
        ends = np.broadcast_to(self.terminates, over.shape)
        return self.seen(), reward, over & ends, over & ~ends, {"final_obs": final}


class Counting(Toy):
    """Shows how many steps its episode has, plus one; random rewards."""

    length = 3

    def seen(self):
        return np.stack([1 + self.clock, 0 * self.clock], axis=1).astype(np.float32)

    def act(self, actions):
        return self.rng.normal(0, 1, self.num_envs)


def linear_critic(learner):
    """Make V(x) the first entry of x, for x >= 0."""
    for weight in learner.model.critic.values:
        weight.zero_()
    w1, _, w2, _, w3, _ = learner.model.critic.values
    w1[0, 0] = w2[0, 0] = 1
    w3[0, 0] = 1 - learner.config.gamma


@torch.no_grad()
def collected(learner):
    return learner.collect(np.random.default_rng(0))[1]
