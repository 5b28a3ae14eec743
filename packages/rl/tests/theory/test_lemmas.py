"""The lemmas: the bound that always holds, the printed one and its premises, events on sets."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo.theory import (
    compounded_entry,
    entry_odds,
    event_odds,
    odds_bound,
    paper_odds_bound,
    paper_safe_mass_bound,
    safe_mass_bound,
    scarring_regions_at_most,
)
from rapo_core.deformation import conductance, gate_odds, reweight
from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

quick = settings(deadline=None, max_examples=150)
SLACK = 1 + 1e-9
BOTH = np.array([True, False])


@st.composite
def worlds(draw, common_trace=None):
    """(p0, G, H, harmful, params) on 2..6 destinations, with and without the lemma's premises."""
    n = draw(st.integers(2, 6))
    harmful = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assume(harmful.any() and not harmful.all())
    raw = draw(hnp.arrays(float, n, elements=st.floats(0.01, 1)))
    common = draw(st.booleans()) if common_trace is None else common_trace
    traces = st.floats(0, 2)
    G = np.full(n, draw(traces)) if common else draw(hnp.arrays(float, n, elements=traces))
    H = draw(hnp.arrays(float, n, elements=st.floats(0, 1)))
    if draw(st.booleans()):
        H = H + harmful * draw(st.floats(0, 2))  # usually a scar gap
    params = FieldParams(
        w_G=draw(st.sampled_from([0.0, 1.0, 2.0])),
        w_H=draw(st.floats(0, 4)),
        psi_min=draw(st.sampled_from([1e-12, 0.1, 0.5])),
    )
    return raw / raw.sum(), G, H, harmful, params


def deformed_odds(p0, G, H, harmful, params):
    return entry_odds(reweight(p0, conductance(G, H, params)), harmful)


def premises(G, H, harmful, params):
    """Lemma 1's premises, spelled out independently of the implementation."""
    gap = min(H[harmful]) > max(H[~harmful])
    common = params.w_G == 0 or len(set(G)) == 1
    lowest = min(math.exp(-params.w_G * g - params.w_H * h) for g, h in zip(G, H, strict=True))
    assume(abs(lowest / params.psi_min - 1) > 1e-9)  # not on the very edge of the clip
    return gap and common and lowest >= params.psi_min


# --- Lemma 1 -------------------------------------------------------------------------------


@quick
@given(worlds())
def test_the_general_bound_always_holds(world):
    p0, G, H, harmful, params = world
    bound = odds_bound(conductance(G, H, params), harmful)
    assert bound.applies
    assert deformed_odds(*world) <= bound.value * entry_odds(p0, harmful) * SLACK


@quick
@given(worlds())
def test_the_printed_bound_holds_when_it_says_it_applies(world):
    p0, G, H, harmful, params = world
    bound = paper_odds_bound(G, H, harmful, params)
    assert bound.applies == premises(G, H, harmful, params)
    gap = min(H[harmful]) - max(H[~harmful])
    assert bound.value == pytest.approx(math.exp(-params.w_H * gap), rel=1e-12)
    if bound.applies:
        assert deformed_odds(*world) <= bound.value * entry_odds(p0, harmful) * SLACK
        general = odds_bound(conductance(G, H, params), harmful)
        assert general.value <= bound.value * SLACK  # the general bound is the sharper one


