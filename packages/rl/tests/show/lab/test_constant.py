"""The quick way of a constant action finds what `evaluate` finds, bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rapo.rsd.frame import against
from rapo.rsd.runner import evaluate
from rapo.show.lab.constant import run_constant
from rapo.show.lab.film import film_of
from rapo.show.lab.numbers import CURVES, answer
from rapo.show.lab.request import Draws

LEFT_OUT = {"R_c", "ASD"}  # what active sets and laws tell


@pytest.mark.parametrize(
    ("scope", "action", "draws"),
    [
        ("full", 0, Draws(3)),
        ("off", 1, Draws(3, seed=7)),
        ("topk:5", 2, Draws(3, stimulus=2)),
        ("local:0.5", 0, Draws(3, coupled=True)),
    ],
)
def test_it_equals_evaluate(source, scope, action, draws):
    side = source.side
    env = source.make(type(side)(side.params, side.regions, scope))
    quick = run_constant(env, action, draws, lambda: None)
    twin = run_constant(source.make(side.nominal), action, draws, lambda: None)
    quick = against(quick, twin)
    slow = evaluate(env, lambda x: action, against_P0=True, selectivity=True, **draws.options)
    for name in slow.frame:
        if name not in LEFT_OUT:
            np.testing.assert_array_equal(quick.frame[name], slow.frame[name], name)
    for name in slow.traces:
        np.testing.assert_array_equal(quick.traces[name], slow.traces[name], name)
    np.testing.assert_array_equal(quick.scars, slow.scars)


def test_a_run_refuses_what_it_would_not_do_right(source):
    env = source.make(source.side)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="schedule='external'"):
        env.run(0, 5)
    other = env.like(2, schedule="external")
    with pytest.raises(ValueError, match="call reset"):
        other.run(0, 5)


def test_the_film_is_of_the_episode_whose_curves_are_shown(source):
    draws = Draws(4, seed=3, shown=2)
    found = answer(source, source.side, draws, lambda: None)
    film = film_of(source, source.side, draws, lambda: None)
    n = source.graph.n
    active = np.unpackbits(film.arrays["active"], axis=1, count=n, bitorder="little")
    np.testing.assert_array_equal(active.sum(axis=1), found.result.traces["reach"][2])
    inside = active[:, source.graph.sensitive].sum(axis=1)
    np.testing.assert_array_equal(inside, found.result.traces["sensitive_mass"][2])
    assert film.every == 1
    mass = film.arrays["H"].sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(mass, found.result.traces["scar_mass"][2], rtol=1e-4)
    assert film.stimulus == found.result.frame["stimulus"][2]
    regions = source.regions(source.side.regions)
    live = np.unique(regions[source.graph.sensitive])
    np.testing.assert_array_equal(live[film.arrays["region"][source.graph.sensitive]],
                                  regions[source.graph.sensitive])  # fmt: skip


@pytest.mark.parametrize("scope", ["full", "local:0.5"])
def test_the_film_tells_which_regions_are_never_deformed(source, scope):
    side = replace(source.side, scope=scope)
    engine = source.make(side).engine
    film = film_of(source, side, Draws(2), lambda: None)
    closed = film.arrays["open"] == 0
    assert closed.any() and closed.all() == (scope == "full")
    np.testing.assert_array_equal(closed, engine.gated_regions)


def test_a_film_of_many_regions_tells_their_fields_less_often(source, monkeypatch):
    monkeypatch.setattr("rapo.show.lab.film.MOST_FIELDS", 600)
    whole = film_of(source, source.side, Draws(4), lambda: None)
    monkeypatch.undo()
    each = film_of(source, source.side, Draws(4), lambda: None)
    assert whole.every > 1
    np.testing.assert_array_equal(
        whole.arrays["H"],
        each.arrays["H"][whole.every - 1 :: whole.every][: len(whole.arrays["H"])],
    )


def test_constants_do_not_move_the_twin_under_p0(source):
    """It is kept from one constant to the next, so it must not depend on them."""
    other = replace(source.side, params=replace(source.side.params, psi_min=0.4))
    draws = Draws(3, seed=11)
    one, two = (answer(source, side, draws, lambda: None).result for side in (source.side, other))
    assert (one.frame["OddsRatio"] != two.frame["OddsRatio"]).any()
    np.testing.assert_array_equal(one.frame["P0Return"], two.frame["P0Return"])
    own = evaluate(source.make(other), lambda x: 0, against_P0=True, **draws.options)
    np.testing.assert_array_equal(two.frame["SM_vs_P0"], own.frame["SM_vs_P0"])


@pytest.mark.parametrize("moved", [{"w_H": 0.5, "w_G": 0.2, "psi_min": 0.4}, {"tau": 0.9}])
def test_the_numbers_under_p0_are_those_of_its_own_constants(source, moved):
    """Runs under P0 are shared by settings, so moving a constant must not bring a stale one."""
    draws = Draws(3, seed=17)
    for params in (source.side.params, replace(source.side.params, **moved)):
        side = replace(source.side, params=params).nominal
        mine = answer(source, side, draws, lambda: None).result.frame
        env = source.make(side)
        own = evaluate(env, lambda x: 0, against_P0=True, selectivity=True, **draws.options).frame
        for name in set(own) - LEFT_OUT:
            np.testing.assert_array_equal(mine[name], own[name], name)


def test_curves_are_means_over_the_episodes_and_the_shown_one(source):
    found = answer(source, source.side, Draws(4, seed=3), lambda: None)
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
