"""The study of which numbers hold together: reasons, readings, picture."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pandas as pd
import pytest

from rapo.agents.config import PPOConfig
from rapo.agents.methods import METHODS
from rapo.cascade.setting import READINGS, Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.generate import generate
from rapo.paper.jobs import PolicyJob
from rapo.paper.presets import PRESETS, QUICK, SMOKE
from rapo.paper.reproduce import run_studies
from rapo.paper.studies.consistency import plan
from rapo.paper.studies.consistency.figure import plot_consistency
from rapo.paper.studies.consistency.numbers import OURS, PRINTED
from rapo.paper.studies.consistency.reasons import opens_at, reasons, spread_curve
from rapo.policies import ConstantPolicy
from rapo.rsd.runner import evaluate
from rapo.theory import consistent_spread
from rapo_core.params import FieldParams

THE_PAPERS = {
    "RAG": 0.33, "AUC_R": 0.36, "SM_R": 0.31, "ReplayRet": 0.82, "off_RAG": 0.91,
    "off_AUC_R": 0.93, "off_SM_R": 0.92, "off_ReplayRet": 0.82, "PM-ST_ReplayRet": 0.96,
    "OddsRatio": 0.41, "slow_RAG": 0.38, "R_c_P0": 16.9, "R_c_kept": 8.4 / 16.9, "served": 0.85,
    "outside": 0.85, "correlation": 0.87,
}  # fmt: skip


def test_every_printed_number_holds_for_itself_and_nothing_undefined_does():
    numbers = {number.name: number for number in PRINTED}
    assert set(numbers) == set(THE_PAPERS)
    for name, number in numbers.items():
        assert number.holds(THE_PAPERS[name]), name
        assert not number.holds(float("nan")), name
    off, rag = numbers["off_AUC_R"], numbers["RAG"]
    assert not off.holds(1.16) and not off.holds(0.84) and off.holds(1.14)
    assert not rag.holds(0.50) and rag.holds(0.49)


# Reasons


def test_the_reasons_numbers():
    scar, late, spread, inside, served = reasons()
    work = log(1 / 0.41) / (2 * 0.05)
    assert scar.numbers["work"] == pytest.approx(work)
    assert scar.numbers["mean trace"] == pytest.approx(0.3 + work / 450)
    assert scar.numbers["mean trace"] == pytest.approx(0.320, abs=5e-4)
    assert late.numbers["late conductance"] == pytest.approx(0.375, abs=5e-4)
    # by hand: gate of the trace times the mean of .41^s over the second half
    mean = (0.41**0.5 - 0.41) / (0.5 * log(1 / 0.41))
    by_hand = exp(-scar.numbers["mean trace"]) * mean
    assert late.numbers["late conductance"] == pytest.approx(by_hand, rel=1e-5)
    values = list(spread.numbers.values())
    assert values[0] > values[1] == pytest.approx(1 / 0.41)
    assert spread.numbers["range opens at an odds ratio of"] == pytest.approx(0.378, abs=1e-3)
    assert [r.kind for r in (scar, late, spread, inside, served)].count("mean field") == 1


def test_the_range_opens_where_it_is_said():
    params = FieldParams()
    at = opens_at(params)
    for theta, is_open in ((at - 0.01, True), (at + 0.01, False)):
        low, high = consistent_spread(theta, params)
        assert (low < high) == is_open
    curve = spread_curve(params, points=11)
    assert ((curve["low"] < curve["high"]) == (curve["theta"] < at)).all()


@pytest.mark.parametrize("action", [0, 2])
def test_a_fixed_action_is_at_least_one_in_off_at_replay(action):
    """The bound of the reasons, in expectation; 3 standard errors for the draws."""
    means = []
    for seed in (1000, 1001):
        env = GraphDiffusionVectorEnv(
            1, graph=generate(120, seed, Setting.default()), **METHODS["off@rep"].evaluation
        )
        means.append(evaluate(env, ConstantPolicy(action), 16, 0).frame["AUC_R"].mean())
    assert np.mean(means) > 0.97


# The whole study


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The study at its smallest: short episodes, hardly any training; folder and section."""
    out = tmp_path_factory.mktemp("consistency")
    preset = replace(
        SMOKE,
        nodes=50,
        episodes=3,
        reading_steps=256,
        ppo=PPOConfig(envs=2, rollout=128, minibatch=64, hidden=8),
    )
    named = Setting.named
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "smoke", preset)
        short = {"horizons": (60, 20, 60)}
        patch.setattr(Setting, "named", lambda name: named(name).replace(**short))
        (section,) = run_studies("consistency", "smoke", out, jobs=1)
        patch.setattr(PolicyJob, "run", None)  # a second run has nothing left to do
        (again,) = run_studies("consistency", "smoke", str(out), jobs=1)
    pd.testing.assert_frame_equal(section.files["readings"], again.files["readings"])
    return out, section


def test_every_reading_has_every_number_with_a_verdict(made):
    out, section = made
    table = pd.read_csv(out / "readings.csv")
    assert set(zip(table["reading"], table["number"], strict=True)) == {
        (name, number.name) for name in READINGS for number in (*PRINTED, *OURS)
    }
    ours = table["paper"].isna()
    assert set(table["verdict"][~ours]) <= {"holds", "differs"}
    assert table["verdict"][ours].isna().all() and ours.sum() == len(OURS) * len(READINGS)
    values = table.set_index(["reading", "number"])["mean"]
    for name in READINGS:
        assert 0 < values[name, "OddsRatio"] <= 1
        assert values[name, "served"] <= 1.2
        # the policy hardly trained does not change, so the bound of 1 is in force
        assert values[name, "fixed_AUC_R"] > 0.8
    shown = section.tables[1][1]
    assert list(shown.columns) == ["", "paper", *READINGS]
    marked = sum(cell.endswith(" holds") for name in READINGS for cell in shown[name])
    assert marked == (table["verdict"] == "holds").sum()


def test_the_readings_differ_in_their_setting_alone():
    under = [plan.under(QUICK, name) for name in READINGS]
    assert len({str(preset.setting) for preset in under}) == len(READINGS)
    for preset in under:
        assert replace(preset, setting=QUICK.setting) == plan.under(QUICK, READINGS[0])


def test_the_picture_has_the_paper_and_the_readings():
    values = {"echo": pd.DataFrame({"RAG": [0.4, 0.5], "off_AUC_R": [2.0, 3.0]})}
    figure, axes = plot_consistency(values, spread_curve(FieldParams(), 12))
    figure.canvas.draw()
    assert len(axes) == 2 and axes[0].get_yscale() == "log"
    assert "echo" in [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert [[0.45, 2.5]] in [line.get_xydata().tolist() for line in axes[0].lines]
