"""The words of `rapo train`: numbers, seeds, changes, folders, and runs side by side."""

import re
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rapo.agents.config import PPOConfig
from rapo.agents.resolve import resolve
from rapo.agents.run_config import graph_run
from rapo.agents.saved_run import load_run, load_state
from rapo.agents.train import train
from rapo.cascade.setting import Setting
from rapo.cli.main import app
from rapo.cli.parse import parse_count, parse_seeds, with_changes, with_fit
from rapo.cli.train import run_folder, train_all
from rapo.graphs.load import from_networkx
from rapo.paper import reproduce

SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)


def config(**changes):
    options = {"method": "RAPO", "nodes": 40, "setting": SHORT, "ppo": TINY, "steps": 512}
    return graph_run(**{**options, **changes})


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("2e6", 2_000_000), ("1.5e3", 1500), (" 12 ", 12), ("1_000", 1000)],
)
def test_counts(text, value):
    found = parse_count("steps", text)
    assert found == value and isinstance(found, int)


@pytest.mark.parametrize("text", ["", "many", "1.5", "nan", "inf", "-3", "0", "1e-3"])
def test_what_is_no_count_is_named(text):
    with pytest.raises(ValueError, match=r"^steps must be a whole number") as caught:
        parse_count("steps", text)
    shown = text if text in ("-3", "0") else repr(text)
    assert str(caught.value).endswith(f"got {shown}")


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", [3]), ("0,2,5", [0, 2, 5]), ("0-3", [0, 1, 2, 3]), ("7, 1-2", [7, 1, 2]), ("4-4", [4])],
)
def test_seeds(text, seeds):
    assert parse_seeds("--seed", text) == seeds


@pytest.mark.parametrize("text", ["", "a", "1,", "3-1", "-1", "1.5", "0-", "1 2"])
def test_what_are_no_seeds_is_named(text):
    with pytest.raises(ValueError, match=r"^--seed must be seeds such as") as caught:
        parse_seeds("--seed", text)
    assert str(caught.value).endswith(f"got {text!r}")


def test_a_seed_is_named_once():
    with pytest.raises(ValueError, match="names a seed twice: '0-3,2'"):
        parse_seeds("--seed", "0-3,2")


def test_changes():
    base = config()
    made = with_changes(
        base,
        ["lr=1e-4", "epochs = 3", "setting.kappa_s=0.2", "setting.straddle=False",
         "setting.rates=0.9,0.5,0.1", "setting.regions=node", "params.w_H=4"],
    )  # fmt: skip
    assert (made.ppo.lr, made.ppo.epochs) == (1e-4, 3)
    assert made.setting.kappa_s == 0.2 and made.setting.straddle is False
    assert made.setting.rates == (0.9, 0.5, 0.1) and made.setting.regions == "node"
    assert made.params.w_H == 4.0 and isinstance(made.params.w_H, float)
    assert made.ppo.hidden == base.ppo.hidden and made.setting.horizons == base.setting.horizons
    assert with_changes(base, []) == base == config()
    # one after the other, so that both together may become what neither alone may be
    assert with_changes(base, ["rollout=512", "envs=8"]).ppo.length == 64


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("lr", "--set needs NAME=VALUE with a name of envs, rollout"),
        ("speed=3", "got 'speed=3'"),
        ("setting.speed=3", "setting.<name> or params.<name>, got 'setting.speed=3'"),
        ("other.lr=3", "got 'other.lr=3'"),
        ("lr=fast", "lr must be like 0.0003, got 'fast'"),
        ("epochs=1.5", "epochs must be like 1, got '1.5'"),
        ("setting.straddle=maybe", "straddle must be like True, got 'maybe'"),
        ("lr=-1", "lr must be a number > 0, got -1"),
        ("setting.rates=1,2", "rates"),
        ("setting.rates=1,a,2", "rates must be like"),
        ("params.delta=7", "delta"),
        ("rollout=3", "rollout must be a multiple of envs"),
    ],
)
def test_bad_changes_are_named(change, words):
    if change.startswith("setting.straddle") and not SHORT.straddle:
        words = words.replace("True", "False")
    with pytest.raises(ValueError, match=re.escape(words)):
        with_changes(config(), [change])


