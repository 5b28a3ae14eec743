"""Budgets per episode: duals by hand, budgets that are met, units that do not matter."""

import numpy as np
import pytest

from rapo.agents.config import PPOConfig
from rapo.agents.episode_budget import SMALLEST_SPREAD, EpisodeBudget, EpisodeDuals
from rapo.agents.resolve import resolve
from rapo.agents.run_config import RunConfig

SMALL = PPOConfig.for_gymnasium(envs=4, rollout=320, epochs=4, hidden=16, lr=3e-3, dual_lr=0.1)


ENV = "foreign_envs:test/Ladder-v0"


def ladder(method="SS", budget=3.4, **changes):
    options = {"cost": "info:toll", "budget": budget} if method != "GE" else {}
    return RunConfig(**{"method": method, "env": ENV, "ppo": SMALL, **options, **changes})


def budget_of(budget):
    return EpisodeBudget(name="toll", key="cost", reference=1, budget=budget, decay=0.9, gamma=0.9)


def test_duals_climb_by_the_relative_excess_of_an_episode():
    duals = EpisodeDuals([budget_of(25.0)], 0.1, 0.0, 2.0)
    for cost, value in (
        (50.0, 0.1), (25.0, 0.1), (np.nan, 0.1), (5000.0, 0.2), (30.0, 0.22), (0.0, 0.12),
        (0.0, 0.02), (0.0, 0.0),
    ):  # fmt: skip
        duals.ascend(np.array([cost]))
        assert duals.values == pytest.approx([value])
    for _ in range(30):
        duals.ascend(np.array([60.0]))
    assert duals.values == [2.0]


def test_advantages_are_weighed_in_units_of_their_spread():
    duals = EpisodeDuals([budget_of(25.0)], 0.1, 0.5, 2.0)
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(500, 2)).astype(np.float32)
    plain = parts / parts.std(axis=0)
    expected = (plain[:, 0] - 0.5 * plain[:, 1]) / 1.5
    assert np.allclose(duals.weigh(parts * np.float32([1000, 30])), expected, atol=1e-4)
    faint = parts * np.float32([1, 1e-6])  # a cost that hardly occurs stays faint
    floor = SMALLEST_SPREAD / (1 - 0.9)
    expected = (plain[:, 0] - 0.5 * faint[:, 1] / floor) / 1.5
    assert np.allclose(duals.weigh(faint), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("cost", "weight"), [(30.0, 0.72), (5.0, 0.0), (250.0, 1.6), (np.nan, 0.5)]
)
def test_the_last_excess_weighs_at_once(cost, weight):
    duals = EpisodeDuals([budget_of(25.0)], 0.1, 0.5, 2.0)
    duals.ascend(np.array([cost]))
    parts = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    plain = parts / parts.std(axis=0)
    expected = (plain[:, 0] - weight * plain[:, 1]) / (1 + weight)
    assert np.allclose(duals.weigh(parts), expected, atol=1e-4)


def test_a_learners_dual_follows_the_episodes_that_ended():
    learner = resolve(ladder()).learner()
    seen, ended = [], learner.env.ended
    learner.env.ended = lambda: seen.append(ended()) or seen[-1]
    value = 0.0
    for _ in range(6):
        told = learner.iterate()
        mean = seen[-1].mean(axis=0)
        assert len(seen[-1]) == 4 * 8
        value = np.clip(value + 0.1 * np.clip(mean[1] / 3.4 - 1, -1, 1), 0, 10)
        assert told["cost_toll"] == pytest.approx(mean[1])
        assert told["return"] == pytest.approx(mean[0]) and told["length"] == 10
        assert told["dual_toll"] == pytest.approx(value)
    assert value > 0


def test_a_rollout_without_an_end_leaves_the_dual_alone():
    ppo = PPOConfig.for_gymnasium(rollout=4, minibatch=4, dual_lr=1.0)
    learner = resolve(ladder(ppo=ppo)).learner()
    told = [learner.iterate() for _ in range(5)]
    duals, costs = ([row[key] for row in told] for key in ("dual_toll", "cost_toll"))
    assert duals[0] == duals[1] == 0 and duals[3] == duals[2]
    assert np.isnan(costs[:2]).all() and costs[3] == costs[2] != costs[4]


def test_the_unit_of_the_cost_does_not_matter():
    learners = [
        resolve(ladder(budget=3.4 * unit, env_kwargs={"unit": unit})).learner()
        for unit in (1.0, 1024.0)
    ]
    for _ in range(5):
        one, two = (learner.iterate() for learner in learners)
    assert one["dual_toll"] == two["dual_toll"] > 0
    assert two["cost_toll"] == pytest.approx(1024 * one["cost_toll"])
    assert np.array_equal(*(learner.buffer.values.numpy() for learner in learners))


def trained(config, updates=150):
    learner = resolve(config).learner()
    last = [learner.iterate() for _ in range(updates)][-updates // 5 :]
    return {name: np.mean([row[name] for row in last]) for name in last[0]}


def test_a_budget_is_met_at_a_price_and_without_one_it_is_not():
    """Six rungs for 3.33 of 3.4 are the best that a budget can buy; all ten cost 10."""
    free = trained(ladder("GE"), 50)
    assert free["return"] > 9.5
    paid = trained(ladder(), 100)
    assert 2.7 < paid["cost_toll"] < 3.75
    assert 5.2 < paid["return"] < 6.5
    assert paid["dual_toll"] > 0.05
