"""Runs on foreign environments: what they are made of, leave behind, go on from and load as."""

import json

import numpy as np
import pandas as pd
import pytest
from gymnasium.vector import SyncVectorEnv

from rapo.agents import PPO, PPOConfig, load_agent
from rapo.agents.agent import Agent
from rapo.agents.env_agent import play
from rapo.agents.ppo import TRAINING_SEEDS
from rapo.agents.resolve import resolve
from rapo.agents.run_config import RunConfig
from rapo.agents.saved_run import load_run, load_state
from rapo.agents.train import train

TINY = PPOConfig.for_gymnasium(envs=2, rollout=64, minibatch=32, epochs=2, hidden=8)
ENV = "foreign_envs:test/Ladder-v0"


def pays_twice(observation, action, info):
    return 2 * info["toll"]


def made(method="SS", **changes):
    costs = {} if method == "GE" else {"cost": "info:toll", "budget": 3.0}
    costs |= {"delay": 5} if method == "DR" else {}
    return RunConfig(
        **{"method": method, "env": ENV, "ppo": TINY, "steps": 6 * 64, **costs, **changes}
    )


@pytest.mark.parametrize("config", [made(), made("GE"), made("DR", seed=3), made(cost=pays_twice)])
def test_a_config_survives_json(config):
    again = RunConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again.to_dict() == config.to_dict()
    assert again.cost_label == config.cost_label
    if not callable(config.cost):
        assert again == config


def test_the_cost_is_named_after_its_key_or_function():
    assert made().cost_label == "toll"
    assert made(cost=pays_twice).cost_label == "pays_twice"
    assert made(cost="my.platform:harm").cost_label == "harm"


def test_delayed_costs_are_carried_back_over_their_delay():
    def decay(config):
        return resolve(config).constraints()[0].decay

    own = TINY.cost_gamma * TINY.gae_lambda
    assert decay(made()) == decay(made("DR", delay=5)) == own
    assert decay(made("DR", delay=40)) == 1 - 1 / 40
    assert decay(made("DR", delay=10**6)) == TINY.cost_gamma


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"method": "RAPO"}, "RAPO needs the graph environment"),
        ({"method": "PM-ST"}, "PM-ST needs the graph environment"),
        ({"method": "SSS"}, "no method is called 'SSS'"),
        ({"budget": None}, "needs a budget"),
        ({"cost": None}, "needs a cost"),
        ({"budget": 0.0}, "budget must be"),
        ({"budget": np.nan}, "budget must be"),
        ({"method": "GE"}, "GE pays nothing"),
        ({"delay": 3}, "SS takes no delay"),
        ({"method": "DR"}, "DR needs a delay"),
        ({"steps": 0}, "steps must be"),
    ],
)
def test_what_makes_no_run_is_named(changes, named):
    with pytest.raises(ValueError, match=named):
        RunConfig(**{"method": "SS", "env": ENV, "cost": "info:toll", "budget": 3.0, **changes})


