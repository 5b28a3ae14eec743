"""Regions: partitions of the nodes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.graphs.sensitive_set import draw_sensitive
from rapo.graphs.stimuli import draw_stimuli


def graph_of(edges, positions, sensitive=None, seed=0):
    """A graph from directed pairs; V_sens is a ball unless a mask is given."""
    n = len(positions)
    edges = np.unique([(a, b) for a, b in edges if a != b], axis=0).reshape(-1, 2).astype(int)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(edges[:, 0], minlength=n))])
    first = np.zeros(n, bool)
    first[0] = True
    fields = {"support": [[0]], "weights": [[1.0]]}
    graph = Graph(indptr, edges[:, 1], np.full(len(edges), 0.1), positions, first, **fields)
    rng = np.random.default_rng(seed)
    if sensitive is None:
        sensitive = draw_sensitive(graph.neighbours, positions, 0.2, 0.3, rng)
    support, weights = draw_stimuli(graph.neighbours, positions, sensitive, 3, 2, rng)
    return graph.replace(sensitive=sensitive, support=support, weights=weights)


def nearest(n, seed=0, degree=4):
    positions = np.random.default_rng(seed).random((n, 2))
    near = cKDTree(positions).query(positions, degree + 1)[1][:, 1:]
    return graph_of([(i, int(j)) for i in range(n) for j in near[i]], positions)


def random_graph(n, edges, seed):
    """Any graph, often in several components."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(n, size=(edges, 2))
    centre = np.arange(n) == rng.integers(n)
    return graph_of(pairs.tolist(), rng.random((n, 2)), sensitive=centre)


graphs = st.builds(random_graph, st.integers(2, 40), st.integers(0, 80), st.integers(0, 9999))


def pieces(graph, straddle=True):
    """Components of the graph, cut along the border of V_sens unless regions may straddle it."""
    near = graph.neighbours.tocoo(copy=True)
    keep = straddle | (graph.sensitive[near.row] == graph.sensitive[near.col])
    near.data[~keep] = 0
    near = near.tocsr()
    near.eliminate_zeros()
    return connected_components(near, directed=False)


@given(graphs, st.floats(1, 50), st.integers(0, 99), st.booleans())
@settings(deadline=None)
def test_communities_are_a_connected_partition(graph, size, seed, straddle):
    regions = make_regions(f"community:{size}", graph, seed=seed, straddle=straddle)
    assert regions.dtype == np.int32 and not regions.flags.writeable
    count = regions.max() + 1
    assert np.array_equal(np.unique(regions), np.arange(count))
    for r in range(count):
        nodes = np.flatnonzero(regions == r)
        part = graph.neighbours[nodes][:, nodes]
        assert connected_components(part, directed=False)[0] == 1
        if not straddle:
            assert len(set(graph.sensitive[nodes].tolist())) == 1
    blocks, label = pieces(graph, straddle)
    least = sum(int(np.ceil(s / (2 * size))) for s in np.bincount(label))
    assert count == max(int(graph.n / size + 0.5), least) >= blocks


