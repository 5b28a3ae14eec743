"""Running mean and variance of observations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo.agents.normaliser import LIMIT, SMALLEST_STD, Normaliser


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    shift=st.sampled_from([0.0, 1.0, 300.0]),
)
def test_merged_batches_equal_the_whole(seed, sizes, shift):
    rng = np.random.default_rng(seed)
    batches = [
        (shift + rng.normal(i, 1 + i, (size, 4))).astype(np.float32) for i, size in enumerate(sizes)
    ]
    normaliser = Normaliser(4)
    for batch in batches:
        normaliser.update(batch)
    whole = np.concatenate(batches).astype(np.float64)
    assert normaliser.count == len(whole)
    assert np.allclose(normaliser.mean, whole.mean(axis=0), rtol=1e-6, atol=1e-6)
    variance = normaliser.square / normaliser.count
    assert np.allclose(variance, whole.var(axis=0), rtol=1e-4, atol=1e-4)


def test_gives_zero_mean_and_unit_variance():
    x = np.random.default_rng(0).normal([3, -2], [0.5, 4], (5000, 2)).astype(np.float32)
    normaliser = Normaliser(2)
    normaliser.update(x[:1000])
    normaliser.update(x[1000:])
    out = normaliser(x)
    assert out.dtype == np.float32 and out.shape == x.shape
    assert np.allclose(out.mean(axis=0), 0, atol=1e-3)
    assert np.allclose(out.std(axis=0), 1, atol=1e-3)
    assert np.allclose(normaliser(x[7]), out[7])  # any leading shape


def test_before_the_first_batch_observations_pass_unchanged():
    x = np.array([[0.25, -3.0]], np.float32)
    assert np.array_equal(Normaliser(2)(x), x)


def test_state_and_load_go_on_bit_by_bit():
    rng = np.random.default_rng(1)
    first, second, x = rng.normal(2, 3, (3, 50, 3)).astype(np.float32)
    one = Normaliser(3)
    one.update(first)
    state = one.state()
    two = Normaliser(3)
    two.load(state)
    assert np.array_equal(two(x), one(x))
    one.update(second)
    assert state["count"] == 50 and np.array_equal(state["mean"], two.mean)  # a copy, not a view
    assert not np.array_equal(two(x), one(x))
    two.update(second)
    assert np.array_equal(two(x), one(x))
    assert two.count == one.count == 100


def test_entries_that_never_moved_are_not_blown_up():
    x = np.tile(np.array([0.3, 1.0], np.float32), (100, 1))
    x[:, 1] += np.random.default_rng(0).normal(0, 1, 100)
    normaliser = Normaliser(2)
    normaliser.update(x)
    moved = normaliser(np.array([[0.3 + 0.02, 1.0]], np.float32))
    assert moved[0, 0] == pytest.approx(0.02 / SMALLEST_STD, rel=1e-3)
    assert np.isfinite(moved).all()


def test_far_observations_are_cut_off():
    normaliser = Normaliser(1)
    normaliser.update(np.random.default_rng(0).normal(0, 1, (1000, 1)).astype(np.float32))
    out = normaliser(np.array([[1e6], [-1e6], [0.5]], np.float32))
    assert out[0] == LIMIT and out[1] == -LIMIT
    assert abs(out[2]) < 1


def test_normalising_does_not_change_what_it_is_given():
    x = np.ones((3, 2), np.float32)
    normaliser = Normaliser(2)
    normaliser.update(5 * np.random.default_rng(0).random((10, 2)).astype(np.float32))
    normaliser(x)
    assert (x == 1).all()


def test_an_update_tells_how_normalised_observations_have_moved():
    rng = np.random.default_rng(0)
    normaliser = Normaliser(3)
    first = rng.normal([3, -2, 7], [0.5, 4, 0], (500, 3)).astype(np.float32)
    normaliser.update(first)
    before = normaliser(first)
    second = rng.normal([4, 0, 8], [2, 1, 3], (500, 3)).astype(np.float32)
    ratio, move = normaliser.update(second)
    assert np.allclose(ratio * normaliser(first) + move, before, atol=1e-4)
    assert ratio[0] > 1.2 and ratio[2] == 1  # the last had not moved
