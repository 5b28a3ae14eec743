"""Lanes: 32 values at once give the bits that one value at a time gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rapo_core.jit import kernel
from rapo_core.lanes import (
    LANES,
    add_eight,
    load,
    ones_of,
    root,
    store,
    two_to_minus,
    unit,
    where,
    whole,
    whole_above,
    word,
)

F = np.float32
SPECIAL = np.array(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 1e-38, 1.1754944e-38, 3.4e38, -3.4e38, 0.1,
     1 / 3, 1 + 2**-23, 1 - 2**-24, 16777215, 16777216, 7, 10, 100, 1e-20, -1e-20, 2**-126],
    np.float32,
)  # fmt: skip

floats32 = hnp.arrays(np.float32, LANES, elements=st.floats(width=32))
words32 = hnp.arrays(np.uint32, LANES, elements=st.integers(0, 2**32 - 1))
one_float = st.floats(width=32).map(np.float32)


def same_bits(got, expected):
    """Equal to the last bit; any NaN equals any other (IEEE leaves its payload open)."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        real, bits = ~np.isnan(got), f"u{got.itemsize}"
        got, expected = got[real].view(bits), expected[real].view(bits)
    np.testing.assert_array_equal(got, expected)


@kernel
def float_lanes(a, b, s, out):
    x, y = load(a, 0), load(b, 0)
    store(out, 0, x + y)
    store(out, 32, x - y)
    store(out, 64, x * y)
    store(out, 96, x / y)
    store(out, 128, where(x < y, x, y))
    store(out, 160, where(x > y, x, y))
    store(out, 192, x + s)
    store(out, 224, s - x)
    store(out, 256, x - s)
    store(out, 288, s * x)
    store(out, 320, x / s)
    store(out, 352, s / x)
    store(out, 384, where(x < s, s, y))
    store(out, 416, where(s > x, x, s))
    store(out, 448, x * y + s)  # must round twice


@kernel
def float_scalars(a, b, s, out):
    for i in range(32):
        x, y = a[i], b[i]
        out[i] = x + y
        out[32 + i] = x - y
        out[64 + i] = x * y
        out[96 + i] = x / y
        out[128 + i] = where(x < y, x, y)
        out[160 + i] = where(x > y, x, y)
        out[192 + i] = x + s
        out[224 + i] = s - x
        out[256 + i] = x - s
        out[288 + i] = s * x
        out[320 + i] = x / s
        out[352 + i] = s / x
        out[384 + i] = where(x < s, s, y)
        out[416 + i] = where(s > x, x, s)
        out[448 + i] = x * y + s


def float_numpy(x, y, s):
    with np.errstate(all="ignore"):
        rows = [x + y, x - y, x * y, x / y, np.where(x < y, x, y), np.where(x > y, x, y)]
        rows += [x + s, s - x, x - s, s * x, x / s, s / x]
        rows += [np.where(x < s, s, y), np.where(s > x, x, s), x * y + s]
    return np.concatenate(rows)


@settings(deadline=None, max_examples=60)
@given(floats32, floats32, one_float)
def test_float_arithmetic_equals_scalars_bit_by_bit(a, b, s):
    lanes, scalars = np.empty(480, np.float32), np.empty(480, np.float32)
    float_lanes(a, b, s, lanes)
    float_scalars(a, b, s, scalars)
    same_bits(lanes, scalars)
    same_bits(lanes, float_numpy(a, b, s))


def test_special_values_subnormals_included():
    pairs = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    pairs = np.pad(pairs, ((0, 0), (0, -pairs.shape[1] % LANES)))
    out = np.empty(480, np.float32)
    for a, b in zip(*pairs.reshape(2, -1, LANES), strict=True):
        for s in (F(0), F(3), F("nan"), F(1e-45)):
            float_lanes(a.copy(), b.copy(), s, out)
            same_bits(out, float_numpy(a, b, s))


@kernel
def double_lanes(a, b, s, out):
    x, y = load(a, 0), load(b, 0)
    store(out, 0, x + y)
    store(out, 32, s - x)
    store(out, 64, x * y)
    store(out, 96, x / y)
    store(out, 128, where(x < y, x, s))
    store(out, 160, where(s > x, y, x))
    store(out, 192, x * y + s)  # must round twice
    store(out, 224, whole_above(x))


@settings(deadline=None, max_examples=60)
@given(*[hnp.arrays(np.float64, LANES, elements=st.floats())] * 2, st.floats())
def test_lanes_of_float64_are_numpys_bit_by_bit(x, y, s):
    out = np.empty(256)
    double_lanes(x, y, s, out)
    with np.errstate(all="ignore"):
        rows = [x + y, s - x, x * y, x / y, np.where(x < y, x, s), np.where(s > x, y, x)]
        expected = np.concatenate([*rows, x * y + s, np.ceil(x)])
    same_bits(out, expected)


@kernel
def word_lanes(a, b, s, out, units):
    x, y = load(a, 0), load(b, 0)
    store(out, 0, x + y)
    store(out, 32, x * y)
    store(out, 64, x ^ y)
    store(out, 96, x >> s)
    store(out, 128, word(x * y + s))
    store(out, 160, s ^ x)
    store(out, 192, s * x)
    store(units, 0, unit(x))
    store(units, 32, unit(word(x * y)))


