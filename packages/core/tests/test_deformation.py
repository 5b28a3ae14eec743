"""The deformation: mass kept, odds scaled by psi, scopes, and refused input."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo_core.deformation import (
    Scope,
    conductance,
    gate_odds,
    reweight,
    reweight_into,
    within_scope,
)
from rapo_core.params import FieldParams

quick = settings(deadline=None, max_examples=100)


@st.composite
def laws(draw, least=1, most=8):
    """A categorical law with some impossible destinations."""
    n = draw(st.integers(least, most))
    raw = draw(hnp.arrays(float, n, elements=st.one_of(st.just(0.0), st.floats(1e-6, 1))))
    assume(raw.sum() > 0)
    return raw / raw.sum()


@st.composite
def laws_and_psi(draw, least=1, most=8):
    p0 = draw(laws(least, most))
    psi_min = draw(st.floats(1e-3, 1))
    psi = draw(hnp.arrays(float, len(p0), elements=st.floats(psi_min, 1)))
    return p0, psi, psi_min


# --- conductance ---------------------------------------------------------------------------

fields = hnp.arrays(float, (2, 5), elements=st.floats(0, 50))


@quick
@given(fields, st.floats(0, 5), st.floats(0, 5), st.floats(0.001, 1))
def test_conductance_is_the_clipped_exponential(GH, w_G, w_H, psi_min):
    params = FieldParams(w_G=w_G, w_H=w_H, psi_min=psi_min)
    psi = conductance(GH[0], GH[1], params)
    expected = [
        min(max(math.exp(-w_G * g - w_H * h), psi_min), 1.0) for g, h in zip(*GH, strict=True)
    ]
    np.testing.assert_allclose(psi, expected, rtol=1e-12)
    assert np.all((psi >= psi_min) & (psi <= 1))


@quick
@given(fields, st.floats(0.01, 1))
def test_more_harm_never_opens_a_region(GH, psi_min):
    params = FieldParams(psi_min=psi_min)
    psi = conductance(GH[0], GH[1], params)
    assert np.all(conductance(GH[0] + 0.5, GH[1], params) <= psi)
    assert np.all(conductance(GH[0], GH[1] + 0.5, params) <= psi)


def test_conductance_keeps_shape_layout_and_precision():
    G = np.arange(24, dtype=float).reshape(2, 3, 4) / 20
    params = FieldParams(psi_min=0.001)
    expected = np.exp(-3 * G)
    for view in (G, np.asfortranarray(G), np.repeat(G, 2, axis=-1)[..., ::2]):
        np.testing.assert_allclose(conductance(view, view, params), expected, rtol=1e-14)
    assert conductance(0.5, 0.25, params).shape == ()
    assert float(conductance(0.5, 0.25, params)) == pytest.approx(math.exp(-1))
    single = np.float32(G)
    assert conductance(single, single, params).dtype == np.float32
    assert conductance(single, G, params).dtype == np.float64
    assert conductance([0, 1], [0, 0], params).dtype == np.float64
    assert conductance(np.zeros(3, np.float32), np.zeros(3, np.float32), params).tolist() == [1] * 3


@pytest.mark.parametrize(
    ("G", "H", "message"),
    [
        ([0.0, -1.0], [0.0, 0.0], r"G must be finite and >= 0, got -1.0"),
        ([0.0, 1.0], [0.0, math.nan], r"H must be finite and >= 0, got nan"),
        ([0.0, math.inf], [0.0, 0.0], r"G must be finite and >= 0, got inf"),
        ([0.0, 1.0], [0.0], r"G and H must have one shape, got \(2,\) and \(1,\)"),
        (-2.0, 0.0, r"G must be finite and >= 0, got -2.0"),
    ],
)
def test_bad_fields_are_refused(G, H, message):
    with pytest.raises(ValueError, match=message):
        conductance(G, H, FieldParams())


# --- categorical kernels -------------------------------------------------------------------


@quick
@given(laws_and_psi())
def test_reweighting_keeps_the_mass_within_bounds(case):
    p0, psi, psi_min = case
    p = reweight(p0, psi)
    assert abs(p.sum() - 1) <= 1e-12
    assert np.all(p >= psi_min * p0 * (1 - 1e-12))
    assert np.all(p <= p0 / psi_min * (1 + 1e-12))
    assert np.all((p == 0) == (p0 == 0))


@quick
@given(laws_and_psi(least=2))
def test_reweighting_scales_relative_weights_by_psi(case):
    p0, psi, _ = case
    p = reweight(p0, psi)
    i, j = np.argsort(p0)[-2:]
    assume(p0[i] > 0)
    assert p[i] / p[j] == pytest.approx(p0[i] / p0[j] * psi[i] / psi[j], rel=1e-9)


@quick
@given(laws(), st.floats(0.001, 1))
def test_a_common_psi_changes_nothing(p0, psi):
    np.testing.assert_allclose(reweight(p0, np.full(len(p0), psi)), p0, rtol=1e-12)
    np.testing.assert_allclose(reweight(p0, psi), p0, rtol=1e-12)


def test_rows_of_a_kernel_are_normalised_one_by_one():
    p0 = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    psi = np.array([0.1, 1.0, 0.5])
    p = reweight(p0, psi)
    for row in range(2):
        np.testing.assert_array_equal(p[row], reweight(p0[row], psi))
    by_row = reweight(p0, np.array([[0.1, 1, 1], [1, 1, 0.1]]))
    np.testing.assert_allclose(by_row[0], [0.05 / 0.55, 0.5 / 0.55, 0], rtol=1e-14)
    np.testing.assert_allclose(by_row[1], [0.2 / 0.55, 0.3 / 0.55, 0.05 / 0.55], rtol=1e-14)
    assert reweight(np.float32([0.25, 0.75]), np.float32([1, 0.5])).dtype == np.float64


def test_reweighting_leaves_its_input_alone():
    p0, psi = np.array([0.5, 0.5]), np.array([1.0, 0.5])
    reweight(p0, psi)
    assert p0.tolist() == [0.5, 0.5]
    assert psi.tolist() == [1.0, 0.5]


def test_a_shut_destination_is_never_reached():
    assert reweight([0.5, 0.25, 0.25], [0, 1, 1]).tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("p0", "psi", "message"),
    [
        ([0.5, 0.25], 1.0, r"p0 must sum to 1 over the last axis, got 0.75; divide it by its sum"),
        ([[0.5, 0.5], [1.0, 0.5]], 1.0, r"p0 must sum to 1 over the last axis, got 1.5"),
        ([0.5, 0.5, 1e-5], 1.0, r"p0 must sum to 1"),
        ([1.5, -0.5], 1.0, r"p0 must be >= 0, got -0.5"),
        ([math.nan, 1.0], 1.0, r"p0 must be >= 0, got nan"),
        ([math.inf, 1.0], 1.0, r"p0 must sum to 1 .* got inf"),
        (1.0, 1.0, r"over the last axis, got the scalar 1.0"),
        ([], 1.0, r"p0 must sum to 1 over the last axis, got 0.0"),
        ([0.5, 0.5], [1.0, 1.5], r"psi must be in \[0, 1\], got 1.5"),
        ([0.5, 0.5], [1.0, -0.1], r"psi must be in \[0, 1\], got -0.1"),
        ([0.5, 0.5], [math.nan, 1.0], r"psi must be in \[0, 1\], got nan"),
        ([0.5, 0.5], [1.0, 1.0, 1.0], r"psi of shape \(3,\) does not fit p0 of shape \(2,\)"),
        ([0.5, 0.5], [[1, 1], [1, 1]], r"psi of shape \(2, 2\) does not fit p0 of shape \(2,\)"),
        ([0.5, 0.5, 0], [0, 0, 1], r"psi is 0 on every reachable destination; keep psi_min > 0"),
    ],
)
def test_a_bad_kernel_is_refused(p0, psi, message):
    with pytest.raises(ValueError, match=message):
        reweight(p0, psi)


@pytest.mark.parametrize("n", [1, 3, 4, 7, 127, 128, 129, 260, 1001])
def test_the_quick_way_has_the_law_of_the_checked_one_and_sums_all_terms(n):
    rng = np.random.default_rng(n)
    weights, psi = rng.random(n) * 3, rng.uniform(0.1, 1, n)
    law = np.full(n, np.nan)
    total, passed = reweight_into(weights, psi, law)
    whole = math.fsum(weights)
    assert total == pytest.approx(whole, rel=1e-14)
    assert passed == pytest.approx(math.fsum(weights * psi) / whole, rel=1e-14)
    np.testing.assert_allclose(law, reweight(weights / whole, psi), rtol=1e-13)


@pytest.mark.parametrize("whole", [1e-9, 0.3, 1.0])
def test_weights_of_little_mass_have_the_law_of_larger_ones(whole):
    law = np.empty(2)
    total, passed = reweight_into(whole * np.array([0.25, 0.75]), np.array([0.2, 0.4]), law)
    assert (total, passed) == (pytest.approx(whole), pytest.approx(0.35))
    np.testing.assert_allclose(law, [1 / 7, 6 / 7])


@pytest.mark.parametrize("at", [0, 2, 4])
@pytest.mark.parametrize("wrong", [-0.5, np.inf, np.nan])
def test_one_wrong_weight_is_enough_for_the_quick_way_to_refuse(at, wrong):
    weights = np.ones(5)
    weights[at] = wrong
    assert np.isnan(reweight_into(weights, np.ones(5), np.empty(5))).all()


def test_weights_of_nothing_have_no_law():
    assert np.isnan(reweight_into(np.zeros(5), np.ones(5), np.empty(5))).all()


# --- product kernels -----------------------------------------------------------------------

chances = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-9, 1 - 1e-9))


@quick
@given(chances, st.floats(1e-3, 1))
def test_odds_scale_by_exactly_psi(q, psi):
    deformed = float(gate_odds(q, psi))
    if q in (0.0, 1.0):
        assert deformed == q  # what cannot happen or cannot fail keeps its law
    else:
        assert deformed / (1 - deformed) == pytest.approx(psi * q / (1 - q), rel=1e-6)
        assert psi * q * (1 - 1e-12) <= deformed <= q * (1 + 1e-12)


@quick
@given(st.lists(st.tuples(chances, st.floats(0.05, 1)), min_size=1, max_size=5))
def test_the_gate_is_the_papers_kernel_on_sets(nodes):
    """Eq. 5-6 on the product law with psi(A') = prod psi_v, by enumerating every next set."""
    q, psi = (np.array(column) for column in zip(*nodes, strict=True))
    sets = np.array(list(product([0, 1], repeat=len(q))), bool)
    nominal = np.prod(np.where(sets, q, 1 - q), axis=1)
    weighted = nominal * np.prod(np.where(sets, psi, 1.0), axis=1)
    deformed = weighted / weighted.sum()
    gated = gate_odds(q, psi)
    np.testing.assert_allclose(sets.T @ deformed, gated, rtol=1e-9, atol=1e-14)
    independent = np.prod(np.where(sets, gated, 1 - gated), axis=1)
    np.testing.assert_allclose(deformed, independent, rtol=1e-6, atol=1e-14)


def test_the_gate_is_elementwise_and_broadcasts():
    q = np.array([[0.5, 0.2], [0.8, 0.0]])
    psi = np.array([0.25, 1.0])
    np.testing.assert_allclose(gate_odds(q, psi), [[0.2, 0.2], [0.5, 0.0]], rtol=1e-14)
    assert gate_odds(0.5, 0.25).shape == ()
    assert gate_odds(np.float32(0.5), np.float32(0.5)).dtype == np.float64


@pytest.mark.parametrize(
    ("q", "psi", "message"),
    [
        ([0.5, 1.1], 0.5, r"q must be in \[0, 1\], got 1.1"),
        (-0.1, 0.5, r"q must be in \[0, 1\], got -0.1"),
        (math.nan, 0.5, r"q must be in \[0, 1\], got nan"),
        (0.5, 2.0, r"psi must be in \[0, 1\], got 2.0"),
        (0.5, [0.5, 0.5], r"psi of shape \(2,\) does not fit q of shape \(\)"),
        ([1.0], [0.0], r"q = 1 with psi = 0 has no law; keep psi_min > 0"),
    ],
)
def test_bad_chances_are_refused(q, psi, message):
    with pytest.raises(ValueError, match=message):
        gate_odds(q, psi)


# --- scopes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("full", Scope("full")),
        ("off", Scope("off")),
        ("topk:1", Scope("topk", k=1)),
        ("topk:8", Scope("topk", k=8)),
        ("local", Scope("local", share=0.5)),
        ("local:0.25", Scope("local", share=0.25)),
        ("local:1", Scope("local", share=1.0)),
    ],
)
def test_a_scope_is_read_and_written(text, scope):
    assert Scope.parse(text) == scope
    assert Scope.parse(scope) is scope
    assert Scope.parse(str(scope)) == scope


