"""Delayed costs: which steps are learned from when, what of them, and that it lowers the cost."""

import numpy as np
import pytest
import torch
from delayed import DELAY, LENGTH, Delayed, constraints, mean_cost
from forward_sum import reference_advantages
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import Counting, collected, linear_critic

from rapo.agents import ppo as ppo_module
from rapo.agents.agent import Agent
from rapo.agents.config import PPOConfig
from rapo.agents.lagrangian import Constraint
from rapo.agents.ppo import PPO

SHARE = 0.4
LEARNS = PPOConfig(
    envs=32, rollout=2048, minibatch=512, epochs=4, hidden=16, lr=3e-3, gamma=0.95, cost_gamma=0.95,
    entropy=0.1,
    dual_lr=0.1, dual_cap=1.5 * mean_cost("cost", 1),
)  # fmt: skip
"""At most half more than the known multiplier: the credit must be worth what it should."""


def learned(method, lagged, updates=80):
    """Means over the second half: told, and how often each kind of content is served."""
    paid = constraints(method, SHARE, LEARNS.cost_gamma, LEARNS.gae_lambda, lagged=lagged)
    learner = PPO(Delayed(LEARNS.envs), LEARNS, constraints=paid)
    rows, laws = [], []
    for _ in range(updates):
        rows.append(learner.iterate())
        agent = Agent(learner.model, learner.normaliser)
        laws.append(agent.law(np.array([[0, 0], [1, 0]], np.float32))[:, 1])
    last = slice(updates // 2, None)
    return {name: np.mean([row[name] for row in rows[last]]) for name in rows[0]}, np.mean(
        laws[last], axis=0
    )


@pytest.mark.parametrize("method", ["SS", "DR", "PM-ST"])
def test_credit_from_the_first_cause_on_finds_the_known_optimum_and_other_credit_does_not(method):
    told, (harmless, risky) = learned(method, lagged=True)
    budget = mean_cost("cost", SHARE) / mean_cost("cost", 1)
    for name in told:
        if name.startswith("cost"):
            assert told[name] == pytest.approx(budget, abs=0.04)
    assert harmless > 0.95 and risky == pytest.approx(SHARE, abs=0.08)
    assert told["reward"] == pytest.approx((1 + SHARE) / 2, abs=0.03)
    told, (_, risky) = learned(method, lagged=False, updates=50)
    assert risky > 0.85
    for name in told:
        if name.startswith("cost"):
            assert told[name] > 0.85
        if name.startswith("dual"):
            assert told[name] > 0.95 * LEARNS.dual_cap


def test_the_known_costs_are_what_the_policy_of_the_optimum_pays():
    env, rng = Delayed(2000), np.random.default_rng(1)
    env.reset(seed=0)
    env.clock[:] = 0
    totals = dict.fromkeys(("cost", "cost_G", "cost_H"), 0.0)
    for _ in range(LENGTH):
        served = ~env.risky | (rng.random(2000) < SHARE)
        info = env.step(served.astype(int))[4]
        for key in totals:
            totals[key] += info[key].mean() / LENGTH
    for key, total in totals.items():
        assert total == pytest.approx(mean_cost(key, SHARE), rel=0.01)


class Costly(Counting):
    """Shows 1, 2, ... as `Counting` does, with costs at random."""

    length = 7

    def step(self, actions):
        *told, info = super().step(actions)
        costs = self.rng.random((2, self.num_envs))
        self.taken = [*getattr(self, "taken", []), (actions.copy(), costs[0], *told[2:4])]
        self.told = [*getattr(self, "told", []), np.array([told[1], *costs]).T]
        return *told, {**info, "cost": costs[0], "other": costs[1]}


class Truncated(Costly):
    terminates = False


class Mixed(Costly):
    terminates = [True, False, False, True]  # noqa: RUF012


def learner_of(env, lags=(3, 0), length=16, **options):
    config = PPOConfig(**{
        "envs": 4, "rollout": 4 * length, "minibatch": 32, "epochs": 2, "hidden": 8, "gamma": 0.9,
        "cost_gamma": 0.95, "dual_start": 1.0, **options.pop("ppo", {}),
    })  # fmt: skip
    paid = [
        Constraint(key, key, reference=1.0, budget=0.1, decay=0.8, lag=lag)
        for key, lag in zip(("cost", "other"), lags, strict=True)
    ]
    return PPO(env, config, constraints=paid, **options)


@pytest.mark.parametrize(("lag", "sizes"), [(3, [13, 16, 16, 16]), (16, [0, 16, 16, 16]),
                                            (37, [0, 0, 11, 16]), (0, [16] * 4)])  # fmt: skip
@pytest.mark.parametrize("network", ["mlp", "gru"])
def test_every_step_is_learned_from_once_when_its_costs_are_in(lag, sizes, network):
    learner = learner_of(Truncated(4), (lag, 0), network=network, ppo={"bptt": 5})
    rollouts, weights = [], [learner.buffer.values.clone()]
    collect = learner.collect
    learner.collect = lambda rng: rollouts.append(collect(rng)) or rollouts[-1]
    for size in sizes:
        told = learner.iterate()
        weights.append(learner.buffer.values.clone())
        assert np.isnan(told["kl"]) == (size == 0)
        assert torch.equal(weights[-2], weights[-1]) == (size == 0)
    assert [len(rollout.signals) for _, rollout in rollouts] == sizes
    actions = np.concatenate([rollout.actions for _, rollout in rollouts]).reshape(-1, 4)
    costs = np.concatenate([rollout.signals[..., 1] for _, rollout in rollouts])
    taken = np.array([step[0] for step in learner.env.taken])
    arrived = np.array([step[1] for step in learner.env.taken])
    assert len(taken) == 64 and len(actions) == sum(sizes) == 64 - lag
    assert np.array_equal(actions, taken[: len(actions)])
    assert np.allclose(costs, arrived[: len(actions)])
    assert rollouts[-1][1].means[1] == pytest.approx(arrived[-16:].mean())  # the newest steps


@pytest.mark.parametrize("kind", [Truncated, Costly, Mixed])
@pytest.mark.parametrize("lags", [(3, 0), (2, 5), (20, 4)])
def test_advantages_of_a_window_are_those_of_all_the_steps_it_was_cut_from(kind, lags):
    """x counts 1, 2, ... and V(x) = x: the values of every step and every end are known."""
    learner = learner_of(kind(4), lags)
    linear_critic(learner)
    learner.model.critic.values[4][1:, 0] = 1 - 0.95  # costs are worth V(x) = x too
    rollouts = [collected(learner) for _ in range(4)]
    ends = np.array([step[2] | step[3] for step in learner.env.taken])
    terminated = np.array([step[2] for step in learner.env.taken])
    values = np.tile(1.0 + np.arange(64) % 7, (4, 1)).T
    nexts = np.where(terminated, 0, values + 1)
    assert ends.any(axis=1).tolist() == (np.arange(64) % 7 == 6).tolist()
    # the windows as they were: what waited and what was new
    first = 0
    for i, rollout in enumerate(rollouts):
        stop = 16 * (i + 1)
        count = max(0, stop - first - max(lags))
        known_values = (np.repeat(v[first:stop, :, None], 3, axis=2) for v in (values, nexts))
        expected, known = reference_advantages(
            np.array(learner.env.told)[first:stop], *known_values,
            terminated[first:stop], ends[first:stop] & ~terminated[first:stop], [0.9, 0.95, 0.95],
            [0.9 * 0.95, 0.8, 0.8], [0, *lags],
        )  # fmt: skip
        assert len(rollout.signals) == count
        assert np.allclose(rollout.advantages, expected[:count], atol=1e-4)
        assert np.array_equal(rollout.known, known[:count])
        first += count


@pytest.mark.parametrize("terminates", [False, True])
def test_what_never_arrives_teaches_nothing(terminates):
    """Episodes of 7 steps and a lag of 9: cut off, no step is told its cost; ended, it is 0."""
    learner = learner_of(Costly(4) if terminates else Truncated(4), (9, 0), ppo={"entropy": 0.0})
    before = [part.clone() for part in learner.model.policy.values]
    critic = learner.model.critic.values[4].clone()
    for _ in range(3):
        learner.iterate()
    moved = any(
        not torch.equal(a, b) for a, b in zip(before, learner.model.policy.values, strict=True)
    )
    rows = (learner.model.critic.values[4] != critic).any(dim=1)
    assert moved == terminates
    assert rows.tolist() == [True, terminates, True]  # reward and the other cost are known


def test_gains_are_normalised_over_the_steps_that_teach(monkeypatch):
    learner, seen = learner_of(Truncated(4), (3, 0), ppo={"epochs": 1, "minibatch": 64}), []
    plain = ppo_module.policy_gradient

    def watching(logits, actions, log_p, gain, *others):
        seen.append(np.sort(gain))
        return plain(logits, actions, log_p, gain, *others)

    monkeypatch.setattr(ppo_module, "policy_gradient", watching)
    learner.iterate()
    learner.iterate()
    (_, gains) = seen
    taught = gains[gains != 0]
    assert len(gains) == 64 and len(taught) == 4 * sum((13 + i) % 7 < 4 for i in range(16))
    assert taught.mean() == pytest.approx(0, abs=1e-6) and taught.std() == pytest.approx(1)


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32), gamma=st.sampled_from([0.5, 0.9, 0.99]),
    carry=st.sampled_from([0.0, 0.5, 0.9]),
)  # fmt: skip
def test_what_is_new_has_the_discounted_sum_of_the_whole_but_for_what_was_there(seed, gamma, carry):
    """sum_k gamma^k new_{t+k} = sum_k gamma^k c_{t+k} - carry c_{t-1} / (1 - gamma carry)."""
    rng = np.random.default_rng(seed)
    config = PPOConfig(envs=2, rollout=24, minibatch=24, hidden=4, cost_gamma=gamma)
    paid = [Constraint("c", "cost", reference=1.0, budget=1.0, decay=0.5, retained=carry)]
    learner = PPO(Costly(2), config, constraints=paid)
    costs = rng.random((36, 2, 1)).astype(np.float32)
    ends = rng.random((36, 2)) < 0.1
    ends[-1] = True
    # three rollouts, one after the other
    new = np.concatenate([learner._new(costs[i : i + 12], ends[i : i + 12]) for i in (0, 12, 24)])
    for n in range(2):
        start = 0
        for end in np.flatnonzero(ends[:, n]):
            for t in range(start, end + 1):
                discounts = gamma ** np.arange(end + 1 - t)
                left = 0.0 if t == start else costs[t - 1, n, 0]
                rest = carry * gamma ** (end + 1 - t) * costs[end, n, 0]  # to come after the end
                expected = discounts @ costs[t : end + 1, n, 0] + (rest - carry * left) / (
                    1 - gamma * carry
                )
                assert discounts @ new[t : end + 1, n, 0] == pytest.approx(expected, abs=1e-4)
            start = end + 1