@given(graphs, st.floats(1, 20), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_communities_follow_the_seed(graph, size, seed):
    one, two = (make_regions(f"community:{size}", graph, seed=seed) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("straddle", [True, False])
@pytest.mark.parametrize("size", [3, 5, 20])
def test_communities_on_a_spatial_graph_are_balanced(size, straddle):
    graph = nearest(1000)
    sizes = np.bincount(make_regions(f"community:{size}", graph, straddle=straddle))
    assert len(sizes) == round(1000 / size)
    assert sizes.std() < 0.4 * size
    assert sizes.max() <= 3 * size


def test_seeds_give_different_communities():
    graph = nearest(200)
    one, two = (make_regions("community:5", graph, seed=seed) for seed in (0, 1))
    assert not np.array_equal(one, two)


def test_many_small_components_do_not_leave_a_giant_region():
    positions = np.random.default_rng(0).random((100, 2))
    graph = graph_of([(i, i + 1) for i in range(49)], positions)  # a path and 50 lone nodes
    sizes = np.bincount(make_regions("community:5", graph))
    assert len(sizes) == 50 + 5
    assert sizes.max() <= 20


def test_node_regions_are_the_nodes():
    regions = make_regions("node", nearest(30))
    assert regions.tolist() == list(range(30))
    assert regions.dtype == np.int32 and not regions.flags.writeable


@given(st.integers(1, 8), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_grid_regions_are_cells(k, seed):
    graph = nearest(40, seed)
    regions = make_regions(f"grid:{k}", graph)
    assert np.array_equal(np.unique(regions), np.arange(regions.max() + 1))
    cells = np.minimum((graph.positions * np.float64(k)).astype(int), k - 1)
    for node in range(40):
        same = (cells == cells[node]).all(axis=1)
        np.testing.assert_array_equal(regions == regions[node], same)


def test_the_far_border_belongs_to_the_last_cell():
    graph = graph_of([(0, 1)], np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([True, True]))
    assert make_regions("grid:2", graph).tolist() == [0, 1]


def test_explicit_regions_are_copied():
    graph = nearest(6, degree=2)
    given_ids = np.array([0, 0, 1, 1, 2, 2])
    regions = make_regions(given_ids, graph)
    given_ids[0] = 2
    assert regions.tolist() == [0, 0, 1, 1, 2, 2]
    assert regions.dtype == np.int32 and not regions.flags.writeable
    assert make_regions([1, 0, 1, 0, 1, 0], graph).tolist() == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    "spec",
    [
        *("", "nodes", "node:3"),
        *("community", "community:", "community:x", "community:0.5", "community:-3"),
        *("community:nan", "community:inf"),
        *("grid", "grid:0", "grid:2.5", "grid:-1", "grid:1000001"),
    ],
)
def test_an_unknown_spec_is_named_with_the_known_ones(spec):
    with pytest.raises(ValueError, match=rf"unknown regions '{spec}'; use 'node', 'community:"):
        make_regions(spec, nearest(6, degree=2))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 1, 2], r"shape \(6,\), one id per node, got \(3,\)"),
        (np.zeros((6, 1), int), r"shape \(6,\), one id per node, got \(6, 1\)"),
        ([0, 0, 1, 1, 3, 3], r"every number 0\.\.3, 2 is missing; renumber"),
        ([1, 1, 1, 1, 1, 1], r"every number 0\.\.1, 0 is missing; renumber"),
        ([0, 0, 1, 1, -1, 2], r">= 0, got -1; number them 0\.\.R-1"),
        ([0.0, 0, 1, 1, 2, 2], "integers, got dtype float64; convert"),
        ([True, False] * 3, "integers, got dtype bool; convert"),
    ],
)
def test_bad_explicit_regions_are_refused(ids, message):
    with pytest.raises(ValueError, match=message):
        make_regions(ids, nearest(6, degree=2))


@pytest.mark.parametrize("size", [1, 2.5, 5])
def test_pieces_cut_v_sens_and_leave_the_rest_in_one(size):
    graph = nearest(200)
    regions = make_regions(f"pieces:{size}", graph)
    inside = regions[graph.sensitive]
    assert set(regions[~graph.sensitive]) == {regions.max()}
    assert regions.max() not in inside
    assert len(np.unique(inside)) == round(graph.sensitive.sum() / size)
    for piece in np.unique(inside):
        members = np.flatnonzero(regions == piece)
        assert connected_components(graph.neighbours[members][:, members])[0] == 1


def test_pieces_of_a_wholly_sensitive_graph_need_no_rest():
    graph = nearest(40).replace(sensitive=np.ones(40, bool))
    regions = make_regions("pieces:5", graph)
    assert len(np.unique(regions)) == 8


def test_nodes_without_a_label_share_a_region():
    graph = nearest(6).replace(labels={"team": ("a", None, "b", "a", None, "b")})
    assert make_regions("label:team", graph).tolist() == [0, 1, 2, 0, 1, 2]
