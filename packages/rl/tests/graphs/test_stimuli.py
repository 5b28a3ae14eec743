"""Balls, V_sens, stimuli and seed scores."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from rapo.cascade.graph import Graph
from rapo.cascade.injection import exposure_scores
from rapo.graphs.generate import generate
from rapo.graphs.sensitive_set import draw_sensitive, grow_ball, largest_part
from rapo.graphs.stimuli import draw_stimuli, stimuli_in_reach


def spatial(n, seed, *, links=3):
    """A connected graph: each node is tied to a nearby earlier one, plus some random links."""
    rng = np.random.default_rng(seed)
    positions = rng.random((n, 2))
    pairs = [(i, int(rng.integers(i))) for i in range(1, n)]
    pairs += [(int(a), int(b)) for a, b in rng.integers(n, size=(links, 2)) if a != b]
    return undirected(n, pairs), positions


def undirected(n, pairs):
    u, v = np.array(pairs, int).reshape(-1, 2).T
    one_way = sparse.csr_array((np.ones(len(u)), (u, v)), shape=(n, n))
    return sparse.csr_array(((one_way + one_way.T) > 0).astype(np.int8))


def is_connected(neighbours, nodes):
    return connected_components(neighbours[nodes][:, nodes], directed=False)[0] == 1


graphs = st.builds(spatial, st.integers(2, 40), st.integers(0, 10_000))


@given(graphs, st.data())
@settings(deadline=None)
def test_a_ball_is_connected_sorted_and_of_the_size_asked(graph, data):
    neighbours, positions = graph
    n = len(positions)
    centre = data.draw(st.integers(0, n - 1))
    size = data.draw(st.integers(1, n))
    ball = grow_ball(neighbours, positions, centre, size)
    assert len(ball) == size and centre in ball
    assert np.all(np.diff(ball) > 0)
    assert is_connected(neighbours, ball)


@given(graphs, st.data())
@settings(deadline=None)
def test_a_larger_ball_contains_the_smaller_one(graph, data):
    neighbours, positions = graph
    size = data.draw(st.integers(1, len(positions) - 1))
    small, large = (grow_ball(neighbours, positions, 0, s) for s in (size, size + 1))
    assert set(small) < set(large)


def test_a_ball_takes_the_nearest_frontier_node_and_breaks_ties_by_id():
    star = undirected(5, [(0, 1), (0, 2), (0, 3), (3, 4)])
    positions = np.array([[0.5, 0.5], [0.9, 0.5], [0.5, 0.9], [0.5, 0.6], [0.5, 0.7]])
    assert grow_ball(star, positions, 0, 3).tolist() == [0, 3, 4]
    assert grow_ball(star, positions, 0, 4).tolist() == [0, 1, 3, 4]


def test_a_ball_larger_than_its_component_is_refused():
    two = undirected(5, [(0, 1), (2, 3), (3, 4)])
    with pytest.raises(ValueError, match=r"ball of 3 nodes.*node 0 has 2; ask for a smaller"):
        grow_ball(two, np.zeros((5, 2)), 0, 3)


@pytest.mark.parametrize(
    ("centre", "size", "message"),
    [(0, 0, "got size 0; ask for 1"), (-1, 1, r"0\.\.2, got -1"), (3, 1, r"0\.\.2, got 3")],
)
def test_a_bad_ball_is_refused(centre, size, message):
    with pytest.raises(ValueError, match=message):
        grow_ball(undirected(3, [(0, 1), (1, 2)]), np.zeros((3, 2)), centre, size)


@given(graphs, st.integers(0, 99), st.floats(0.05, 0.6), st.floats(0, 0.3))
@settings(deadline=None)
def test_the_sensitive_share_stays_in_its_band(graph, seed, low, width):
    neighbours, positions = graph
    n, high = len(positions), low + width
    mask = draw_sensitive(neighbours, positions, low, high, np.random.default_rng(seed))
    count = int(mask.sum())
    assert is_connected(neighbours, np.flatnonzero(mask))
    if np.ceil(low * n - 1e-9) <= np.floor(high * n + 1e-9):
        assert low * n - 1e-9 <= count <= high * n + 1e-9
    else:
        assert count >= 1 and low * n - 1 < count < max(high * n + 1, 1.1)


def test_the_sensitive_set_lies_in_the_largest_component_and_follows_the_seed():
    pairs = [(0, 1)] + [(i, i + 1) for i in range(2, 19)]
    neighbours, positions = undirected(20, pairs), np.random.default_rng(0).random((20, 2))

    def draw(seed):
        return draw_sensitive(neighbours, positions, 0.15, 0.25, np.random.default_rng(seed))

    masks = [draw(seed) for seed in range(10)]
    assert not any(mask[:2].any() for mask in masks)
    assert len({mask.tobytes() for mask in masks}) > 1
    np.testing.assert_array_equal(draw(3), draw(3))


def test_a_share_that_no_component_holds_is_refused():
    pairs = undirected(10, [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"of 5 nodes.*largest component has 2; lower the share"):
        draw_sensitive(pairs, np.zeros((10, 2)), 0.5, 0.5, rng)
    with pytest.raises(ValueError, match=r"0 < low <= high <= 1, got low 0.3, high 0.2"):
        draw_sensitive(pairs, np.zeros((10, 2)), 0.3, 0.2, rng)


@given(graphs, st.integers(1, 30), st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_stimuli_are_balls_around_sensitive_nodes(graph, support, count, seed):
    neighbours, positions = graph
    n = len(positions)
    sensitive = draw_sensitive(neighbours, positions, 0.2, 0.4, np.random.default_rng(seed))
    seeds, weights = draw_stimuli(
        neighbours, positions, sensitive, support, count, np.random.default_rng(seed)
    )
    assert seeds.shape == weights.shape == (count, min(support, n))
    assert seeds.dtype == np.int32 and weights.dtype == np.float64
    assert np.all(np.diff(seeds, axis=1) > 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert np.all(weights >= 0)
    assert np.all(sensitive[seeds].any(axis=1))
    assert all(is_connected(neighbours, row) for row in seeds)


def test_every_sensitive_node_is_a_centre_before_one_returns():
    neighbours, positions = spatial(12, 0)
    sensitive = np.arange(12) < 4
    seeds, _ = draw_stimuli(neighbours, positions, sensitive, 1, 8, np.random.default_rng(0))
    assert sorted(seeds[:4, 0]) == sorted(seeds[4:, 0]) == [0, 1, 2, 3]


def test_the_support_shrinks_to_a_small_component():
    two = undirected(6, [(0, 1), (1, 2), (3, 4), (4, 5)])
    sensitive = np.array([False, True, False, False, False, False])
    seeds, weights = draw_stimuli(two, np.zeros((6, 2)), sensitive, 20, 2, np.random.default_rng(0))
    assert seeds.tolist() == [[0, 1, 2]] * 2
    assert weights.shape == (2, 3)


@pytest.mark.parametrize(
    ("sensitive", "support", "count", "message"),
    [
        ([True, False], 0, 1, "got support 0, count 1"),
        ([True, False], 1, 0, "got support 1, count 0"),
        ([False, False], 1, 1, "empty; name at least one node"),
    ],
)
def test_bad_stimuli_are_refused(sensitive, support, count, message):
    neighbours, rng = undirected(2, [(0, 1)]), np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        draw_stimuli(neighbours, np.zeros((2, 2)), np.array(sensitive), support, count, rng)


def test_scores_on_a_chain_by_hand():
    p = 0.5
    chain = sparse.csr_array(([p, p], ([0, 1], [1, 2])), shape=(3, 3))
    influence, risk = exposure_scores(chain, np.array([False, False, True]))
    np.testing.assert_allclose(influence, np.array([p + p * p, p, 0]) / (p + p * p))
    np.testing.assert_allclose(risk, [p * p, p, 1])


@given(graphs, st.integers(0, 99))
@settings(deadline=None)
def test_scores_lie_in_the_unit_interval_and_reach_one(graph, seed):
    neighbours, positions = graph
    rng = np.random.default_rng(seed)
    weights = neighbours.astype(np.float32)
    weights.data = rng.random(weights.nnz).astype(np.float32)
    sensitive = rng.random(len(positions)) < 0.3
    influence, risk = exposure_scores(weights, sensitive)
    assert influence.dtype == risk.dtype == np.float64
    for score in (influence, risk):
        assert np.all((score >= 0) & (score <= 1))
    assert influence.max() == 1
    assert risk.max() == (1 if sensitive.any() else 0)


def test_scores_without_edges_are_zero_influence():
    influence, risk = exposure_scores(sparse.csr_array((2, 2)), np.array([True, False]))
    assert influence.tolist() == [0, 0]
    assert risk.tolist() == [1, 0]


# --- paths to V_sens -----------------------------------------------------------------------


def directed(n, pairs, prob, sensitive, support, weights):
    """A graph from (source, target) pairs, positions on a line."""
    order = sorted(range(len(pairs)), key=lambda i: pairs[i])
    indptr = np.concatenate([[0], np.cumsum(np.bincount([p[0] for p in pairs], minlength=n))])
    mask = np.zeros(n, bool)
    mask[sensitive] = True
    return Graph(
        indptr=indptr,
        indices=np.array([pairs[i][1] for i in order], np.int32),
        prob=np.array([prob[i] for i in order], float),
        positions=np.stack([np.linspace(0, 1, n), np.full(n, 0.5)], axis=1),
        sensitive=mask,
        support=support,
        weights=weights,
    )


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_a_stimulus_in_reach_is_one_with_a_path(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 15))
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v and rng.random() < 1.2 / n]
    prob = np.where(rng.random(len(pairs)) < 0.2, 0.0, 0.5)
    support = np.sort([rng.choice(n, 2, replace=False) for _ in range(4)], axis=1)
    weights = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]])
    target = int(rng.integers(n))
    graph = directed(n, pairs, prob, [target], support, weights)
    paths = nx.DiGraph([pair for pair, p in zip(pairs, prob, strict=True) if p > 0])
    paths.add_nodes_from(range(n))
    expected = [
        any(
            w > 0 and nx.has_path(paths, int(seed_node), target)
            for seed_node, w in zip(*row, strict=True)
        )
        for row in zip(support, weights, strict=True)
    ]
    assert stimuli_in_reach(graph).tolist() == expected


def test_a_long_way_to_the_sensitive_set_is_a_way():
    n = 5000
    pairs = [(i, i + 1) for i in range(n - 1)]
    chain = directed(n, pairs, [0.5] * (n - 1), [n - 1], [[0, 1]], [[0.5, 0.5]])
    assert stimuli_in_reach(chain).tolist() == [True]
    back = directed(n, [(j, i) for i, j in pairs], [0.5] * (n - 1), [n - 1], [[0, 1]], [[0.5, 0.5]])
    assert stimuli_in_reach(back).tolist() == [False]


def test_generated_stimuli_are_all_in_reach():
    assert stimuli_in_reach(generate(100, 0, scale=0.0)).all()


def test_the_largest_part_of_a_set():
    path = undirected(7, [(i, i + 1) for i in range(6)])
    mask = np.array([True, True, False, True, True, True, False])
    assert np.flatnonzero(largest_part(mask, path)).tolist() == [3, 4, 5]
    assert not largest_part(np.zeros(7, bool), path).any()