@quick
@given(worlds(common_trace=True), st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_the_printed_bound_is_met_with_equality_on_two_levels(world, low, gap):
    p0, G, _, harmful, params = world
    params = FieldParams.from_dict({**params.to_dict(), "psi_min": 1e-12})
    H = np.where(harmful, low + gap, low)
    bound = paper_odds_bound(G, H, harmful, params)
    assert bound.applies
    odds = deformed_odds(p0, G, H, harmful, params)
    assert odds == pytest.approx(bound.value * entry_odds(p0, harmful), rel=1e-9)
    general = odds_bound(conductance(G, H, params), harmful)
    assert general.value == pytest.approx(bound.value, rel=1e-9)


def test_the_general_bound_by_hand():
    bound = odds_bound([0.2, 0.4, 0.5, 1.0], np.array([True, True, False, False]))
    assert bound.value == pytest.approx(0.8)
    assert bound.applies
    assert bound.why


def printed_bound_fails(p0, G, H, params, reason):
    bound = paper_odds_bound(G, H, BOTH, params)
    assert not bound.applies
    assert reason in bound.why
    nominal, deformed = entry_odds(p0, BOTH), deformed_odds(p0, G, H, BOTH, params)
    assert deformed > 1.5 * bound.value * nominal
    general = odds_bound(conductance(G, H, params), BOTH)
    assert deformed <= general.value * nominal * SLACK


def test_the_printed_bound_fails_when_the_trace_differs():
    printed_bound_fails([0.5, 0.5], [0.0, 1.0], [0.2, 0.0], FieldParams(), "not common")


def test_the_printed_bound_fails_when_psi_is_clipped():
    printed_bound_fails([0.5, 0.5], [0.0, 0.0], [5.0, 0.0], FieldParams(), "clipped")


def test_without_a_gap_the_printed_bound_does_not_apply():
    for H in ([0.5, 0.5], [0.2, 0.5]):
        bound = paper_odds_bound([0, 0], H, BOTH, FieldParams())
        assert not bound.applies
        assert "no scar gap" in bound.why


def test_a_differing_trace_does_no_harm_without_weight():
    bound = paper_odds_bound([0.0, 1.0], [0.2, 0.0], BOTH, FieldParams(w_G=0))
    assert bound.applies
    assert bound.value == pytest.approx(math.exp(-0.4))


def test_the_clip_is_compared_with_trace_and_scar_together():
    params = FieldParams(psi_min=0.3)  # exp(-0.5 - 2 * 0.3) = 0.333, exp(-0.7 - 0.6) = 0.273
    assert paper_odds_bound([0.5, 0.5], [0.3, 0.0], BOTH, params).applies
    assert not paper_odds_bound([0.7, 0.7], [0.3, 0.0], BOTH, params).applies


# --- Lemma 2 -------------------------------------------------------------------------------


@quick
@given(worlds())
def test_safe_mass_is_at_least_the_bound(world):
    p0, G, H, harmful, params = world
    psi = conductance(G, H, params)
    q0, q = p0[~harmful].sum(), reweight(p0, psi)[~harmful].sum()
    assert q >= safe_mass_bound(q0, odds_bound(psi, harmful).value) / SLACK
    lemma2 = paper_safe_mass_bound(q0 / 2, G, H, harmful, params)
    assert lemma2.applies == premises(G, H, harmful, params)
    if lemma2.applies:
        assert q >= lemma2.value / SLACK  # q0 >= delta is enough


@quick
@given(worlds(), st.floats(0.01, 1))
def test_lemma_2_is_the_printed_formula(world, delta):
    _, G, H, harmful, params = world
    low, high = math.exp(-params.w_H * max(H[~harmful])), math.exp(-params.w_H * min(H[harmful]))
    expected = delta * low / (delta * low + (1 - delta) * high)
    bound = paper_safe_mass_bound(delta, G, H, harmful, params)
    assert bound.value == pytest.approx(expected, rel=1e-12)
    assert bound.why == paper_odds_bound(G, H, harmful, params).why


@quick
@given(st.floats(1e-6, 1), st.floats(0, 10))
def test_the_safe_mass_bound_inverts_the_odds(q0, factor):
    q = safe_mass_bound(q0, factor)
    assert 0 < q <= 1
    assert (1 - q) * q0 == pytest.approx(factor * (1 - q0) * q, abs=1e-12)


def test_safe_mass_at_the_ends():
    assert safe_mass_bound(0.5, 0) == 1
    assert safe_mass_bound(0.5, 1) == 0.5
    assert safe_mass_bound(0, 0) == 0  # nothing nominal, nothing promised
    assert safe_mass_bound(1, 3) == 1


# --- events on sets ------------------------------------------------------------------------

nodes = st.lists(st.tuples(st.floats(0, 0.95), st.floats(0.05, 1)), min_size=1, max_size=5)


@quick
@given(nodes)
def test_event_odds_equal_the_enumerated_product_law(pairs):
    q, psi = (np.array(column) for column in zip(*pairs, strict=True))
    sets = np.array(list(product([0, 1], repeat=len(q))), bool)
    nominal = np.prod(np.where(sets, q, 1 - q), axis=1)
    deformed = nominal * np.prod(np.where(sets, psi, 1.0), axis=1)  # Z cancels in the odds
    some = sets.any(axis=1)
    for law, odds in ((nominal, event_odds(q)), (deformed, event_odds(q, psi))):
        assert odds == pytest.approx(law[some].sum() / law[~some].sum(), rel=1e-9, abs=1e-12)
    o = q / (1 - q)
    assert event_odds(q, psi) == pytest.approx(np.prod(1 + psi * o) - 1, rel=1e-9, abs=1e-12)
    assert event_odds(q, psi) == pytest.approx(event_odds(gate_odds(q, psi)), rel=1e-9, abs=1e-12)


@quick
@given(nodes)
def test_event_odds_contract_by_the_largest_psi(pairs):
    q, psi = (np.array(column) for column in zip(*pairs, strict=True))
    assert event_odds(q, psi) <= psi.max() * event_odds(q) * SLACK + 1e-15
    assert event_odds(q, psi) >= psi.min() ** len(q) * event_odds(q) / SLACK - 1e-15


def test_event_odds_keep_tiny_chances():
    assert event_odds([1e-18, 2e-18]) == pytest.approx(3e-18, rel=1e-12, abs=0)
    assert event_odds([0.0, 0.0]) == 0
    assert event_odds([0.5, 0.5]) == pytest.approx(3.0)


# --- compounding ---------------------------------------------------------------------------


@quick
@given(
    st.floats(0, 0.99),
    st.floats(0, 1),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=6),
)
def test_repeated_entries_stay_below_the_compounded_bound(p0, factor, steps):
    """Steps with a nominal entry of at most p0 and odds contracted by at most the factor."""
    chance = 1.0
    for of_p0, of_factor in steps:
        p = of_p0 * p0
        odds = of_factor * factor * p / (1 - p)
        chance *= odds / (1 + odds)
    assert chance <= compounded_entry(p0, factor, len(steps)) * SLACK + 1e-15


