"""Trained policies, frozen: their laws, their memory, and what they do under the diagnostic."""

import numpy as np
import pytest

import rapo
from rapo.agents.agent import Agent
from rapo.agents.config import PPOConfig
from rapo.agents.methods import SHIELD_THRESHOLD
from rapo.agents.resolve import EpisodeRun, resolve
from rapo.agents.saved_run import load_agent
from rapo.agents.shield import Shield
from rapo.agents.train import train
from rapo.cascade.setting import Setting


@pytest.mark.parametrize("method", ["RAPO", "PM-RNN"])
def test_a_loaded_agent_has_the_law_of_the_learner(tmp_path, monkeypatch, method, config):
    learners, build = [], EpisodeRun.learner
    monkeypatch.setattr(
        EpisodeRun, "learner", lambda run: learners.append(build(run)) or learners[-1]
    )
    train(config(method), tmp_path)
    (learner,) = learners
    agent, made = load_agent(tmp_path)
    assert made == resolve(config(method)).config
    theirs = Agent(learner.model, learner.normaliser)
    env = resolve(made).environment(5)
    x, _ = env.reset(seed=9)
    for t in range(30):
        law = agent.law(x)
        assert np.array_equal(law, theirs.law(x))
        assert law.shape == (5, 3) and np.allclose(law.sum(axis=1), 1)
        x = env.step(np.full(5, t % 3))[0]
    assert np.ptp(law) > 1e-4  # a uniform law would say nothing


def test_a_recurrent_agents_law_depends_on_history_until_it_is_reset(trained_rnn):
    agent, _ = load_agent(trained_rnn)
    x = np.full((2, 5), 0.4, np.float32)
    agent.reset(2)
    first = agent.law(x)
    second = agent.law(x)
    assert np.abs(first - second).max() > 1e-6
    agent.reset(2)
    assert np.array_equal(agent.law(x), first)
    assert np.array_equal(agent.law(x), second)
    agent.law(np.zeros((2, 5), np.float32))
    agent.reset(2)
    agent.law(x + [[0.0], [0.3]])  # another past of the second episode
    law = agent.law(x)
    assert np.allclose(law[0], second[0], atol=1e-6)
    assert np.abs(law[1] - second[1]).max() > 1e-6


def test_an_agent_without_memory_does_not_look_back(trained_ss):
    agent, _ = load_agent(trained_ss)
    x = np.random.default_rng(0).random((4, 5)).astype(np.float32)
    first = agent.law(x)
    agent.law(1 - x)
    assert np.array_equal(agent.law(x), first)


def test_observations_of_another_size_are_refused(trained_ss):
    agent, _ = load_agent(trained_ss)
    with pytest.raises(ValueError, match=r"observations of 5 entries, got shape \(2, 6\)"):
        agent.law(np.zeros((2, 6)))


def coupled(made, out):
    train(made, out)
    agent, _ = load_agent(out)
    return agent, rapo.rsd.evaluate(
        resolve(made).evaluation(), agent, episodes=3, coupled=True
    ).frame


RATIOS = ["RAG", "AUC_R", "SM_R"]


@pytest.mark.parametrize("method", ["GE", "SS", "DR", "PM-RNN", "Shield"])
def test_under_p0_a_policy_of_x_alone_replays_exposure_exactly(tmp_path, method, config):
    # with all stimuli inside V_sens even a Shield cannot keep Exposure out of it: no ratio is NaN
    given = config().setting
    inside = Setting.named("compact").replace(
        horizons=given.horizons, delay=given.delay, budget=given.budget
    )
    agent, frame = coupled(config(method, 4, setting=inside), tmp_path)
    assert isinstance(agent, Shield if method == "Shield" else Agent)
    assert frame[RATIOS].to_numpy() == pytest.approx(np.ones((3, 3)), abs=1e-6)
    assert (frame["ASD"] == 0).all()
    assert frame["ReplayReturn"].to_numpy() == pytest.approx(frame["ExposureReturn"].to_numpy())


def test_under_the_deformed_kernel_a_coupled_replay_differs(tmp_path, config):
    """What makes the test above one that can fail."""
    _, frame = coupled(config("RAPO", 4), tmp_path)
    assert (np.abs(frame[RATIOS].to_numpy() - 1) > 1e-3).any()


def test_the_fixed_shield_is_loaded_with_its_threshold_and_unit(tmp_path, config):
    made = config("Shield", 1)
    train(made, tmp_path)
    shield, _ = load_agent(tmp_path)
    assert isinstance(shield, Shield) and isinstance(shield.policy, Agent)
    assert shield.threshold == SHIELD_THRESHOLD
    assert shield.reference == resolve(made).references()["sensitive_mass"]


class Uniform:
    batched = True

    def __call__(self, x):
        raise AssertionError("its law is asked instead")

    def law(self, x):
        return np.full((len(x), 3), 1 / 3)


class Always:
    batched = True

    def __init__(self, action):
        self.action = action

    def __call__(self, x):
        return np.full(len(x), self.action)


def test_reward_alone_learns_at_least_what_fixed_policies_reach(tmp_path, config):
    """On held-out episodes; sampled, a policy that still explores a little is just below."""
    # serving more pays clearly
    short = {"horizons": config().setting.horizons, "delay": config().setting.delay}
    paying = Setting.named("compact").replace(rates=(0.7, 0.35, 0.15), kappa_s=0.5, **short)
    ppo = PPOConfig(hidden=64, lr=1e-3)
    made = config("GE", nodes=60, setting=paying, ppo=ppo, steps=80_000)
    train(made, tmp_path)
    agent, _ = load_agent(tmp_path)

    def earned(policy, **options):
        frame = rapo.rsd.evaluate(
            resolve(made).evaluation(), policy, episodes=64, seed=5000, **options
        ).frame
        return (frame["ExposureReturn"] + frame["ReplayReturn"]).mean()

    learned, uniform = earned(agent), earned(Uniform())
    constant = [earned(Always(action)) for action in range(3)]
    assert learned > 1.1 * uniform
    second, best = sorted(constant)[1:]
    assert earned(agent, deterministic=True) >= 0.9999 * best
    assert learned > 0.97 * best
    assert learned > 1.05 * second  # which would not pass
