"""Stimuli that fail to ignite V_sens are found and drawn again."""

import numpy as np
import pytest

from rapo.cascade.setting import Setting
from rapo.graphs.generate import generate
from rapo.graphs.ignition import failures

OUTBREAK = Setting.default().replace(
    spread="outbreak", persistence=0.94, factor=0.075, inside_weight=15.0, entering_weight=2.9,
    leaving_weight=0.75, echo=0.78, neighbours=2.8, support=7, inside_share=0.5, inside_spread=0.03,
    rates=(2.9, 1.8, 2.7), injection_cap=0.95, influence_tilt=1.1, risk_tilt=6.0,
    regions="community:10.7", ignition_runs=0,
)  # fmt: skip
"""An outbreak that reaches most of V_sens once it has taken hold there."""


@pytest.fixture(scope="module")
def plain():
    return generate(250, 1103, OUTBREAK)


def test_a_stimulus_that_cannot_reach_v_sens_fails_in_every_run(plain):
    far = np.flatnonzero(~plain.sensitive)
    silent = plain.prob.copy()
    silent[np.isin(plain.sources, far)] = 0
    support = plain.support.copy()
    support[4] = np.sort(far[: support.shape[1]])
    graph = plain.replace(prob=silent, support=support)
    failed = failures(graph, OUTBREAK, runs=20)
    assert failed[4] == 60
    assert np.delete(failed, 4).max() < 20


def test_generation_draws_failing_stimuli_again_and_counts_them(plain):
    before = failures(plain, OUTBREAK, runs=200, seed=1103)
    graph = generate(250, 1103, OUTBREAK.replace(ignition_runs=200))
    assert before.any()
    assert not failures(graph, OUTBREAK, runs=200, seed=1103).any()
    assert graph.meta["redrawn_stimuli"] >= (before > 0).sum()
    assert graph.meta["failing_stimuli"] == 0
    kept = before == 0
    assert np.array_equal(graph.support[kept], plain.support[kept])
    assert np.array_equal(graph.weights[kept], plain.weights[kept])
    assert not (graph.support[~kept] == plain.support[~kept]).all(axis=1).any()
    assert np.array_equal(graph.prob, plain.prob)
