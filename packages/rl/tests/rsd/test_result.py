"""Results: what they sum up to, and that they are read as they were saved."""

from dataclasses import replace

import numpy as np
import pytest

import rapo
from rapo.rsd import RSDResult, evaluate
from rapo.rsd.frame import mean_defined
from rapo.rsd.report import text_table, write_report


@pytest.fixture(scope="module")
def few(graph250):
    """Three episodes whose ratios differ so much that a symmetric interval would leave 0 below."""
    env = rapo.GraphDiffusionVectorEnv(1, graph=graph250, fit=False)
    return evaluate(env, lambda x: 0, 3, 0, horizons=(150, 60, 60))


def test_an_interval_is_named_by_its_level(few):
    assert {"ci95"} == {key for of in few.summary().values() for key in of if key[:2] == "ci"}
    half, usual = few.summary(level=0.5)["RAG"], few.summary()["RAG"]
    assert "ci95" not in half and half["ci50"][0] > usual["ci95"][0]
    assert few.pooled(level=0.5)["RAG"]["ci50"][1] < few.pooled()["RAG"]["ci95"][1]
    assert "ci99.5" in few.summary(level=0.995)["RAG"]


def test_no_interval_of_a_ratio_goes_below_0(few):
    frame = few.frame.assign(SM_R=[0.01, 0.5, 3.0], Selectivity=[-1.0, 0.5, 1.0])
    summary = replace(few, frame=frame).summary()
    low, high = summary["SM_R"]["ci95"]
    assert low == 0 and high > summary["SM_R"]["mean"] > 0
    assert summary["Selectivity"]["ci95"][0] < 0  # a difference may


def test_a_result_is_read_as_it_was_saved(few, tmp_path):
    again = RSDResult.load(few.save(tmp_path / "again"))
    assert again.summary() == few.summary()
    assert np.array_equal(again.activity, few.activity)
    text_table({"again": again})
    write_report({"again": again}, tmp_path / "again.html")


def test_a_trace_may_not_be_missing(few, tmp_path):
    folder = few.save(tmp_path / "torn")
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
