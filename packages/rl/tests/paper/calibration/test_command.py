"""`rapo calibrate` from end to end, small: trials, trained policies, choice and setting file."""

import json

import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from rapo.agents.config import PPOConfig
from rapo.cascade.setting import Setting
from rapo.cli.main import app
from rapo.paper.calibration import command, measures
from rapo.paper.calibration import search as search_module
from rapo.paper.calibration.search import LOG, STAGES, Stage
from rapo.paper.calibration.space import STARTS, setting_of
from rapo.paper.calibration.trained import learnt_share, train_best
from rapo_core.checks import UserError

TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)
SMALL = (Stage("screen", (1000,), 20_000, 4, 0), Stage("wide", (1010,), 2_000, 4, 0))


@pytest.fixture
def small(monkeypatch):
    """Short horizons, two stages, and training that takes a moment."""
    short = (60, 20, 60)

    def of(law, point):
        return setting_of(law, point).replace(horizons=short, ignition_runs=0, delay=10)

    monkeypatch.setattr(search_module, "setting_of", of)
    monkeypatch.setattr(command, "setting_of", of)
    monkeypatch.setattr(command, "STAGES", SMALL)
    monkeypatch.setattr(search_module, "BATCH", 4)

    def train(folder, settings, steps, **options):
        return train_best(folder, settings, steps, graphs=(2000,), ppo=TINY, **options)

    monkeypatch.setattr(command, "train_best", train)


@pytest.mark.usefixtures("small")
def test_a_small_calibration_writes_its_log_and_the_choice(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "SETTING_FILE", tmp_path / "setting.toml")
    out = tmp_path / "out"
    options = {"settings": 6, "finalists": 2, "steps": 256, "jobs": 1, "write": True}
    chosen = command.calibrate(out, **options, console=Console(quiet=True))
    log = pd.read_parquet(out / LOG)
    assert (log["stage"] == "screen").sum() == 6
    assert set(log["law"]) == {"outbreak", "cascade"}
    trained = pd.read_csv(out / "trained.csv")
    assert len(trained) == 4 and trained["setting"].nunique() == 2
    import tomllib

    written = Setting.from_dict(tomllib.loads((tmp_path / "setting.toml").read_text()))
    assert written == chosen
    monkeypatch.setattr(measures, "generate", None)  # a second call measures nothing again
    assert command.calibrate(out, **options, console=Console(quiet=True)) == chosen
    assert len(pd.read_csv(out / "trained.csv")) == 4


def test_rows_that_are_there_are_not_trained_again(tmp_path):
    setting = setting_of("outbreak", STARTS["outbreak"][0]).replace(horizons=(40, 10, 40), delay=5)
    named, seen = {"a": setting}, []
    options = {"slots": 1, "graphs": (2000,), "ppo": TINY}
    train_best(tmp_path, named, 256, **options, on_progress=lambda d, n: seen.append((d, n)))
    assert seen == [(1, 2), (2, 2)]
    rows = train_best(tmp_path, named, 256, **options, on_progress=lambda d, n: seen.append(None))
    assert len(rows) == 2 and seen[-1] is not None
    assert rows["learnt"].max() <= rows["greedy"].max() + 0.2


def test_the_learnt_share_is_a_ratio_of_means():
    rows = pd.DataFrame(
        {"setting": ["a", "a", "b"], "learnt": [0.01, 0.03, 0.0], "greedy": [0.02, 0.06, 0.05]}
    )
    assert learnt_share(rows).to_dict() == pytest.approx({"a": 0.5, "b": 0.0})


def test_stages_shrink_in_proportion():
    assert [stage.settings for stage in command.in_proportion(STAGES[0].settings)] == [
        stage.settings for stage in STAGES
    ]
    assert [stage.settings for stage in command.in_proportion(10)] == [10, 1, 1]


def test_graphs_of_different_stages_differ():
    seeds = [seed for stage in STAGES for seed in stage.graphs]
    assert len(seeds) == len(set(seeds)) and min(seeds) >= 1000 and max(seeds) < 2000


def test_bad_input_is_one_line_and_writes_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    quiet = Console(quiet=True)
    with pytest.raises(UserError, match="is a file"):
        command.calibrate(tmp_path / "file", console=quiet)
    with pytest.raises(UserError, match="--settings must be"):
        command.calibrate(tmp_path / "new", settings=0, console=quiet)
    result = CliRunner().invoke(app, ["calibrate", "--out", str(tmp_path / "new"), "--jobs", "0"])
    assert result.exit_code != 0
    assert not (tmp_path / "new").exists()
    assert json.dumps(sorted(p.name for p in tmp_path.iterdir())) == '["file"]'
