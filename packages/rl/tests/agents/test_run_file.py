"""`run.toml`: what a run writes repeats it to the bit, and what is wrong in one is named."""

import tomllib

import networkx
import numpy as np
import pytest

from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import RunConfig, graph_run
from rapo.agents.run_file import config_of, read_run, write_run
from rapo.agents.saved_run import load_state
from rapo.agents.train import train
from rapo.cascade.setting import Setting
from rapo.graphs.load import from_networkx
from rapo_core.params import FieldParams

TINY = PPOConfig(envs=4, rollout=64, minibatch=32, epochs=1, hidden=8)
FOREIGN = {"steps": 128, "seed": 3, "ppo": TINY, "track": ("tensorboard",)}


def weights(folder):
    return load_state(folder)["weights"]


def repeated(config, tmp_path):
    """The config and the weights of a run, and those of the run that its file stands for."""
    train(config, tmp_path / "first")
    again = read_run(tmp_path / "first" / "run.toml")
    train(again, tmp_path / "second")
    assert again.to_dict() == resolve(config).config.to_dict()
    assert np.array_equal(weights(tmp_path / "first"), weights(tmp_path / "second"))
    one, two = ((tmp_path / name / "run.toml").read_text() for name in ("first", "second"))
    assert one == two
    return again


@pytest.mark.parametrize("method", ["GE", "DR", "PM-RNN", "RAPO"])
def test_a_run_on_a_generated_graph_is_repeated_to_the_bit(method, tmp_path, config):
    made = config(method, 2, seed=5, graph_seed=1, params=FieldParams(w_H=4.0, tau=1 / 3))
    assert repeated(made, tmp_path).params.tau == 1 / 3
    values = tomllib.loads((tmp_path / "first" / "run.toml").read_text())
    assert values["env_kwargs"]["setting"]["delay"] == made.setting.delay


def test_a_shield_is_repeated_with_its_threshold(tmp_path, config):
    assert repeated(config("Shield", 1, threshold=0.3), tmp_path).threshold == 0.3


def test_a_fitted_run_is_repeated_without_fitting_anew(tmp_path, config, monkeypatch):
    path = tmp_path / "karate.npz"
    from_networkx(networkx.karate_club_graph(), stimuli=4).save(path)
    made = config("RAPO", 1, nodes=None, graph=str(path))
    settled = made.with_env(fit=_fit(path, made))
    monkeypatch.setattr("rapo.graphs.fit.fit", lambda *a, **k: pytest.fail("fitted anew"))
    again = repeated(settled, tmp_path).env_kwargs["fit"]
    assert again.regions.tolist() == settled.env_kwargs["fit"].regions.tolist()


def _fit(path, made):
    from rapo.graphs.fit import fit
    from rapo.graphs.load import read_graph

    return fit(read_graph(str(path)), setting=made.setting)


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(method="GE", env="CartPole-v1", **FOREIGN),
        RunConfig(method="SS", env="CartPole-v1", cost="delayed:leaning", budget=2.5, **FOREIGN),
        RunConfig(method="RAPO", env="rapo/Routing-v0", budget=0.7,
                       env_kwargs={"seed": 1000, "sources": None}, **FOREIGN),
    ],
    ids=["GE", "SS", "platform"],
)  # fmt: skip
def test_configs_of_environments_come_back_the_same(config, tmp_path):
    write_run(tmp_path / "run.toml", config)
    assert read_run(tmp_path / "run.toml") == config


def test_a_run_on_an_environment_is_repeated_to_the_bit(tmp_path):
    repeated(RunConfig(method="GE", env="CartPole-v1", **{**FOREIGN, "track": ()}), tmp_path)


def test_what_a_file_leaves_out_is_as_the_command_has_it():
    assert config_of({"method": "RAPO"}) == RunConfig(method="RAPO")
    env = config_of({"method": "GE", "env": "CartPole-v1", "ppo": {"lr": 0.1}})
    assert env == RunConfig(method="GE", env="CartPole-v1", ppo=PPOConfig.for_gymnasium(lr=0.1))
    changed = config_of({"method": "GE", "env_kwargs": {"setting": {"delay": 7}, "nodes": 30}})
    assert changed == graph_run(method="GE", nodes=30, setting=Setting.default().replace(delay=7))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("seed = 30", ["method"]),
        ("method = 'RAPO'\nsteeps = 3", ["steeps", "steps"]),
        ("method = 'RAPO'\n[env_kwargs.setting]\nkapa = 1", ["setting.kapa", "kappa"]),
        ("method = 'RAPO'\n[env_kwargs.params]\nw_h = 1", ["params.w_h", "w_H"]),
        ("method = 'RAPO'\n[ppo]\nrate = 1", ["ppo.rate", "lr"]),
        ("method = 'RAPO'\nseed = 'many'", ["seed", "a whole number", "'many'"]),
        ("method = 'RAPO'\nseed = true", ["seed", "a whole number", "True"]),
        ("method = 'RAPO'\nenv_kwargs = {nodes = 0}", ["nodes", ">= 1", "0"]),
        ("method = 'RAPO'\nenv_kwargs = {setting = 3}", ["setting", "a table", "3"]),
        ("method = 'RAPO'\n[ppo]\nlr = -1", ["lr", "> 0", "-1"]),
        ("method = 'RAPO'\n[ppo]\nlr = 'fast'", ["lr", "a number", "fast"]),
        ("method = 'RAPO'\n[env_kwargs.setting]\ndelay = 0", ["delay", ">= 1", "0"]),
        ("method = 'RAPO'\n[env_kwargs.params]\nw_H = 'big'", ["w_H", "big"]),
        ("method = 'RAPO'\n[env_kwargs.fit]\nspec = 'node'", ["fit"]),
        ("method = 'RUPO'", ["RUPO", "RAPO"]),
        ("method = 3", ["method", "text", "3"]),
        ("method = 'SS'\nenv = 'CartPole-v1'\nbudget = 'low'", ["budget", "a number", "low"]),
        ("method = 'RAPO'\nenv = 'rapo/Routing-v0'\ndelay = 3", ["delay 3"]),
        ("method = ", ["TOML"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_the_field_and_what_is_allowed(text, names, tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"my\.toml") as caught:
        read_run(path)
    told = str(caught.value)
    assert all(name in told for name in names) and "\n" not in told


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.toml"):
        read_run(tmp_path / "nowhere.toml")


def test_a_prolonged_run_writes_its_new_length(tmp_path, config):
    train(config("GE", 1), tmp_path)
    train(config("GE", 2), tmp_path, resume=True)
    assert tomllib.loads((tmp_path / "run.toml").read_text())["steps"] == 512
