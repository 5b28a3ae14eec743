"""Duals: steps, projection, budgets; and saddle points that are known in closed form."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rapo.agents.agent import Agent
from rapo.agents.config import PPOConfig
from rapo.agents.lagrangian import Constraint, Duals
from rapo.agents.ppo import PPO


def constraint(budget=0.5, *, reference=1.0, decay=0.0, name="harm", **options):
    return Constraint(name, "cost", reference=reference, budget=budget, decay=decay, **options)


def duals(*budgets, lr=0.1, start=1.0, cap=10.0):
    return Duals([constraint(b) for b in budgets], lr, start, cap)


def test_a_dual_moves_by_the_step_times_the_excess():
    both = duals(0.5, 0.8)
    both.ascend(np.array([0.7, 0.3]))
    assert np.allclose(both.values, [1 + 0.1 * 0.2, 1 - 0.1 * 0.5])
    both.ascend(np.array([0.5, 0.8]))  # exactly on budget: nothing moves
    assert np.allclose(both.values, [1.02, 0.95])


def test_duals_stay_between_zero_and_their_cap():
    both = duals(0.5, 0.5, start=0.1, cap=0.3)
    for _ in range(20):
        both.ascend(np.array([0.0, 2.0]))
    assert both.values.tolist() == [0.0, 0.3]
    both.ascend(np.array([1.0, 0.0]))  # the projection leaves no debt behind
    assert np.allclose(both.values, [0.05, 0.25])


def test_the_weighed_advantage_is_the_lagrangian_over_its_total_weight():
    both = duals(0.5, 0.5)
    both.values = np.array([0.5, 2.0])
    advantage = np.random.default_rng(0).normal(0, 1, (4, 3, 3)).astype(np.float32)
    expected = (advantage[..., 0] - 0.5 * advantage[..., 1] - 2 * advantage[..., 2]) / 3.5
    assert np.allclose(both.weigh(advantage), expected, atol=1e-6)
    free = Duals([], 0.1, 1.0, 10.0)
    assert np.array_equal(free.weigh(advantage[..., :1]), advantage[..., 0])


@pytest.mark.parametrize("budget", [-0.5, float("nan"), float("inf")])
def test_bad_budgets_are_named(budget):
    with pytest.raises(ValueError, match=f"budget must be a share >= 0.*got {budget!r}"):
        constraint(budget)


def test_without_a_budget_a_dual_rises_by_the_cost_itself():
    dual = duals(0.0, start=0.0)
    dual.ascend(np.array([0.7]))
    dual.ascend(np.array([0.2]))
    assert dual.values.tolist() == pytest.approx([0.1 * 0.9])


@pytest.mark.parametrize("reference", [-1.0, float("nan"), float("inf")])
def test_bad_references_are_named(reference):
    with pytest.raises(ValueError, match=f"reference of harm must be >= 0, got {reference!r}"):
        constraint(reference=reference)


@pytest.mark.parametrize("name", ["decay", "retained"])
@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_bad_decays_and_carries_are_named(name, share):
    with pytest.raises(ValueError, match=f"{name} of harm must be in .*got {share!r}"):
        constraint(**{name: share})


@pytest.mark.parametrize("lag", [-1, 2.5, True])
def test_bad_lags_are_named(lag):
    with pytest.raises(ValueError, match=f"lag of harm must be a whole number >= 0, got {lag!r}"):
        constraint(lag=lag)


def test_a_reference_of_zero_has_nothing_to_constrain():
    assert constraint(reference=0.0).scale == 0
    assert constraint(reference=4.0).scale == 0.25


@pytest.mark.parametrize("budget", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("start", [0.0, 5.0])
def test_duals_find_the_multiplier_of_a_softmax_best_response(budget, start):
    """Two actions, reward and cost (1, 0): p = sigmoid((1 - lambda) / T) = budget at the saddle."""
    temperature = 0.3
    known = 1 - temperature * np.log(budget / (1 - budget))
    dual = duals(budget, lr=0.2, start=start)
    for _ in range(500):
        p = 1 / (1 + np.exp(-(1 - dual.values[0]) / temperature))
        dual.ascend(np.array([p]))
    assert dual.values[0] == pytest.approx(known, abs=1e-6)
    assert p == pytest.approx(budget, abs=1e-6)


def test_several_duals_find_their_saddle_point():
    """Budgets chosen as the costs of the response to known multipliers, one of them slack."""
    rng = np.random.default_rng(0)
    reward, cost, temperature = rng.random(6), rng.random((3, 6)), 0.5
    known = np.array([0.7, 1.8, 0.0])

    def response(values):
        score = np.exp((reward - values @ cost) / temperature)
        return cost @ (score / score.sum())

    budgets = response(known)
    budgets[2] += 0.2  # more than it needs
    three = duals(*budgets, lr=1.0)
    for _ in range(20_000):
        three.ascend(response(three.values))
    assert np.allclose(three.values, known, atol=1e-3)


class OneStep(VectorEnv):
    """Every step is an episode: a noisy reward and the cost of the action, and nothing else.

    The noise keeps the spread of the advantages, by which PPO divides, away from 0 at the saddle
    point, where the Lagrangian does not care between the two actions that it mixes.
    """

    REWARD = np.array([2.0, 0.5, 0.0])
    COST = np.array([1.0, 0.6, 0.0])
    UNIT = 0.25
    """`info` tells the cost in units of its own."""

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = gymnasium.spaces.Box(-1, 1, (2,))
        self.single_action_space = gymnasium.spaces.Discrete(3)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def _x(self):
        return np.tile(np.array([1.0, 0.0], np.float32), (self.num_envs, 1))

    def reset(self, *, seed=None, options=None):
        self.rng = np.random.default_rng(seed)
        return self._x(), {}

    def step(self, actions):
        over = np.ones(self.num_envs, bool)
        info = {"cost": self.UNIT * self.COST[actions]}
        reward = self.REWARD[actions] + self.rng.normal(0, 1, self.num_envs)
        return self._x(), reward, over, ~over, info


def run(budget, updates, seed=0, **changes):
    """Means over the second half: cost, dual, reward, and the law of the three actions."""
    config = PPOConfig(**{
        "envs": 64, "rollout": 512, "minibatch": 256, "epochs": 4, "hidden": 16, "lr": 3e-3,
        "gamma": 0.5, "cost_gamma": 0.5, "entropy": 0.1, "dual_lr": 0.03, **changes,
    })  # fmt: skip
    learner = PPO(
        OneStep(64), config, constraints=[constraint(budget, reference=OneStep.UNIT)], seed=seed
    )
    rows = []
    for _ in range(updates):
        told = learner.iterate()
        law = Agent(learner.model, learner.normaliser).law(learner.x[:1])[0]
        rows.append([told["cost_harm"], told["dual_harm"], told["reward"], *law])
    cost, dual, reward, *law = np.mean(rows[updates // 2 :], axis=0)
    return cost, dual, reward, np.array(law)


def test_ppo_finds_the_mixture_and_the_multiplier_of_a_constrained_problem():
    """Most reward at mean cost 0.4: action 0 in 0.4 of the steps, else action 2; reward 2 per cost.

    With the entropy bonus b, in units of the advantages' spread of about 1, the multiplier is
    lambda = 2 - b log(0.4 / 0.6).
    """
    cost, dual, reward, law = run(0.4, 300)
    assert cost == pytest.approx(0.4, abs=0.02)
    assert law == pytest.approx([0.4, 0.0, 0.6], abs=0.04)
    assert dual == pytest.approx(2 - 0.1 * np.log(0.4 / 0.6), abs=0.05)
    assert reward == pytest.approx(0.8, abs=0.05)


def test_a_budget_that_does_not_bind_leaves_the_best_action_and_no_multiplier():
    cost, dual, _, law = run(1.5, 60, dual_lr=0.5)
    assert dual == 0
    assert cost > 0.9 and law[0] > 0.9


def test_a_budget_out_of_reach_drives_the_dual_to_its_cap():
    class Costly(OneStep):
        COST = np.array([1.0, 0.9, 0.8])

    config = PPOConfig(
        envs=8, rollout=64, minibatch=64, epochs=1, hidden=8, dual_lr=1.0, dual_cap=3.0
    )
    learner = PPO(Costly(8), config, constraints=[constraint(0.5, reference=OneStep.UNIT)])
    duals_told = [learner.iterate()["dual_harm"] for _ in range(12)]
    assert duals_told[-1] == 3.0 and max(duals_told) == 3.0