def test_duals_and_log_are_of_whole_costs():
    """Whatever is carried over: the constraint is on the cost itself."""
    told = []
    for carry in (0.0, 0.9):
        learner = learner_of(Truncated(4), ppo={"lr": 1e-12})
        learner.constraints = tuple(
            Constraint(
                c.name, c.key, reference=1.0, budget=0.1, decay=0.8, lag=c.lag, retained=carry
            )
            for c in learner.constraints
        )
        told.append([learner.iterate() for _ in range(2)][-1])
    assert told[0]["cost_cost"] == told[1]["cost_cost"] > 0.3
    assert told[0]["dual_cost"] == told[1]["dual_cost"] > 1


def test_a_cost_that_never_occurs_holds_nothing_up():
    learner = learner_of(Truncated(4))
    idle = Constraint("cost", "cost", reference=0.0, budget=0.1, decay=0.8, lag=50)
    learner = PPO(Truncated(4), learner.config, constraints=[idle])
    rollout = collected(learner)
    assert len(rollout.signals) == 16 and rollout.known.all()


@pytest.mark.parametrize("method", ["SS", "PM-ST"])
@pytest.mark.parametrize("length", [64, 16])
def test_a_learner_goes_on_from_what_it_saved_to_the_bit(method, length):
    """Rollouts longer and shorter than the lag; saved with steps that wait, ends among them."""
    config = PPOConfig(envs=16, rollout=16 * length, minibatch=128, epochs=2, hidden=8)

    def made():
        return PPO(Delayed(16), config, constraints=constraints(method, 0.4, 0.99, 0.95))

    whole, first, second = made(), made(), made()
    saved = None
    for update in range(12):
        whole.iterate()
        if update < 7:
            first.iterate()
        if update == 6:
            saved = first.save()
            for _ in range(2):
                first.iterate()  # what was saved is a copy
            second.load(saved)
        if update >= 7:
            second.iterate()
    assert len(saved["incomplete"]["actions"]) == DELAY + (1 if method == "SS" else 2)
    assert len(saved["incomplete"]["ends"]) > 0
    assert torch.equal(whole.buffer.values, second.buffer.values)
    assert np.array_equal(whole.duals.values, second.duals.values)
    assert not torch.equal(whole.buffer.values, first.buffer.values)


@pytest.mark.parametrize("part", ["incomplete", "costs"])
def test_a_checkpoint_without_the_steps_that_wait_is_refused(part):
    config = PPOConfig(envs=8, rollout=512, minibatch=64, epochs=1, hidden=8)
    learner = PPO(Delayed(8), config, constraints=constraints("SS", 0.4, 0.95, 0.95))
    learner.iterate()
    saved = learner.save()
    del saved[part]
    with pytest.raises(ValueError, match=f"lacks.*{part}"):
        learner.load(saved)
