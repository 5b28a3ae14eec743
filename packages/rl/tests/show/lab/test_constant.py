"""The quick way of a constant action finds what `evaluate` finds, bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rapo.rsd.frame import against
from rapo.rsd.runner import evaluate
from rapo.show.lab.constant import run_constant
from rapo.show.lab.metrics import CURVES, measure
from rapo.show.lab.request import Episodes


def ignore(done, total):
    """Progress that nobody looks at."""


LEFT_OUT = {"R_c", "ASD"}  # what active sets and laws tell


@pytest.mark.parametrize(
    ("scope", "action", "episodes"),
    [
        ("full", 0, Episodes(3)),
        ("off", 1, Episodes(3, seed=7)),
        ("topk:5", 2, Episodes(3, stimulus=2)),
        ("local:0.5", 0, Episodes(3, coupled=True)),
    ],
)
def test_it_equals_evaluate(source, scope, action, episodes):
    side = source.variant
    env = source.make(type(side)(side.params, side.regions, scope))
    quick = run_constant(env, action, episodes, ignore)
    twin = run_constant(source.make(side.nominal), action, episodes, ignore)
    quick = against(quick, twin)
    slow = evaluate(env, lambda x: action, against_P0=True, selectivity=True, **episodes.options)
    for name in slow.frame:
        if name not in LEFT_OUT:
            np.testing.assert_array_equal(quick.frame[name], slow.frame[name], name)
    for name in slow.traces:
        np.testing.assert_array_equal(quick.traces[name], slow.traces[name], name)
    np.testing.assert_array_equal(quick.scars, slow.scars)


def test_a_run_refuses_what_it_would_not_do_right(source):
    env = source.make(source.variant)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="schedule='external'"):
        env.run(0, 5)
    other = env.like(2, schedule="external")
    with pytest.raises(ValueError, match="call reset"):
        other.run(0, 5)


def test_constants_do_not_move_the_twin_under_p0(source):
    """It is kept from one constant to the next, so it must not depend on them."""
    other = replace(source.variant, params=replace(source.variant.params, psi_min=0.4))
    episodes = Episodes(3, seed=11)
    one, two = (measure(source, side, episodes).result for side in (source.variant, other))
    assert (one.frame["OddsRatio"] != two.frame["OddsRatio"]).any()
    np.testing.assert_array_equal(one.frame["P0Return"], two.frame["P0Return"])
    own = evaluate(source.make(other), lambda x: 0, against_P0=True, **episodes.options)
    np.testing.assert_array_equal(two.frame["SM_vs_P0"], own.frame["SM_vs_P0"])


@pytest.mark.parametrize("moved", [{"w_H": 0.5, "w_G": 0.2, "psi_min": 0.4}, {"tau": 0.9}])
def test_the_numbers_under_p0_are_those_of_its_own_constants(source, moved):
    """Runs under P0 are shared by settings, so moving a constant must not bring a stale one."""
    episodes = Episodes(3, seed=17)
    for params in (source.variant.params, replace(source.variant.params, **moved)):
        side = replace(source.variant, params=params).nominal
        mine = measure(source, side, episodes).result.frame
        env = source.make(side)
        own = evaluate(
            env, lambda x: 0, against_P0=True, selectivity=True, **episodes.options
        ).frame
        for name in set(own) - LEFT_OUT:
            np.testing.assert_array_equal(mine[name], own[name], name)


def test_curves_are_means_over_the_episodes_and_the_shown_one(source):
    found = measure(source, source.variant, Episodes(4, seed=3))
    curves = found.curves(2)
    assert set(curves) == {f"{name}.{kind}" for name in CURVES for kind in ("mean", "shown")}
    for name in CURVES:
        series = found.result.traces[name].astype(np.float64)
        known = np.isfinite(series)
        total = np.where(known, series, 0).sum(axis=0)
        with np.errstate(invalid="ignore"):
            mean = total / known.sum(axis=0)
        np.testing.assert_allclose(curves[f"{name}.mean"], mean, rtol=1e-5)
        np.testing.assert_array_equal(curves[f"{name}.shown"], series[2])
