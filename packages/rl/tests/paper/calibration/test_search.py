"""The search keeps every trial, goes on where it was cut, and looks again at the best."""

import tomllib

import pandas as pd
import pytest
from optuna.trial import TrialState

from rapo.cascade.setting import Setting
from rapo.paper.calibration import search as module
from rapo.paper.calibration.search import Stage, best, log_frame, look_again, open_study, screen
from rapo.paper.calibration.search import search as run_search
from rapo.paper.calibration.space import SPACE, STARTS, setting_of, setting_text
from rapo_core.checks import UserError

STAGES = (Stage("screen", (1000,), 60, 2, 0), Stage("wide", (1010,), 6, 2, 0))


def fake(setting, graphs, *, episodes):
    """A valley in place of the simulation; settings with much support cannot be run."""
    if setting.support > 14:
        raise UserError("rates cannot be injected")
    away = abs(setting.echo - 0.6) + abs(setting.psi_min - 0.2) + 0.01 * graphs[0]
    return {"away": away}


@pytest.fixture(autouse=True)
def _valley(monkeypatch):
    monkeypatch.setattr(module, "measure", fake)
    monkeypatch.setattr(module, "score", lambda numbers: numbers["away"])
    monkeypatch.setattr(module, "held", lambda numbers: 0)
    monkeypatch.setattr(module, "unmet", lambda numbers: [])
    monkeypatch.setattr(module, "BATCH", 8)


def silent(name):
    return lambda done, total: None


def screened(folder, settings, stage=STAGES[0]):
    study = open_study(folder, stage, "outbreak")
    screen(study, stage, "outbreak", settings=settings, slots=1, on_progress=silent(""))
    return study


def test_known_points_are_tried_first_and_failures_are_kept(tmp_path):
    study = screened(tmp_path, 60)
    assert len(study.trials) == 60
    for trial, start in zip(study.trials, STARTS["outbreak"], strict=False):
        assert trial.params == pytest.approx(start)
    failed = [trial for trial in study.trials if trial.state == TrialState.FAIL]
    assert failed and all("cannot be injected" in trial.user_attrs["error"] for trial in failed)
    frame = log_frame(tmp_path, STAGES)
    assert len(frame) == 60
    assert frame["error"].notna().sum() == len(failed)


def test_the_search_comes_down_the_valley(tmp_path):
    study = screened(tmp_path, 200)
    first = min(t.value for t in study.trials[:40] if t.value is not None)
    assert best(study, 1)[0].value - 10 < 0.5 * (first - 10)


def test_a_cut_search_goes_on_from_its_journal_and_from_its_log(tmp_path):
    screened(tmp_path / "a", 24)
    study = screened(tmp_path / "a", 40)
    assert len(study.trials) == 40
    (tmp_path / "b").mkdir()
    log_frame(tmp_path / "a", STAGES).to_parquet(tmp_path / "b" / module.LOG)
    again = open_study(tmp_path / "b", STAGES[0], "outbreak")
    assert [t.params for t in again.trials] == [t.params for t in study.trials]
    assert [t.value for t in again.trials] == [t.value for t in study.trials]
    assert [t.state for t in again.trials] == [t.state for t in study.trials]


def test_a_search_that_goes_on_from_a_log_measures_other_points(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "UNIFORM", 1.0)
    screened(tmp_path / "a", 24)
    (tmp_path / "b").mkdir()
    log_frame(tmp_path / "a", STAGES).to_parquet(tmp_path / "b" / module.LOG)
    study = screened(tmp_path / "b", 48)
    points = {tuple(sorted(trial.params.items())) for trial in study.trials}
    assert len(points) == 48


def test_a_trial_that_was_running_when_the_search_was_cut_counts_as_failed(tmp_path):
    study = screened(tmp_path, 16)
    study.ask(SPACE["outbreak"])
    study = screened(tmp_path, 24)
    assert len(study.trials) == 24
    assert study.trials[16].state == TrialState.FAIL


def test_later_stages_measure_the_best_on_their_own_graphs_once(tmp_path):
    chosen = run_search(tmp_path, STAGES, laws=("outbreak",), slots=1, on_stage=silent)
    first = open_study(tmp_path, STAGES[0], "outbreak")
    wide = open_study(tmp_path, STAGES[1], "outbreak")
    expected = [trial.params for trial in best(first, 4)]
    assert [trial.params for trial in wide.trials] == expected
    assert chosen["outbreak"][0].value == pytest.approx(first.best_value - 10.0 + 10.1)
    look_again(wide, STAGES[1], "outbreak", expected, slots=1, on_progress=silent(""))
    assert len(wide.trials) == len(expected)


@pytest.mark.parametrize("law", SPACE)
def test_points_become_settings_and_settings_files(law):
    for start in STARTS[law]:
        setting = setting_of(law, start)
        assert setting.spread == law and setting.show_stimulus
        assert Setting.from_dict(tomllib.loads(setting_text(setting))) == setting
    low = {name: axis.low for name, axis in SPACE[law].items()}
    high = {name: axis.high for name, axis in SPACE[law].items()}
    assert setting_of(law, low) != setting_of(law, high)


def test_the_log_holds_every_axis(tmp_path):
    screened(tmp_path, 16)
    frame = log_frame(tmp_path, STAGES)
    assert set(SPACE["outbreak"]) <= set(frame.columns)
    assert isinstance(frame, pd.DataFrame) and frame["stage"].eq("screen").all()
