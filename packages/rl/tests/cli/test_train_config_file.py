"""`rapo train --config`: the same run again, options over it, nothing written if it is wrong."""

import sys

import networkx
import numpy as np
import pytest

from rapo import cli
from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import graph_run
from rapo.agents.run_file import read_run
from rapo.agents.saved_run import load_state
from rapo.cascade.setting import Setting
from rapo.cli.parse import TrainOptions, run_configs
from rapo.graphs.load import from_networkx
from rapo_core.params import FieldParams

TINY = ("--set", "minibatch=32", "--set", "rollout=64", "--set", "envs=4", "--set", "hidden=8")


@pytest.fixture
def rapo(tmp_path, monkeypatch, capsys):
    """Runs the command in an empty folder; its exit code and what it told as an error."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["rapo", *words])
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        return code, capsys.readouterr().err

    return run


def weights(path):
    return load_state(path)["weights"]


@pytest.mark.parametrize(
    "words",
    [
        ("RAPO", "--nodes", "30", "--graph-seed", "2", "--set", "params.w_H=4", "--budget", "0.7",
         "--set", "setting.horizons=40,10,40"),
        ("GE", "--env", "CartPole-v1"),
    ],
    ids=["graph", "env"],
)  # fmt: skip
def test_a_run_is_repeated_to_the_bit_and_options_are_over_it(words, rapo, tmp_path):
    made = rapo("train", *words, *TINY, "--steps", "128", "--seed", "3", "--out", "one")
    assert made == (0, "")
    assert rapo("train", "--config", "one/run.toml", "--out", "two")[0] == 0
    assert np.array_equal(weights(tmp_path / "one"), weights(tmp_path / "two"))
    over = ("--seed", "4", "--steps", "64", "--set", "lr=0.01")
    assert rapo("train", "--config", "one/run.toml", *over, "--out", "three")[0] == 0
    before, after = (read_run(tmp_path / f / "run.toml") for f in ("one", "three"))
    assert (after.seed, after.steps, after.ppo.lr) == (4, 64, 0.01)
    same = {**after.to_dict(), "seed": 3, "steps": 128, "ppo": before.to_dict()["ppo"]}
    assert same == before.to_dict()


@pytest.mark.parametrize(
    ("text", "words", "names"),
    [
        ("method = 'RAPO'\nsteeps = 3", (), ["steeps", "steps"]),
        ("method = 'RAPO'\n[ppo]\nrate = 3", (), ["ppo.rate", "lr"]),
        ("method = 'RAPO'\nseed = 'many'", (), ["seed", "whole number", "many"]),
        ("seed = 30", (), ["method"]),
        ("method = 'RAPO'\ntrack = ['paper']", (), ["track", "wandb", "paper"]),
        ("method = 'RAPO'", ("--cost", "info:x"), ["--cost", "--config"]),
        ("method = 'GE'\nenv = 'CartPole-v1'", ("--nodes", "30"), ["--nodes"]),
        ("method = 'RAPO'", ("--nodes", "30", "--track", "paper"), ["track", "mlflow", "paper"]),
        ("method = 'Shield'", ("--policy", "x.pt"), ["--config"]),
    ],
)
def test_what_is_wrong_ends_with_one_line_and_nothing_written(text, words, names, rapo, tmp_path):
    (tmp_path / "wrong.toml").write_text(text)
    code, told = rapo("train", "--config", "wrong.toml", *words)
    assert code == 2 and len(told.strip().splitlines()) == 1
    assert all(name in told for name in names)
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.toml"]


def over(base, changes=(), **options):
    (config,) = run_configs(base, TrainOptions(changes=tuple(changes), **options))
    return config


def settled(config):
    return resolve(config).config


def test_without_options_a_config_stays_what_it_is():
    base = graph_run(method="RAPO", nodes=30, params=FieldParams(w_H=4.0), fit=False)
    assert over(base) == base
    assert over(base, method="GE").method == "GE"
    assert over(base, ["lr=0.1"]).ppo == PPOConfig(lr=0.1)
    assert over(base, budget=0.5).budget == 0.5


def test_constants_of_the_file_stay_when_its_graph_or_setting_changes():
    base = graph_run(method="RAPO", nodes=30, params=FieldParams(w_H=4.0), fit=False)
    assert over(base, nodes=40).params.w_H == 4.0
    assert over(base, graph_seed="7").params.w_H == 4.0
    assert over(base, ["params.w_G=3"]).params == FieldParams(w_H=4.0, w_G=3.0)
    lower = over(base, ["setting.psi_min=0.05"])
    assert (lower.params.psi_min, lower.params.w_H) == (0.05, 4.0)
    compact = over(base, reading="compact")
    assert compact.setting == Setting.named("compact")
    assert settled(compact).params == Setting.named("compact").params


def test_what_was_fitted_is_fitted_anew_only_where_it_has_to_be(tmp_path):
    path = tmp_path / "karate.npz"
    with pytest.warns(UserWarning, match="edges"):
        from_networkx(networkx.karate_club_graph(), stimuli=4).save(path)
    short = Setting.default().replace(horizons=(60, 20, 60), delay=10)
    first = settled(graph_run(method="RAPO", graph=str(path), setting=short))
    assert over(first, seed="4").env_kwargs["fit"] is first.env_kwargs["fit"]
    other = over(first, ["setting.delay=20"])
    assert other.env_kwargs.get("fit") is not first.env_kwargs["fit"]
    fresh = graph_run(method="RAPO", graph=str(path), setting=short.replace(delay=20))
    assert settled(other).params == settled(fresh).params
    plain = graph_run(method="RAPO", graph=str(path), setting=short, fit=False)
    assert settled(over(plain, ["setting.delay=20"])).env_kwargs["fit"] is False
    generated = settled(over(first, nodes=30))
    assert not generated.env_kwargs["fit"]
    assert generated.params == short.params != first.params
    with pytest.raises(ValueError, match="--graph-seed 3 needs --nodes"):
        over(first, graph_seed="3")
