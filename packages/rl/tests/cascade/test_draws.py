"""Counter-based draws: known words, uniformity, no correlation along any counter.

Every statistical test has fixed keys, so it is deterministic; thresholds are those of a false alarm
rate near 1e-4, and a mutated hash misses them by orders of magnitude.
"""

import numpy as np
import pytest
from scipy import stats

from rapo.cascade.draws import ACTION, STIMULUS, derive, uniform

MASK32, MASK64 = 2**32 - 1, 2**64 - 1
ALARM = 1e-4


def slow_mix(key, counter):
    x = (key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK64
    return x ^ (x >> 31)


def slow_draw(key, counter, node):
    """The draw in Python integers, which cannot overflow or change their width."""
    hashed = slow_mix(key, counter)
    x = (hashed & MASK32) ^ (node * 0x9E3779B9 & MASK32)
    x = (x ^ (x >> 16)) * 0x21F0AAAD & MASK32
    x = ((x ^ (x >> 15)) + (hashed >> 32)) & MASK32
    x = x * 0x735A2D97 & MASK32
    return ((x ^ (x >> 15)) >> 8) / 2**24


def uniformity(u, bins):
    """p-value of a chi-squared test against the uniform law on [0, 1)."""
    return stats.chisquare(np.histogram(u, bins=bins, range=(0, 1))[0]).pvalue


def standardised_correlation(a, b):
    """Correlation of two samples in units of its standard error."""
    return float(np.corrcoef(np.ravel(a), np.ravel(b))[0, 1] * np.sqrt(np.size(a)))


def test_derive_is_splitmix64():
    """The published first outputs of splitmix64 for the seed 1234567."""
    known = [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
        16408922859458223821,
    ]  # fmt: skip
    assert derive(1234567, np.arange(5)).tolist() == known
    assert int(derive(0, 0)) == 0xE220A8397B1DCDAF


def test_draws_are_the_same_on_every_machine():
    got = [float(uniform(*at)) for at in ((0, 0, 0), (1, 2, 3), (12345, 7, 249))]
    assert got == [0.31978654861450195, 0.42264676094055176, 0.5724341869354248]


def test_draws_equal_a_slow_version_in_python_integers():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**64, 200, np.uint64)
    counters = rng.integers(0, 2000, 200)
    nodes = np.concatenate([rng.integers(0, 2**32, 198), [ACTION, STIMULUS]])
    got = uniform(keys, counters, nodes)
    triples = zip(keys.tolist(), counters.tolist(), nodes.tolist(), strict=True)
    assert got.tolist() == [slow_draw(*triple) for triple in triples]
    pairs = zip(keys.tolist(), counters.tolist(), strict=True)
    assert derive(keys, counters).tolist() == [slow_mix(*pair) for pair in pairs]


def test_draws_lie_on_a_grid_of_24_bits_below_one():
    u = uniform(3, np.arange(1000)[:, None], np.arange(1000))
    assert u.dtype == np.float32
    assert 0 <= u.min() < 1e-5
    assert 1 - 1e-5 < u.max() < 1
    steps = u.astype(np.float64) * 2**24
    np.testing.assert_array_equal(steps, np.round(steps))
    assert np.mean(steps % 2) == pytest.approx(0.5, abs=0.003)  # the last bit is used


@pytest.mark.parametrize("along", ["episodes", "steps", "nodes", "all"])
def test_draws_are_uniform_along_every_counter(along):
    many = np.arange(200_000)
    u = {
        "episodes": lambda: uniform(many, 5, 17),
        "steps": lambda: uniform(5, many, 17),
        "nodes": lambda: uniform(5, 17, many),
        "all": lambda: uniform(many[:50, None, None], many[:50, None], many[:100]),
    }[along]().ravel()
    assert uniformity(u, 256) > ALARM
    n = len(u)
    assert abs(u.mean(dtype=np.float64) - 0.5) < 4 * np.sqrt(1 / 12 / n)
    assert abs(u.var(dtype=np.float64) - 1 / 12) < 4 * np.sqrt(1 / 180 / n)
    low = (u * 2**24).astype(np.int64) % 256  # the low bits matter for small probabilities
    assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > ALARM


def test_small_probabilities_come_true():
    u = uniform(np.arange(100)[:, None, None], np.arange(100)[:, None], np.arange(200)).ravel()
    for p in (1e-5, 1e-4, 1e-3, 1e-2):
        expected = len(u) * p
        assert abs((u < p).sum() - expected) < 4 * np.sqrt(expected)