def test_a_share_survives_being_written():
    scope = Scope.parse(f"local:{1 / 3!r}")
    assert Scope.parse(str(scope)) == scope


@pytest.mark.parametrize(
    "text",
    ["", "Full", "full:1", "off:2", "topk", "topk:", "topk:0", "topk:-1", "topk:2.5", "topk:x",
     "local:0", "local:1.5", "local:nan", "local:x", "local:-0.5", "everywhere", 3, None],
)  # fmt: skip
def test_a_scope_that_is_none_is_refused_with_the_choices(text):
    with pytest.raises(ValueError, match=r"must be full, off, topk:<k.* local\[:<share") as caught:
        Scope.parse(text)
    assert f"got {text!r}" in str(caught.value)


def test_a_misspelt_scope_object_does_not_pass_as_off():
    with pytest.raises(ValueError, match="ful"):
        within_scope([0.2, 0.3], [0.5, 0.5], Scope("ful"))


def test_full_and_off():
    psi, p0 = [0.2, 0.3], [[0.5, 0.5], [0.1, 0.9]]
    assert within_scope(psi, p0, "full").tolist() == [psi, psi]
    assert within_scope(psi, p0, "off").tolist() == [[1, 1], [1, 1]]
    full = within_scope(psi, p0, "full")
    full[0, 0] = 9  # an own copy
    assert full[1].tolist() == psi


