"""What a setting gives: against the engine read by hand, and the paths that must agree."""

from dataclasses import replace

import numpy as np
import pytest

from rapo.cascade.setting import Setting
from rapo.graphs.generate import generate
from rapo.paper.calibration.measures import LOW, measure
from rapo.paper.calibration.space import STARTS, setting_of
from rapo.policies import ConstantPolicy
from rapo.rsd.runner import evaluate

OUTBREAK = setting_of("outbreak", STARTS["outbreak"][3]).replace(
    ignition_runs=5, horizons=(150, 60, 150)
)


@pytest.fixture(scope="module")
def numbers():
    return measure(OUTBREAK, (1000, 1003), episodes=8)


def test_a_known_setting_has_the_papers_row_roughly(numbers):
    assert 0.2 < numbers["RAG"] < 0.5
    assert 0.85 < numbers["off_RAG"] < 1.2
    assert 0.9 < numbers["RAG_P0"] < 1.1
    assert numbers["low_P0"] <= numbers["RAG_P0"] <= numbers["high_P0"]
    assert 0.7 < numbers["ReplayRet"] < 0.95
    assert numbers["gain"] > 0
    assert numbers["R_c_kept"] == pytest.approx(numbers["R_c"] / numbers["R_c_P0"])


def test_means_are_taken_over_graphs(numbers):
    one, other = (measure(OUTBREAK, (seed,), episodes=8) for seed in (1000, 1003))
    for name in ("RAG", "ReplayRet", "OddsRatio", "gain", "low", "capped"):
        assert numbers[name] == pytest.approx((one[name] + other[name]) / 2)


def test_without_deformation_nothing_is_suppressed():
    free = OUTBREAK.replace(psi_min=1.0)
    numbers = measure(free, (1000,), episodes=8)
    assert numbers["OddsRatio"] == pytest.approx(1, abs=1e-6)
    assert numbers["off_RAG"] == pytest.approx(numbers["RAG"], abs=1e-12)
    assert numbers["aggressive"] == pytest.approx(1, abs=1e-9)


def test_the_constants_ratios_are_those_of_the_diagnostic(numbers):
    """RSD draws other episodes, so the means agree within their errors."""
    from rapo.envs.vector import GraphDiffusionVectorEnv

    graph = generate(250, 1000, OUTBREAK)
    env = GraphDiffusionVectorEnv(graph=graph, setting=OUTBREAK, fit=False, deformation="off")
    frame = evaluate(env, ConstantPolicy(0), episodes=40, seed=5).frame
    assert frame["RAG"].mean() == pytest.approx(1, abs=0.12)
    assert measure(OUTBREAK, (1000,), episodes=40)["RAG_P0"] == pytest.approx(1, abs=0.12)


def test_exposures_without_a_cascade_are_counted():
    silent = OUTBREAK.replace(entering_weight=0.01, inside_share=0.0, inside_spread=0.0)
    assert measure(silent, (1000,), episodes=20)["low"] > 0.2
    assert LOW == 0.15


def test_slow_decay_is_measured_with_decaying_scars(numbers, monkeypatch):
    from rapo.paper.calibration import measures

    monkeypatch.setattr(measures, "SLOW_DECAY", 1.0)
    same = measure(OUTBREAK, (1000,), episodes=8)
    assert same["slow_RAG"] == same["RAG"]
    monkeypatch.setattr(measures, "SLOW_DECAY", 0.9)
    assert measure(OUTBREAK, (1000,), episodes=8)["slow_RAG"] > same["RAG"]


def test_a_setting_is_a_setting():
    assert isinstance(OUTBREAK, Setting)
    assert replace(OUTBREAK.params, delta=0.5).delta == 0.5
    assert np.isfinite(list(measure(OUTBREAK, (1000,), episodes=4).values())).all()
