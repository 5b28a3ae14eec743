"""Fixtures of the agents' tests: trainings of a second on a small graph."""

import sys
from pathlib import Path

import pytest

from rapo.agents.config import PPOConfig
from rapo.agents.run_config import graph_run
from rapo.agents.train import train
from rapo.cascade.setting import Setting

sys.path.insert(0, str(Path(__file__).parent))  # for what several tests here share


@pytest.fixture(scope="session")
def config():
    """Makes configs: `config("RAPO", 4)` trains RAPO for four rollouts of 256 steps."""
    short = Setting.default().replace(horizons=(60, 20, 60), delay=10, budget=0.85)
    tiny = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=2, hidden=16)

    def make(method="SS", updates=10, **changes):
        options = {"nodes": 50, "setting": short, "ppo": tiny, "steps": updates * 256, **changes}
        return graph_run(method=method, **options)

    return make


@pytest.fixture(scope="session")
def trained_ss(tmp_path_factory, config):
    """A finished run of SS, two rollouts; not to be changed."""
    out = tmp_path_factory.mktemp("ss")
    train(config(updates=2), out)
    return out


@pytest.fixture(scope="session")
def trained_rnn(tmp_path_factory, config):
    """A finished run of PM-RNN, ten rollouts; not to be changed."""
    out = tmp_path_factory.mktemp("rnn")
    train(config("PM-RNN", 10), out)
    return out
