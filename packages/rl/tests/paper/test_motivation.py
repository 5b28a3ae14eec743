"""The motivation study: the runs of its controller, its table and its section."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rapo.cascade.setting import Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.generate import generate
from rapo.paper.presets import SMOKE
from rapo.paper.reproduce import study
from rapo.paper.results import Results
from rapo.paper.studies.motivation import analysis as motivation_analysis
from rapo.paper.studies.motivation.analysis import table
from rapo.paper.studies.motivation.figures import curves
from rapo.paper.studies.motivation.runs import UNTHROTTLED, ThrottledRun, run_throttled
from rapo.paper.studies.verdicts import HOLDS
from rapo.platforms.cascade.baseline import Throttle


def test_throttle_forgets_by_beta_and_acts_by_level():
    throttle = Throttle(beta=0.5, levels=(1.0, 2.0))
    assert throttle.action(np.array([0.0, 1.0, 1.5, 2.0, 3.0])).tolist() == [0, 0, 1, 1, 2]
    assert throttle.after(np.array([2.0, 0.0]), np.array([0.0, 0.3])).tolist() == [1.0, 0.3]
    with pytest.raises(ValueError, match=r"beta must be in \(0, 1\), got 1"):
        Throttle(beta=1.0)
    with pytest.raises(ValueError, match="ascend"):
        Throttle(levels=(2.0, 1.0))


@pytest.fixture(scope="module")
def small():
    """A small graph and short phases."""
    return generate(60, 0), Setting.default().replace(horizons=(120, 70, 90))


def test_run_is_the_environment_under_the_controller(small):
    graph, setting = small
    run = run_throttled(graph, UNTHROTTLED, deformation="off", episodes=3, seed=5, setting=setting)
    env = GraphDiffusionVectorEnv(
        3, graph=graph, deformation="off", schedule="external", setting=setting
    )
    env.reset(seed=5)
    reach, harm = [], []
    for phase, span in zip(("exposure", "decay", "replay"), setting.horizons, strict=True):
        env.begin(phase)
        for _ in range(span):
            info = env.step(np.zeros(3, int))[4]
            reach.append(info["reach"].copy())
            harm.append(info["harm"].astype(float))
    assert np.array_equal(run.reach, np.array(reach).T)
    assert (run.action == 0).all()
    p = 0.0
    for t in range(190):  # the penalty before each step, until Replay resets it
        assert run.penalty[0, t] == pytest.approx(p)
        p = 0.95 * p + harm[t][0]
    assert (run.penalty[:, 190] == 0).all()


def test_carried_penalty_differs_in_replay_alone(small):
    graph, setting = small
    low = Throttle(levels=(0.05, 0.1))
    runs = [
        run_throttled(graph, low, deformation="off", carried=c, episodes=4, setting=setting)
        for c in (False, True)
    ]
    assert np.array_equal(runs[0].penalty[:, :190], runs[1].penalty[:, :190])
    assert (runs[0].penalty[:, 190] == 0).all()
    assert (runs[1].penalty[:, 190] > 0).any()
    assert (runs[0].action[:, :120] == 2).any()


def made_up_run():
    reach = np.array([[2.0, 4.0, 1.0, 0.0, 3.0, 3.0], [2.0, 6.0, 1.0, 0.0, 1.0, 2.0]])
    penalty = np.array([[0.0, 8.0, 4.0, 1.0, 0.0, 0.0], [0.0, 4.0, 4.0, 3.0, 0.0, 9.0]])
    action = np.array([[0, 2, 1, 0, 0, 0], [0, 1, 1, 1, 0, 2]])
    return ThrottledRun((2, 2, 2), reach, penalty, action, np.ones((2, 6)))


def test_table_by_hand():
    row = table({"made up": made_up_run()}, Throttle()).iloc[0]
    assert row["peak_exposure"] == 5.0 and row["peak_replay"] == 2.5
    assert row["peak_ratio"] == 0.5
    assert row["reach_exposure"] == 3.5 and row["reach_replay"] == 2.25
    assert row["late_exposure"] == 5.0
    assert row["throttled"] == 0.5 and row["throttled_replay"] == 0.25
    assert row["penalty_peak"] == 6.0 and row["penalty_left"] == 2.0
    assert row["forgotten"] == 0.5


def test_curves_do_not_cross_phases():
    found = curves({"made up": made_up_run()})
    assert found["step"].tolist() == [0, 2, 4]
    assert found["reach"].tolist() == [3.5, 0.5, 2.25]  # medians of two episodes' means


def test_section_shows_replay(monkeypatch, tmp_path):
    monkeypatch.setattr(motivation_analysis, "EPISODES", 16)
    preset = replace(SMOKE, nodes=250)  # on 50 V_sens is full, whoever is served
    assert study("motivation").plan(preset) == []
    section = study("motivation").analyse(Results(tmp_path, preset))
    assert [c.verdict for c in section.claims] == [HOLDS, HOLDS]
    assert len(section.files["motivation"]) == 6
    again = study("motivation").analyse(Results(tmp_path, preset))
    pd.testing.assert_frame_equal(section.files["motivation"], again.files["motivation"])
