"""`Delayed`: a platform whose harm arrives late, with a constrained optimum in closed form.

Every step shows whether the content is harmless or risky, each with probability 1/2, at random.
Action 1 serves it, for a reward of 1; action 0 holds it back, for none. Serving risky content does
harm of 1, a third at each of the steps `DELAY + 1`, `+ 2`, `+ 3` later. Further harm comes by
itself, at random.

The budget allows what serving all harmless content and a share f of the risky content costs, and
this is the best policy within it: reward (1 + f) / 2 a step. In units of the mean harm of always
serving, serving a risky one costs 1 / mean and earns 1: the multiplier is that mean.

The fields are those of one region: `G' = (1 - LAM) G + harm` and `H' = H + G`, as nothing is below
tau = 0. Both are linear in the harm, so that their budgets ask for the same policy.
"""

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rapo.agents.lagrangian import Constraint

DELAY = 20
LAM = 0.1
NOISE = 0.1
"""Probability per step of a harm of 1 that nobody did."""
LENGTH = 200
"""Steps of an episode; it is truncated."""
_ARRIVALS = DELAY + 1 + np.arange(3)


class Delayed(VectorEnv):
    """`num_envs` copies with autoreset in the same step; staggered, so that not all end at once."""

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        N = self.num_envs
        self.rng = np.random.default_rng(seed)
        self.clock = np.arange(N) * LENGTH // N
        self.risky = self.rng.random(N) < 0.5
        self.coming = np.zeros((N, 1 + _ARRIVALS[-1]))  # harm that is on its way
        self.G = np.zeros(N)
        return self._seen(), {}

    def _seen(self):
        noise = self.rng.normal(0, 1, self.num_envs)
        return np.stack([self.risky, noise], axis=1).astype(np.float32)

    def step(self, actions):
        N, reward = self.num_envs, actions.astype(np.float64)
        self.coming[:, _ARRIVALS] += (actions * self.risky)[:, None] / 3
        harm = self.coming[:, 0] + (self.rng.random(N) < NOISE)
        self.coming = np.roll(self.coming, -1, axis=1)
        self.coming[:, -1] = 0
        info = {"cost": harm, "cost_G": self.G.copy(), "cost_H": self.G.copy()}
        self.G = (1 - LAM) * self.G + harm
        self.risky = self.rng.random(N) < 0.5
        self.clock += 1
        over = self.clock >= LENGTH
        seen = self._seen()
        info["final_obs"] = np.array([*seen, None], object)[:-1]
        self.clock[over], self.coming[over], self.G[over] = 0, 0, 0
        return seen, reward, np.zeros(N, bool), over, info

    def snapshot(self):
        return {
            "clock": self.clock.copy(), "risky": self.risky.copy(), "coming": self.coming.copy(),
            "G": self.G.copy(), "rng": self.rng.bit_generator.state,
        }  # fmt: skip

    def restore(self, state):
        self.clock, self.risky, self.coming, self.G = (
            np.array(state[name]) for name in ("clock", "risky", "coming", "G")
        )
        self.rng.bit_generator.state = state["rng"]


def mean_cost(key, share):
    """Mean cost of a step, over an episode, of serving a share of the risky content."""
    harm = np.full(LENGTH, NOISE)
    for lag in _ARRIVALS:
        harm[lag:] += share / 6
    if key == "cost":
        return float(harm.mean())
    trace, G = [], 0.0
    for arrived in harm:
        trace.append(G)
        G = (1 - LAM) * G + arrived
    return float(np.mean(trace))


def constraints(method, share, gamma, gae_lambda, *, lagged=True):
    """What SS, DR and PM-ST pay, with a budget for a share of the risky content.

    Without `lagged` credit begins at the arrival, as if causes could follow their effects.
    """
    own = gamma * gae_lambda
    kinds = {
        "SS": [("harm", "cost", own, 1, 0.0)],
        "DR": [("harm", "cost", min(1 - 1 / DELAY, gamma), 1, 0.0)],
        "PM-ST": [("trace", "cost_G", own, 2, 1 - LAM), ("scar", "cost_H", own, 2, 0.0)],
    }[method]
    return [
        Constraint(
            name, key, reference=mean_cost(key, 1), decay=decay,
            budget=mean_cost(key, share) / mean_cost(key, 1),
            lag=lagged * (DELAY + lag), retained=lagged * carry,
        )
        for name, key, decay, lag, carry in kinds
    ]  # fmt: skip