def test_a_run_leaves_its_files_and_a_verdict(tmp_path):
    summary = train(made(), tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    assert load_run(tmp_path).config == made()
    rows = pd.read_csv(tmp_path / "progress.csv")
    assert len(rows) == 6 and rows["steps"].iloc[-1] == summary["steps"] == 384
    toll = summary["budgets"]["toll"]
    assert toll["cost"] == pytest.approx(rows["cost_toll"].iloc[-1], rel=1e-3)
    assert toll["budget"] == 3 and toll["met"] == (toll["cost"] <= 3.3)
    assert toll["dual"] == pytest.approx(rows["dual_toll"].iloc[-1])
    assert summary["return"] == pytest.approx(rows["return"].iloc[-1], rel=1e-3)
    assert train(made("GE"), tmp_path / "free")["budgets"] == {}


def test_a_bad_cost_is_found_before_a_folder_is_made(tmp_path):
    with pytest.raises(ValueError, match="info has no 'fuel'"):
        train(made(cost="info:fuel"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_goes_on_from_its_weights_with_new_episodes(tmp_path, monkeypatch):
    train(made(steps=3 * 64), tmp_path / "one")
    before = load_state(tmp_path / "one")
    starts, iterate = [], PPO.iterate

    def watched(learner):
        starts.append((learner.updates, learner.buffer.values.clone(), learner.duals.values.copy()))
        return iterate(learner)

    monkeypatch.setattr(PPO, "iterate", watched)
    ends = []
    for name in ("one", "two"):
        if name == "two":
            train(made(steps=3 * 64), tmp_path / "two")
            starts.clear()
        train(made(), tmp_path / name, resume=True)
        updates, weights, duals = starts[0]
        assert updates == 3 and np.array_equal(weights, before["weights"])
        assert np.array_equal(duals, before["duals"]) and duals > 0
        ends.append(load_state(tmp_path / name))
        assert len(pd.read_csv(tmp_path / name / "progress.csv")) == 6
    assert ends[0]["updates"] == 6
    assert np.array_equal(ends[0]["weights"], ends[1]["weights"])
    assert not np.array_equal(ends[0]["weights"], before["weights"])


def test_episodes_after_a_resume_were_met_in_no_training():
    envs, begun = TINY.envs, []
    for seed in (0, 1, 2):
        for updates in (0, 1, 2):
            learner = resolve(made(seed=seed)).learner()
            reset = learner.env.reset

            def watched(*, seed, reset=reset):
                begun.append(seed - TRAINING_SEEDS)
                return reset(seed=seed)

            learner.env.reset = watched
            learner.load({**learner.save(), "updates": updates})
    assert min(begun) == 0 and len(begun) == 9
    assert np.diff(sorted(begun)).min() >= envs  # the copies' seeds follow one another
    # and a rollout begins at most as many episodes as it has steps
    assert begun[1] - begun[0] == begun[2] - begun[1] > 1000 * TINY.rollout


def test_new_episodes_begin_at_their_first_step(tmp_path):
    learner = resolve(made(ppo=PPOConfig.for_gymnasium(rollout=64 + 5))).learner()
    learner.iterate()
    assert learner.x[0].argmax() == 9
    state, again = learner.save(), resolve(made(ppo=learner.config)).learner()
    again.load(state)
    assert again.x[0].argmax() == 0 and again.updates == 1
    assert again.env.meters[0].env.unwrapped.rung == 0


def test_another_config_is_refused(tmp_path):
    train(made(steps=64), tmp_path)
    with pytest.raises(ValueError, match=r"budget 3.0 -> 4.0"):
        train(made(budget=4.0), tmp_path, resume=True)
    with pytest.raises(ValueError, match="holds a run"):
        train(made(), tmp_path)


def test_a_run_loads_as_a_policy_for_the_environments_own_observations(tmp_path):
    config = made(env="foreign_envs:test/Odd-v0", cost="info:spent", seed=2)
    train(config, tmp_path)
    agent, again = load_agent(tmp_path)
    assert again == config
    learner = resolve(config).learner()
    learner.load(load_state(tmp_path))
    seen = {"a": np.array([0.25, 0.25], np.float32), "b": 1}
    law = Agent(learner.model, learner.normaliser).law(np.array([[0.25, 0.25, 0, 1, 0]]))[0]
    assert np.allclose(agent.law(seen), law)
    assert np.ptp(law) > 1e-4
    assert agent.act(seen, greedy=True) == 5 + law.argmax()
    drawn = np.bincount([agent.act(seen) - 5 for _ in range(3000)], minlength=3) / 3000
    assert np.allclose(drawn, law, atol=0.04)
    assert agent.predict(seen, deterministic=True)[0] == 5 + law.argmax()
    assert agent.predict([seen, seen])[0].shape == (2,)


def test_whole_episodes_are_played_with_any_cost(tmp_path):
    config = made("GE")
    train(config, tmp_path)
    agent, _ = load_agent(tmp_path)
    found = play(agent, config, cost="info:toll", episodes=5, greedy=True)
    assert found.shape == (5, 3) and (found[:, 2] == 10).all() and np.ptp(found[:, 0]) == 0
    seen = [agent.act(rung, greedy=True) for rung in range(10)]
    assert found[0, 0] == sum(seen)
    assert found[0, 1] == pytest.approx(sum(a * r / 4.5 for r, a in enumerate(seen)))
    drawn = play(agent, config, cost=lambda observation, action, info: action, episodes=300)
    assert np.array_equal(drawn[:, 0], drawn[:, 1])
    expected = sum(agent.law(rung)[1] for rung in range(10))
    assert drawn[:, 0].mean() == pytest.approx(expected, abs=0.4)
    again = play(agent, config, episodes=300)
    assert np.array_equal(again[:, 0], drawn[:, 0]) and not again[:, 1].any()


def test_no_episode_that_is_played_was_met_in_training(tmp_path, monkeypatch):
    seen, reset = [], SyncVectorEnv.reset

    def watched(self, *, seed=None, options=None):
        seen.append(seed)
        return reset(self, seed=seed, options=options)

    monkeypatch.setattr(SyncVectorEnv, "reset", watched)
    config = made("GE")
    train(config, tmp_path)
    agent, _ = load_agent(tmp_path)
    trained = {s for seeds in seen if seeds for s in seeds}
    seen.clear()
    play(agent, config, episodes=6)
    assert len(trained) == config.ppo.envs and len(seen[0]) == 6
    assert not trained & set(seen[0])