@pytest.mark.parametrize("lag", [1, 2, 3, 16, 64])
def test_neighbouring_episodes_steps_and_nodes_are_uncorrelated(lag):
    count = 64 + lag
    u = uniform(
        np.arange(count)[:, None, None], np.arange(count)[:, None], np.arange(count)
    ).astype(np.float64)
    for axis in range(3):
        a = np.take(u, range(64), axis)
        b = np.take(u, range(lag, count), axis)
        for x, y in ((a, b), ((a - 0.5) ** 2, (b - 0.5) ** 2), (a < 0.1, b < 0.1)):
            assert abs(standardised_correlation(x, y)) < 4.5
        joint = np.histogram2d(a.ravel(), b.ravel(), bins=16, range=[[0, 1], [0, 1]])[0]
        assert stats.chisquare(joint.ravel()).pvalue > ALARM


@pytest.mark.parametrize("step", [(1, -1), (1, 1), (2, -1)])
def test_a_step_later_and_a_node_further_is_uncorrelated(step):
    """A hash that adds its counters would repeat along such diagonals."""
    t, v = np.meshgrid(np.arange(2, 400), np.arange(2, 400))
    a, b = uniform(9, t, v), uniform(9, t + step[0], v + step[1])
    assert abs(standardised_correlation(a, b)) < 4.5
    assert np.mean(a == b) < 1e-5


@pytest.mark.parametrize(("u", "v"), [(119, 532), (101, 927), (6, 540), (12, 2910), (3, 5799)])
def test_events_at_two_nodes_are_independent_even_where_their_words_are_close(u, v):
    """Node words that differ in few bits are the weak spot of a two-round hash."""
    steps = np.arange(300_000)
    a, b = uniform(11, steps, u), uniform(11, steps, v)
    for q in (0.02, 0.1, 0.5):
        for r in (0.02, 0.1, 0.5):
            expected = len(steps) * q * r
            assert abs(((a < q) & (b < r)).sum() - expected) < 4.5 * np.sqrt(expected)


def test_one_bit_of_the_key_or_the_counter_changes_half_of_the_key():
    base = derive(np.arange(500), 3)
    for bit in range(64):
        flipped = derive(np.arange(500, dtype=np.uint64) ^ np.uint64(1 << bit), 3)
        changed = np.bitwise_count(base ^ flipped).mean()
        assert 30.5 < changed < 33.5  # 32 +- 8 standard errors
    later = derive(np.arange(500), 4)
    assert 30.5 < np.bitwise_count(base ^ later).mean() < 33.5


def test_derived_keys_are_distinct():
    keys = derive(np.arange(1000)[:, None], np.arange(500))
    assert np.unique(keys).size == keys.size
    nested = derive(derive(np.arange(200)[:, None, None], np.arange(50)[:, None]), np.arange(10))
    assert np.unique(nested).size == nested.size
    assert int(derive(3, 5)) != int(derive(5, 3))


def test_both_halves_of_the_key_enter_a_draw():
    """Keys are hashed first, so one that differs anywhere gives other draws throughout."""
    nodes = np.arange(2000)
    base = uniform(1, 0, nodes)
    for bit in (0, 31, 32, 63):
        assert np.mean(uniform(1 ^ (1 << bit), 0, nodes) == base) < 0.01


def test_a_draw_does_not_depend_on_the_shape_it_is_drawn_in():
    keys, steps, nodes = np.arange(3, 7), np.arange(5), np.arange(6)
    block = uniform(keys[:, None, None], steps[:, None], nodes)
    assert block.shape == (4, 5, 6)
    for (i, j, k), value in np.ndenumerate(block):
        assert uniform(keys[i], steps[j], nodes[k]) == value
    np.testing.assert_array_equal(uniform(4, steps[:, None], nodes), block[1])
    np.testing.assert_array_equal(uniform(keys, 2, 3), block[:, 2, 3])
    turned = uniform(keys, steps[:, None], nodes[:, None, None])
    np.testing.assert_array_equal(turned, block.transpose(2, 1, 0))
    assert uniform(1, 2, 3).shape == ()
    assert derive(keys[:, None], steps).shape == (4, 5)
    assert derive(keys[:, None], steps)[2, 3] == derive(keys[2], steps[3])


def test_reserved_nodes_are_apart_from_real_ones():
    assert len({ACTION, STIMULUS}) == 2
    assert min(ACTION, STIMULUS) > 2**31
    u = uniform(np.arange(5000), 0, ACTION)
    v = uniform(np.arange(5000), 0, STIMULUS)
    assert abs(standardised_correlation(u, v)) < 4.5