@kernel
def word_scalars(a, b, s, out, units):
    for i in range(32):
        x, y = a[i], b[i]
        out[i] = word(x + y)
        out[32 + i] = word(x * y)
        out[64 + i] = word(x ^ y)
        out[96 + i] = word(x >> s)
        out[128 + i] = word(word(x * y) + s)
        out[160 + i] = word(s ^ x)
        out[192 + i] = word(s * x)
        units[i] = unit(x)
        units[32 + i] = unit(word(x * y))


@settings(deadline=None, max_examples=60)
@given(words32, words32, st.integers(0, 31).map(np.uint32))
def test_words_wrap_at_32_bits_like_python_integers(a, b, s):
    lanes, scalars = np.empty(224, np.uint32), np.empty(224, np.uint32)
    units, units_by_one = np.empty(64, np.float32), np.empty(64, np.float32)
    word_lanes(a, b, s, lanes, units)
    word_scalars(a, b, s, scalars, units_by_one)
    x, y, k = [int(v) for v in a], [int(v) for v in b], int(s)
    pairs = list(zip(x, y, strict=True))
    expected = [u + v for u, v in pairs] + [u * v for u, v in pairs] + [u ^ v for u, v in pairs]
    expected += [u >> k for u in x] + [u * v + k for u, v in pairs]
    expected += [k ^ u for u in x] + [k * u for u in x]
    np.testing.assert_array_equal(lanes, np.array(expected, object) % 2**32)
    same_bits(scalars, lanes)
    products = [u * v % 2**32 for u, v in pairs]
    same_bits(units, np.array([(u >> 8) / 2**24 for u in x + products], np.float32))
    same_bits(units_by_one, units)


def test_unit_is_below_one_and_ignores_the_lowest_byte():
    a = np.zeros(LANES, np.uint32)
    a[:6] = [0, 0xFF, 0x100, 0x80000000, 0xFFFFFF00, 0xFFFFFFFF]
    units = np.empty(64, np.float32)
    word_lanes(a, a, np.uint32(0), np.empty(224, np.uint32), units)
    assert units[:6].tolist() == [0, 0, 2**-24, 0.5, 1 - 2**-24, 1 - 2**-24]


@kernel
def shapes_lanes(x, k, out):
    store(out, 0, root(load(x, 0)))
    store(out, 32, whole(load(x, 0)))
    store(out, 64, two_to_minus(load(k, 0)))


@kernel
def shapes_scalars(x, k, out):
    for i in range(32):
        out[i] = root(x[i])
        out[32 + i] = whole(x[i])
        out[64 + i] = two_to_minus(k[i])


@settings(deadline=None, max_examples=60)
@given(
    hnp.arrays(np.float32, LANES, elements=st.floats(0, 2**30, width=32)),
    hnp.arrays(np.float32, LANES, elements=st.integers(0, 126).map(float)),
)
def test_root_floor_and_powers_are_exact(x, k):
    lanes, scalars = np.empty(96, np.float32), np.empty(96, np.float32)
    shapes_lanes(x, k, lanes)
    shapes_scalars(x, k, scalars)
    same_bits(scalars, lanes)
    same_bits(lanes[:32], np.sqrt(x))
    same_bits(lanes[32:64], np.floor(x))
    same_bits(lanes[64:], np.exp2(-k.astype(np.float64)).astype(np.float32))


def test_every_power_of_two_down_to_the_smallest_normal():
    out, zeros = np.empty(96, np.float32), np.zeros(LANES, np.float32)
    for first in range(0, 128, LANES):
        k = np.minimum(np.arange(first, first + LANES), 126).astype(np.float32)
        shapes_lanes(zeros, k, out)
        assert out[64:].tolist() == [2.0 ** -int(i) for i in k]


@kernel
def copy_floats(a, start, out, to):
    store(out, to, load(a, start))


@kernel
def copy_words(a, start, out, to):
    store(out, to, load(a, start))


@pytest.mark.parametrize(("copy", "dtype"), [(copy_floats, np.float32), (copy_words, np.uint32)])
@pytest.mark.parametrize(("start", "to"), [(0, 0), (1, 3), (5, 32), (32, 7)])
def test_load_and_store_move_exactly_32_values_at_any_offset(copy, dtype, start, to):
    a = np.arange(100, 164).astype(dtype)
    out = np.full(64, 7, dtype)
    copy(a, start, out, to)
    expected = np.full(64, 7, dtype)
    expected[to : to + LANES] = a[start : start + LANES]
    np.testing.assert_array_equal(out, expected)


def test_python_versions_of_where_and_word_agree():
    assert where(True, 1.0, 2.0) == 1.0
    assert where(np.array([True, False]), 1.0, 2.0).tolist() == [1.0, 2.0]
    assert word(np.uint64(7)) == 7
    assert word(np.uint64(7)).dtype == np.uint32


@kernel
def spread_bits(bits, out):
    store(out, 0, ones_of(bits))


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_bits_of_a_word_become_ones(bits):
    out = np.full(LANES, 7, np.float32)
    spread_bits(np.uint32(bits), out)
    assert out.tolist() == [bits >> i & 1 for i in range(LANES)]


@kernel
def add_rows(to, at, source, start):
    add_eight(to, at, source, start)


def test_eight_numbers_are_added_where_they_belong():
    rng = np.random.default_rng(0)
    to, source = rng.random(30, np.float32), rng.random(40, np.float32)
    expected = to.copy()
    expected[5:13] += source[17:25]
    add_rows(to, 5, source, 17)
    same_bits(to, expected)
