"""The mathematics of the fields: one formula for doubles, singles and lanes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo_core.deformation import conductance
from rapo_core.fields import (
    HARM_PER_NODE,
    exp_negative,
    harm_and_shares,
    harm_of,
    next_scar,
    next_trace,
    psi_of,
    share_of,
    step_fields,
)
from rapo_core.jit import kernel
from rapo_core.lanes import LANES, load, store
from rapo_core.params import FieldParams

F = np.float32
BARE = FieldParams(w_G=1.0, w_H=0.0, psi_min=1e-38)  # psi is exp(-G), unclipped in float32


def single_exp(y):
    return conductance(np.asarray(y, np.float32), np.zeros(np.shape(y), np.float32), BARE)


def test_single_precision_exp_is_within_two_ulp_of_the_true_one():
    y = np.concatenate([np.linspace(0, 87, 400_001), np.geomspace(1e-30, 87, 100_001)]).astype(
        np.float32
    )
    true = np.exp(-y.astype(np.float64))
    error = np.abs(single_exp(y) - true)
    assert np.max(error / true) < 3e-7
    assert np.max(error / np.spacing(true.astype(np.float32))) < 2


def test_single_precision_exp_is_exactly_one_at_zero_and_never_above():
    tiny = np.array([0.0, 1e-45, 1e-38, 1e-20, 2**-25, 2**-24], np.float32)
    assert single_exp(tiny)[:5].tolist() == [1.0] * 5
    near = np.concatenate([tiny, np.linspace(0, 1e-4, 100_000, dtype=np.float32)])
    assert single_exp(near).max() == 1.0


def test_single_precision_exp_never_rises():
    y = np.linspace(0, 87, 300_001, dtype=np.float32)
    psi = single_exp(y).astype(np.float64)
    assert np.all(np.diff(psi) <= 1e-7 * psi[:-1])  # an ulp of slack at a change of exponent


def test_single_precision_exp_stops_at_87_instead_of_overflowing():
    far = single_exp([87, 88, 127, 1e4, 3e38])
    assert np.unique(far).size == 1
    assert far[0] == pytest.approx(math.exp(-87), rel=3e-7)


def test_double_precision_exp_is_numpys():
    y = np.linspace(0, 40, 1001)
    params = FieldParams(w_G=1.0, w_H=0.0, psi_min=1e-300)
    np.testing.assert_allclose(conductance(y, 0 * y, params), np.exp(-y), rtol=4e-16)
    assert exp_negative(2.0) == np.exp(-2.0)


@kernel
def on_lanes(G, H, inflow, c, out):
    g, h, x = load(G, 0), load(H, 0), load(inflow, 0)
    store(out, 0, psi_of(g, h, c[0], c[1], c[2]))
    store(out, 32, next_trace(g, x, c[3]))
    store(out, 64, next_scar(h, g, c[4], c[5], c[6]))
    store(out, 96, harm_of(x, c[7]))
    store(out, 128, share_of(x, g + x))


@kernel
def on_scalars(G, H, inflow, c, out):
    for i in range(G.size):
        out[i] = psi_of(G[i], H[i], c[0], c[1], c[2])
        out[32 + i] = next_trace(G[i], inflow[i], c[3])
        out[64 + i] = next_scar(H[i], G[i], c[4], c[5], c[6])
        out[96 + i] = harm_of(inflow[i], c[7])
        out[128 + i] = share_of(inflow[i], G[i] + inflow[i])


magnitudes = hnp.arrays(
    np.float32, LANES, elements=st.one_of(st.just(0.0), st.floats(0, 100, width=32))
)
CONSTANTS = np.array([1.0, 2.0, 0.1, 0.9, 1.0, 0.05, 0.3, 0.1])


@settings(deadline=None, max_examples=60)
@given(magnitudes, magnitudes, magnitudes)
def test_lanes_and_single_scalars_agree_to_the_last_bit(G, H, inflow):
    lanes, scalars = np.zeros(160, np.float32), np.zeros(160, np.float32)
    on_lanes(G, H, inflow, CONSTANTS.astype(np.float32), lanes)
    on_scalars(G, H, inflow, CONSTANTS.astype(np.float32), scalars)
    np.testing.assert_array_equal(lanes.view(np.uint32), scalars.view(np.uint32))


@settings(deadline=None, max_examples=60)
@given(magnitudes, magnitudes, magnitudes)
def test_singles_follow_doubles(G, H, inflow):
    singles, doubles = np.zeros(160, np.float32), np.zeros(160)
    on_lanes(G, H, inflow, CONSTANTS.astype(np.float32), singles)
    on_scalars(*(a.astype(np.float64) for a in (G, H, inflow)), CONSTANTS, doubles)
    # an exponent of up to 300 carries its rounding error (2^-24 relative) into psi as 2e-5,
    # but psi >= 0.1 means an exponent below 2.4: 1e-6 covers all of them
    np.testing.assert_allclose(singles, doubles, rtol=1e-6, atol=1e-6)


def test_harm_is_a_tenth_a_node_up_to_one():
    out = np.zeros(160)
    for affected, expected in [(0, 0.0), (1, 0.1), (7, 0.7), (9, 0.9), (10, 1.0), (250, 1.0)]:
        counts = np.full(LANES, float(affected))
        on_scalars(counts, counts, counts, CONSTANTS, out)
        assert out[96] == pytest.approx(expected, abs=1e-15)
        assert out[96] <= 1.0
    assert HARM_PER_NODE == 0.1


def test_the_scar_grows_only_above_the_threshold():
    out = np.zeros(160)
    G = np.array([0.0, 0.3, np.nextafter(0.3, 1), 0.5] * 8)
    on_scalars(G, np.zeros(LANES), np.zeros(LANES), CONSTANTS, out)
    assert out[64:66].tolist() == [0.0, 0.0]
    assert out[66] > 0
    assert out[67] == pytest.approx(0.05 * 0.2, rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_decaying_field_ends_at_zero_before_it_is_subnormal(dtype):
    G, H = np.ones((1, 2), dtype), np.ones((1, 2), dtype)
    none, zeros = np.zeros(1, dtype), np.zeros((1, 2), dtype)
    keep, delta, rest = dtype(0.5), dtype(0.25), (dtype(0), dtype(9))
    smallest = 1.0
    for _ in range(110):
        step_fields(G, H, none, zeros, keep, dtype(0.5), delta, *rest, G, H)
        assert np.all((G == 0) | (G > 1e-30))
        smallest = min(smallest, G.max() or smallest)
    assert not G.any()
    assert not H.any()
    assert smallest < 2e-30  # nothing above the limit is dropped


def test_attribution_is_each_regions_share():
    affected = np.array([[2.0, 0.0, 6.0], [0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    harm, shares = np.empty(3), np.empty((3, 3))
    harm_and_shares(affected, 0.1, harm, shares)
    np.testing.assert_allclose(harm, [0.8, 0.0, 0.5])
    np.testing.assert_array_equal(shares, [[0.25, 0.0, 0.75], [0.0] * 3, [0.0, 1.0, 0.0]])


def test_a_step_uses_the_trace_before_its_update():
    G, H = np.array([[0.5]]), np.array([[0.2]])
    step_fields(G, H, np.array([1.0]), np.array([[1.0]]), 0.9, 0.5, 0.99, 0.05, 0.3, G, H)
    assert H[0, 0] == pytest.approx(0.99 * 0.2 + 0.05 * (0.5 - 0.3), rel=1e-14)
    assert G[0, 0] == pytest.approx(0.9 * 0.5 + 0.5, rel=1e-14)