def test_folders():
    made = config(graph_seed=3, seed=4)
    assert run_folder(None, made, several=False) == Path("runs/RAPO-n40-g3-s4")
    assert run_folder(None, made, several=True) == Path("runs/RAPO-n40-g3-s4")
    saved = config(nodes=None, graph="data/town.npz", seed=4)
    assert run_folder(None, saved, several=False) == Path("runs/RAPO-town-s4")
    assert run_folder(Path("here"), made, several=False) == Path("here")
    assert run_folder(Path("here"), made, several=True) == Path("here/g3-s4")


def test_runs_side_by_side_equal_single_runs(tmp_path):
    configs = [config(seed=seed) for seed in (0, 1)]
    folders = [run_folder(tmp_path / "both", each, several=True) for each in configs]
    summaries = train_all(configs, folders, jobs=2)
    assert [s["steps"] for s in summaries] == [512, 512]
    weights = []
    for each, folder in zip(configs, folders, strict=True):
        alone = tmp_path / f"alone{each.seed}"
        single = train_all([each], [alone], jobs=2)[0]
        assert single["reward"] == summaries[each.seed]["reward"]
        weights += [load_state(f)["weights"] for f in (folder, alone)]
        logs = [pd.read_csv(f / "progress.csv") for f in (folder, alone)]
        assert logs[0].equals(logs[1])
    assert np.array_equal(weights[0], weights[1]) and np.array_equal(weights[2], weights[3])
    assert not np.array_equal(weights[0], weights[2])


def test_a_run_that_exists_is_refused(tmp_path):
    train(config(), tmp_path)
    with pytest.raises(ValueError, match="holds a run; go on with --resume"):
        train_all([config()], [tmp_path], jobs=1)
    with pytest.raises(ValueError, match="jobs must be a whole number >= 1, got 0"):
        train_all([config()], [tmp_path / "b"], jobs=0)


@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        ([], "tau and regions"),
        (["epochs=2"], "tau and regions"),
        (["setting.budget=0.8"], "tau and regions"),
        (["params.w_H=4"], "tau and regions"),
        (["params.tau=0.2", "params.w_H=3"], "regions"),
    ],
)
def test_on_a_graph_of_ones_own_changes_leave_the_rest_to_be_fitted(tmp_path, changes, moved):
    path = from_networkx(networkx.karate_club_graph()).save(tmp_path / "karate.npz")
    plain = graph_run(method="RAPO", graph=str(path))
    config = resolve(with_fit(with_changes(plain, changes), None, changes)).config
    assert config.env_kwargs["fit"].moved == moved
    assert config.params == config.env_kwargs["fit"].params
    if any("w_H" in change for change in changes):
        assert config.params.w_H == float(changes[-1].partition("=")[2])
    if moved == "regions":
        assert config.params.tau == 0.2
    unfitted = resolve(with_fit(with_changes(plain, changes), False, changes))
    assert unfitted.config.env_kwargs["fit"] is False


def test_a_reading_is_what_is_trained_on(tmp_path):
    words = ["--nodes", "40", "--steps", "256", "--set", "envs=4", "--set", "rollout=256",
             "--set", "minibatch=64", "--set", "hidden=16"]  # fmt: skip
    for name in ("compact", "bistable"):
        out = tmp_path / name
        found = CliRunner().invoke(
            app, ["train", "GE", "--reading", name, "--out", str(out), *words]
        )
        assert found.exit_code == 0, found.output
        config = load_run(out).config
        assert config.setting == Setting.named(name)
        assert config.params.psi_min == Setting.named(name).psi_min
    found = CliRunner().invoke(
        app, ["train", "GE", "--reading", "first", "--out", str(tmp_path / "x")]
    )
    assert found.exit_code != 0 and not (tmp_path / "x").exists()


def test_a_reading_is_what_is_reproduced(tmp_path, monkeypatch):
    asked = []

    def claimed(out, preset):
        asked.append(preset)
        raise StopIteration

    monkeypatch.setattr(reproduce, "claim", claimed)
    for reading in (None, "compact"):
        with pytest.raises(StopIteration):
            reproduce.run_studies("table1", "smoke", tmp_path / "out", reading=reading)
    assert [preset.setting for preset in asked] == [Setting.default(), Setting.named("compact")]
    assert asked[1].config("RAPO", 0).params.psi_min == Setting.named("compact").psi_min
