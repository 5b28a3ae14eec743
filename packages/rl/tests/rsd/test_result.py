"""Results of version 0.1 are read, and the odds of the event are kept."""

import shutil

import numpy as np
import pytest
from repository import ROOT

import rapo
from rapo.rsd import RSDResult, evaluate
from rapo.rsd.frame import mean_defined
from rapo.rsd.report import text_table, write_report
from rapo.rsd.result import METRICS, ON_REQUEST, TRACES

OLD = ROOT / "tests" / "fixtures" / "v0.1" / "rsd"


def test_a_result_of_version_0_1_is_read(tmp_path):
    result = RSDResult.load(OLD)
    summary = result.summary()
    assert list(summary) == list(METRICS) and summary["RAG"]["n"] == len(result.frame) == 8
    for name in ("EventOdds", *ON_REQUEST):
        assert summary[name]["n"] == 0 and np.isnan(summary[name]["mean"])
    assert set(result.traces) == set(TRACES)
    assert np.isnan(result.traces["event_odds_ratio"]).all()
    assert result.traces["event_odds_ratio"].shape == result.traces["reach"].shape
    pooled = result.pooled()["RAG"]
    assert pooled["ci95"][0] < pooled["ratio"] < pooled["ci95"][1] and pooled["n"] == 8
    text_table({"old": result})
    write_report({"old": result}, tmp_path / "old.html")
    again = RSDResult.load(result.save(tmp_path / "again"))
    assert again.summary() == summary and again.frame.equals(result.frame)


def test_a_trace_that_version_0_1_had_may_not_be_missing(tmp_path):
    folder = tmp_path / "torn"
    shutil.copytree(OLD, folder)
    with np.load(folder / "traces.npz") as data:
        kept = {name: data[name] for name in data.files if name != "odds_ratio"}
    np.savez(folder / "traces.npz", **kept)
    with pytest.raises(ValueError, match=r"is damaged: \['odds_ratio'\] missing"):
        RSDResult.load(folder)


def test_undefined_steps_are_left_out_of_the_means():
    found = mean_defined([[np.nan, 1.0, 3.0], [np.inf, np.nan, np.nan], [2.0, np.inf, 4.0]])
    assert found[0] == 2 and np.isnan(found[1]) and found[2] == 3


def test_the_odds_of_the_event_are_kept(graph250):
    env = rapo.GraphDiffusionVectorEnv(1, graph=graph250, fit=False)
    result = evaluate(env, lambda x: 0, 4, 0, horizons=(150, 60, 60))
    event, entry = (result.of_phase(name, 2) for name in ("event_odds_ratio", "odds_ratio"))
    expected = np.nanmean(event.astype(float), axis=1)
    assert np.allclose(result.frame["EventOdds"], expected)
    assert np.array_equal(np.isnan(event), np.isnan(entry))
    assert not np.allclose(event, entry, equal_nan=True)
    nominal = evaluate(env.like(1, deformation="off"), lambda x: 0, 4, 0, horizons=(50, 10, 50))
    assert np.allclose(nominal.frame["EventOdds"], 1)
