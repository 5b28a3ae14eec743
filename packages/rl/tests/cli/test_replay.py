"""`rapo rsd` on what is not a graph: platforms, runs on them, and environments of the user."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from rapo import cli
from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import RunConfig
from rapo.agents.saved_run import load_agent
from rapo.agents.train import train
from rapo.rsd.runner import evaluate

KWARGS = {"data": "stand-in", "horizons": [40, 10, 40]}
SMALL = PPOConfig(envs=4, rollout=64, minibatch=32, epochs=1, hidden=8)
QUICK = ("--episodes", 2, "--horizons", "20,5,20")
MODULE = '''
import gymnasium
import numpy as np


class Echo(gymnasium.Env):
    """Harm follows the action; the memory of earlier harm answers it."""

    observation_space = gymnasium.spaces.Box(0, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    stimuli = 2

    def __init__(self, echo=0.5):
        self.echo, self.scar = echo, 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.scar, self.stimulus, self.steps = 0.0, 1, 0
        return self.seen(), {}

    def activate(self, stimulus):
        self.stimulus = stimulus

    def deactivate(self):
        self.stimulus = 0

    def reset_observable(self, seed=None):
        self.steps = 0
        return self.seen()

    def seen(self):
        return np.array([self.steps, self.scar], np.float32)

    def step(self, action):
        harm = float(action) + self.echo * self.scar
        self.scar = 0.9 * self.scar + 0.1 * float(action)
        self.steps += 1
        harm *= self.stimulus > 0
        info = {"cost": harm, "harm": harm, "reach": harm, "sensitive_mass": harm}
        return self.seen(), float(action), False, self.steps >= 60, info


gymnasium.register("test/Echo-v0", Echo)
'''


@pytest.fixture
def rapo(monkeypatch, capsys, tmp_path):
    """Run the command in an empty folder; exit code and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["rapo", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0, capsys.readouterr().err

    return run


def test_a_policy_trained_on_a_platform_is_evaluated_there(rapo, tmp_path):
    config = RunConfig(method="RAPO", env="rapo/Routing-v0", env_kwargs=KWARGS, steps=64, ppo=SMALL)
    train(config, tmp_path / "run")
    code, error = rapo("rsd", "run", *QUICK, "--out", "result")
    assert code == 0, error
    policy, config = load_agent(tmp_path / "run")
    direct = evaluate(resolve(config).environment(1), policy, 2, horizons=(20, 5, 20))
    frame = pd.read_csv(tmp_path / "result" / "episodes.csv")
    np.testing.assert_allclose(frame["ReplayReturn"], direct.frame["ReplayReturn"], rtol=1e-6)
    manifest = json.loads((tmp_path / "result" / "manifest.json").read_text())
    assert manifest["method"] == "RAPO" and manifest["deformation"] == "full"
    code, error = rapo("rsd", "run", *QUICK, "--method", "off@rep", "--out", "off")
    assert code == 0, error
    off = json.loads((tmp_path / "off" / "manifest.json").read_text())
    assert off["deform_phases"] == [True, True, False]
    words = ("--env", "rapo/Routing-v0", "--env-kwargs", json.dumps(KWARGS))
    code, error = rapo("rsd", "run", *words, "--platform-seed", 7, *QUICK, "--out", "other")
    assert code == 0, error
    other = pd.read_csv(tmp_path / "other" / "episodes.csv")
    assert (other["ReplayReturn"] != frame["ReplayReturn"]).any()
    code, error = rapo("rsd", "run", "--nodes", 50)
    assert code == 2 and "was trained on rapo/Routing-v0" in error


def test_actions_by_number_on_a_platform(rapo, tmp_path):
    words = ("--env", "rapo/Routing-v0", "--env-kwargs", json.dumps(KWARGS), *QUICK)
    code, error = rapo("rsd", 1, *words, "--deformation", "off", "--out", "result")
    assert code == 0, error
    assert (tmp_path / "result" / "episodes.csv").exists()
    for policy, message in (("9", "action must be in 0..3"), ("aggressive", "choose 0..3")):
        code, error = rapo("rsd", policy, *words)
        assert code == 2 and message in error
    code, error = rapo("rsd", 1, *words, "--nodes", 50)
    assert code == 2 and "nodes are for graphs" in error


@pytest.mark.parametrize("env", ["echo_of_mine:Echo", "echo_of_mine:test/Echo-v0"])
def test_an_environment_of_ones_own_and_a_policy_trained_on_it(rapo, tmp_path, env, monkeypatch):
    (tmp_path / "echo_of_mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    code, error = rapo("rsd", 1, "--env", env, "--env-kwargs", '{"echo": 1.0}', *QUICK)
    assert code == 0, error
    ppo = PPOConfig.for_gymnasium(envs=2, rollout=64, minibatch=32, epochs=1, hidden=8)
    train(
        RunConfig(method="GE", env="echo_of_mine:test/Echo-v0", steps=64, ppo=ppo), tmp_path / "run"
    )
    code, error = rapo("rsd", "run", *QUICK, "--out", "own")
    assert code == 0, error
    assert (pd.read_csv(tmp_path / "own" / "episodes.csv")["ReplayReturn"] > 0).all()
    code, error = rapo("rsd", "run", "--env", env, *QUICK)
    assert code == 0, error
    code, error = rapo("rsd", "run", "--method", "RAPO")
    assert code == 2 and "leave --method" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--env", "rapo/Nothing-v0"), "Nothing"),
        (("--env", "no_such_module:Env"), "no_such_module"),
        (("--env", "math:pi"), "math:pi is not an environment"),
        (("--env", "rapo/Routing-v0", "--env-kwargs", '{"roads": 3}'), "roads"),
        (("--env", "rapo/Routing-v0", "--env-kwargs", "[1]"), "JSON object"),
        (("--env", "rapo/Routing-v0", "--threshold", "1"), "--threshold is for runs"),
        (("--platform-seed", "1"), "needs --env with a platform"),
    ],
)
def test_bad_environments_are_one_line(rapo, tmp_path, words, message):
    code, error = rapo("rsd", "0", *words)
    assert code == 2 and message in error and len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
