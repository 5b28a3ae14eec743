"""Stimuli that fail to ignite V_sens are found and drawn again."""

import numpy as np
import pytest

from rapo.cascade.setting import Setting
from rapo.graphs.generate import generate
from rapo.graphs.ignition import IGNITED, nominal_masses

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


def failing(graph, runs, seed=0):
    """(Z,) whether a stimulus fails in one of its runs."""
    masses = nominal_masses(graph, OUTBREAK, np.arange(20), runs=runs, seed=seed)
    return (masses < IGNITED * masses.mean(axis=(1, 2), keepdims=True)).any(axis=(0, 1))


def test_a_stimulus_that_cannot_reach_v_sens_has_no_mass(plain):
    far = np.flatnonzero(~plain.sensitive)
    silent = plain.prob.copy()
    silent[np.isin(plain.sources, far)] = 0
    support = plain.support.copy()
    support[4] = np.sort(far[: support.shape[1]])
    graph = plain.replace(prob=silent, support=support)
    masses = nominal_masses(graph, OUTBREAK, np.arange(20), runs=20)
    assert masses.shape == (3, 20, 20)
    assert (masses[:, :, 4] == 0).all()
    assert np.delete(masses, 4, axis=2).mean() > 500


def test_the_runs_of_a_stimulus_do_not_depend_on_which_others_run(plain):
    whole = nominal_masses(plain, OUTBREAK, np.arange(20), runs=8, seed=3)
    assert np.array_equal(
        nominal_masses(plain, OUTBREAK, np.array([2, 11]), runs=8, seed=3), whole[:, :, [2, 11]]
    )


def test_generation_draws_failing_stimuli_again_and_counts_them(plain):
    fails = failing(plain, 200, seed=1103)
    graph = generate(250, 1103, OUTBREAK.replace(ignition_runs=200))
    assert fails.any() and not fails.all()
    masses = nominal_masses(graph, OUTBREAK, np.arange(20), runs=200, seed=1103)
    assert (masses > 0.9 * IGNITED * masses.mean(axis=(1, 2), keepdims=True)).all()
    assert graph.meta["redrawn_stimuli"] >= fails.sum()
    assert graph.meta["failing_stimuli"] == 0
    assert np.array_equal(graph.support[~fails], plain.support[~fails])
    assert np.array_equal(graph.weights[~fails], plain.weights[~fails])
    assert not (graph.support[fails] == plain.support[fails]).all(axis=1).any()
    assert np.array_equal(graph.prob, plain.prob)
