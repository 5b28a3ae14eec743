"""`run.toml`: what a run writes repeats it to the bit, and what is wrong in one is named."""

import tomllib
from dataclasses import replace

import networkx
import pytest
import torch

from rapo.agents.checkpoint import load_checkpoint
from rapo.agents.config import PPOConfig
from rapo.agents.env_config import EnvConfig
from rapo.agents.platform_config import PlatformConfig
from rapo.agents.run_file import Run, read_run, run_of, write_run
from rapo.agents.train import train
from rapo.agents.train_config import TrainConfig
from rapo.cascade.setting import Setting
from rapo.graphs.load import from_networkx
from rapo_core.params import FieldParams

TINY = PPOConfig(envs=4, rollout=64, minibatch=32, epochs=1, hidden=8)
FOREIGN = {"steps": 128, "seed": 3, "ppo": TINY}


def weights(folder):
    return load_checkpoint(folder / "checkpoint.pt")["learner"]["weights"]


def repeated(config, tmp_path, **options):
    """The config and the weights of a run, and those of the run that its file stands for."""
    train(config, tmp_path / "first", **options)
    run = read_run(tmp_path / "first" / "run.toml")
    train(run.config, tmp_path / "second", threshold=run.threshold, track=run.track)
    assert run.config.to_dict() == config.to_dict()
    assert torch.equal(weights(tmp_path / "first"), weights(tmp_path / "second"))
    one, two = ((tmp_path / name / "run.toml").read_text() for name in ("first", "second"))
    assert one == two
    return run


@pytest.mark.parametrize("method", ["GE", "DR", "PM-RNN", "RAPO"])
def test_a_run_on_a_generated_graph_is_repeated_to_the_bit(method, tmp_path, config):
    made = config(method, 2, seed=5, graph_seed=1, params=FieldParams(w_H=4.0, tau=1 / 3))
    assert repeated(made, tmp_path).config.params.tau == 1 / 3


def test_a_shield_is_repeated_with_its_threshold(tmp_path, config):
    assert repeated(config("Shield", 1), tmp_path, threshold=0.3).threshold == 0.3


def test_a_fitted_run_is_repeated_without_fitting_anew(tmp_path, config, monkeypatch):
    path = tmp_path / "karate.npz"
    from_networkx(networkx.karate_club_graph(), stimuli=4).save(path)
    made = config("RAPO", 1, nodes=250, graph=str(path))
    monkeypatch.setattr(
        "rapo.agents.train_config.chosen_fit", lambda *a, **k: pytest.fail("fitted anew")
    )
    settled = replace(made, fit=_fit(path, made))
    assert repeated(settled, tmp_path).config.fit.regions.tolist() == settled.fit.regions.tolist()


def _fit(path, made):
    from rapo.graphs.fit import fit
    from rapo.graphs.load import read_graph

    return fit(read_graph(str(path)), setting=made.setting)


@pytest.mark.parametrize(
    "config",
    [
        EnvConfig(method="GE", env="CartPole-v1", **FOREIGN),
        EnvConfig(method="SS", env="CartPole-v1", cost="delayed:leaning", budget=2.5, **FOREIGN),
        PlatformConfig(method="RAPO", env="rapo/Routing-v0", budget=0.7,
                       env_kwargs={"seed": 1000, "sources": None}, **FOREIGN),
    ],
    ids=["GE", "SS", "platform"],
)  # fmt: skip
def test_configs_of_environments_come_back_the_same(config, tmp_path):
    write_run(tmp_path / "run.toml", Run(config, track=("tensorboard",)))
    found = read_run(tmp_path / "run.toml")
    assert type(found.config) is type(config) and found.config == config
    assert found.track == ("tensorboard",)


def test_a_run_on_an_environment_is_repeated_to_the_bit(tmp_path):
    repeated(EnvConfig(method="GE", env="CartPole-v1", **FOREIGN), tmp_path)


def test_what_a_file_leaves_out_is_as_the_command_has_it():
    assert run_of({"method": "RAPO"}) == Run(TrainConfig(method="RAPO"))
    env = run_of({"method": "GE", "env": "CartPole-v1", "ppo": {"lr": 0.1}}).config
    assert env == EnvConfig(method="GE", env="CartPole-v1", ppo=PPOConfig.for_gymnasium(lr=0.1))
    changed = run_of({"method": "GE", "setting": {"delay": 7}, "nodes": 30}).config
    assert changed == TrainConfig(method="GE", nodes=30, setting=Setting.default().replace(delay=7))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("nodes = 30", ["method"]),
        ("method = 'RAPO'\nnods = 3", ["nods", "nodes, graph_seed"]),
        ("method = 'RAPO'\nenv_kwargs = {}", ["env_kwargs"]),
        ("method = 'RAPO'\n[setting]\nkapa = 1", ["setting.kapa", "kappa"]),
        ("method = 'RAPO'\n[params]\nw_h = 1", ["params.w_h", "w_H"]),
        ("method = 'RAPO'\n[ppo]\nrate = 1", ["ppo.rate", "lr"]),
        ("method = 'RAPO'\nnodes = 'many'", ["nodes", "a whole number", "'many'"]),
        ("method = 'RAPO'\nnodes = true", ["nodes", "a whole number", "True"]),
        ("method = 'RAPO'\nnodes = 0", ["nodes", ">= 1", "0"]),
        ("method = 'RAPO'\nsetting = 3", ["setting", "a table", "3"]),
        ("method = 'RAPO'\n[ppo]\nlr = -1", ["lr", "positive", "-1"]),
        ("method = 'RAPO'\n[ppo]\nlr = 'fast'", ["lr", "positive", "fast"]),
        ("method = 'RAPO'\n[setting]\ndelay = 0", ["delay", ">= 1", "0"]),
        ("method = 'RAPO'\n[params]\nw_H = 'big'", ["w_H", "big"]),
        ("method = 'RAPO'\n[fit]\nspec = 'node'", ["fit"]),
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