@quick
@given(laws_and_psi(least=2), st.integers(1, 9))
def test_topk_deforms_the_most_probable_and_spares_the_rest(case, k):
    p0, psi, _ = case
    scoped = within_scope(psi, p0, f"topk:{k}")
    order = sorted(range(len(p0)), key=lambda i: (-p0[i], i))
    chosen = np.isin(np.arange(len(p0)), order[:k])
    np.testing.assert_array_equal(scoped, np.where(chosen, psi, 1.0))
    rest_keeps_its_relative_weights(p0, scoped, ~chosen)


@quick
@given(laws_and_psi(least=2), st.data())
def test_local_deforms_the_designated_and_spares_the_rest(case, data):
    p0, psi, _ = case
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(p0), max_size=len(p0))))
    scoped = within_scope(psi, p0, "local:0.5", chosen)
    np.testing.assert_array_equal(scoped, np.where(chosen, psi, 1.0))
    rest_keeps_its_relative_weights(p0, scoped, ~chosen)


def rest_keeps_its_relative_weights(p0, scoped, rest):
    p = reweight(p0, scoped)
    assert abs(p.sum() - 1) <= 1e-12
    if p0[rest].sum() > 0:
        np.testing.assert_allclose(
            p[rest] / p[rest].sum(), p0[rest] / p0[rest].sum(), rtol=1e-9, atol=1e-15
        )
        assert p[rest].sum() >= p0[rest].sum() * (1 - 1e-12)  # what is held back goes here


def test_topk_breaks_ties_by_index_and_ranks_each_row():
    psi = np.full(4, 0.5)
    p0 = [[0.25, 0.25, 0.25, 0.25], [0.0, 0.1, 0.1, 0.8]]
    assert within_scope(psi, p0, "topk:2").tolist() == [[0.5, 0.5, 1, 1], [1, 0.5, 1, 0.5]]
    assert within_scope(np.float32(psi), p0, "topk:2").dtype == np.float32


def test_local_needs_to_be_told_where():
    with pytest.raises(ValueError, match="a local scope needs `gated_regions`"):
        within_scope([0.5, 0.5], [0.5, 0.5], "local")


def test_within_scope_checks_psi():
    with pytest.raises(ValueError, match=r"psi must be in \[0, 1\], got 1.5"):
        within_scope([0.5, 1.5], [0.5, 0.5], "off")