def test_compounding_by_hand():
    assert compounded_entry(0.5, 0.25, 3) == pytest.approx(0.2**3)
    assert compounded_entry(0.5, 1.0, 2) == pytest.approx(0.25)
    assert compounded_entry(0.7, 0.3, 0) == 1
    assert compounded_entry(1.0, 0.1, 5) == 1
    assert compounded_entry(0.0, 0.5, 2) == 0


# --- entry odds and refused input ----------------------------------------------------------


def test_entry_odds():
    harmful = np.array([True, False, True])
    assert entry_odds([0.2, 0.5, 0.3], harmful) == pytest.approx(1.0)
    assert entry_odds([0.25, 0.75, 0], harmful) == pytest.approx(1 / 3)
    assert entry_odds([0.4, 0.0, 0.6], harmful) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: odds_bound([0.5, 1], [1, 0]), r"bool array of shape \(2,\), got int64 \(2,\)"),
        (lambda: odds_bound([0.5, 1], [True]), r"bool array of shape \(2,\), got bool \(1,\)"),
        (lambda: odds_bound([0.5, 1], [True, True]), r"both sets must have members, got 2 of 2"),
        (lambda: entry_odds([0.5, 0.5], [False, False]), r"members, got 0 of 2"),
        (lambda: odds_bound([0.5, 0.0], BOTH), r"positive outside the harmful set, got 0.0"),
        (lambda: odds_bound([-1.0, 0.5], BOTH), r"psi must be .*got -1.0"),
        (lambda: odds_bound([math.nan, 0.5], BOTH), r"psi must be .*got nan"),
        (lambda: odds_bound([0.5, math.nan], BOTH), r"psi must be .*got nan"),
        (lambda: safe_mass_bound(1.5, 0.5), r"q0 must be in \[0, 1\], got 1.5"),
        (lambda: safe_mass_bound(math.nan, 0.5), r"q0 must be in \[0, 1\], got nan"),
        (lambda: safe_mass_bound(0.5, -1), r"factor must be >= 0 and finite, got -1"),
        (lambda: safe_mass_bound(0.5, math.nan), r"factor must be >= 0 and finite, got nan"),
        (lambda: event_odds([0.5, 1.0]), r"q must be in \[0, 1\), got 1.0"),
        (lambda: event_odds([-0.5]), r"q must be in \[0, 1\), got -0.5"),
        (lambda: event_odds([0.5, 0.5], [0.5, -1.0]), r"psi must be in \[0, 1\], got -1.0"),
        (lambda: compounded_entry(0.5, 0.5, -1), r"steps must be >= 0, got -1"),
        (lambda: compounded_entry(1.5, 0.5, 2), r"p0 must be in \[0, 1\], got 1.5"),
        (lambda: compounded_entry(-0.5, 0.5, 2), r"p0 must be in \[0, 1\], got -0.5"),
        (lambda: compounded_entry(math.nan, 0.5, 2), r"p0 must be in \[0, 1\], got nan"),
    ],
)
def test_bad_input_is_refused_by_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("G", "H"),
    [([math.nan, math.nan], [0.5, 0.0]), ([0.0, 0.0], [-1.0, -2.0]), ([-1.0, -1.0], [0.5, 0.0])],
)
def test_the_printed_bound_refuses_fields_that_cannot_be(G, H):
    with pytest.raises(ValueError, match=r"must be finite and >= 0, got"):
        paper_odds_bound(G, H, BOTH, FieldParams())


@pytest.mark.parametrize("tau", [0.3, 0.5, 1.0, 4.0])
def test_no_more_regions_than_the_bound_scar_together(tau):
    params = FieldParams(tau=tau)
    most = int(scarring_regions_at_most(params))
    for count in (most, most + 1):
        if count == 0:
            continue
        memory = HarmMemory(regions=count, params=params)
        for _ in range(1000):
            memory.step(harm=1.0, weights=np.full(count, 1 / count))
        assert (memory.H.max() > 1e-9) == (count <= most)


def test_with_tau_0_any_number_of_regions_scars():
    assert scarring_regions_at_most(FieldParams(tau=0)) == math.inf
    assert scarring_regions_at_most(FieldParams()) == 16
