"""The metrics are those of `evaluate`, whatever the cache of runs remembers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rapo.rsd.runner import evaluate
from rapo.show.lab.metrics import CURVES, measure
from rapo.show.lab.request import Episodes


def test_constants_do_not_move_the_twin_under_p0(source):
    """It is kept from one constant to the next, so it must not depend on them."""
    other = replace(source.variant, params=replace(source.variant.params, psi_min=0.4))
    episodes = Episodes(3, seed=11)
    one, two = (measure(source, variant, episodes).result for variant in (source.variant, other))
    assert (one.frame["OddsRatio"] != two.frame["OddsRatio"]).any()
    np.testing.assert_array_equal(one.frame["P0Return"], two.frame["P0Return"])
    own = evaluate(source.make(other), lambda x: 0, against_P0=True, **episodes.options)
    np.testing.assert_array_equal(two.frame["SM_vs_P0"], own.frame["SM_vs_P0"])


@pytest.mark.parametrize("moved", [{"w_H": 0.5, "w_G": 0.2, "psi_min": 0.4}, {"tau": 0.9}])
def test_the_numbers_under_p0_are_those_of_its_own_constants(source, moved):
    """Runs under P0 are shared by settings, so moving a constant must not bring a stale one."""
    episodes = Episodes(3, seed=17)
    for params in (source.variant.params, replace(source.variant.params, **moved)):
        variant = replace(source.variant, params=params).nominal
        mine = measure(source, variant, episodes).result.frame
        env = source.make(variant)
        own = evaluate(
            env, lambda x: 0, against_P0=True, selectivity=True, **episodes.options
        ).frame
        for name in set(own) - {"ASD"}:
            np.testing.assert_array_equal(mine[name], own[name], name)


def test_curves_are_means_over_the_episodes_and_the_shown_one(source):
    metrics = measure(source, source.variant, Episodes(4, seed=3))
    curves = metrics.curves(2)
    assert set(curves) == {f"{name}.{kind}" for name in CURVES for kind in ("mean", "shown")}
    for name in CURVES:
        series = metrics.result.traces[name].astype(np.float64)
        known = np.isfinite(series)
        total = np.where(known, series, 0).sum(axis=0)
        with np.errstate(invalid="ignore"):
            mean = total / known.sum(axis=0)
        np.testing.assert_allclose(curves[f"{name}.mean"], mean, rtol=1e-5)
        np.testing.assert_array_equal(curves[f"{name}.shown"], series[2])
