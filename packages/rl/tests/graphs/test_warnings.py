"""Spectral radius, edges that the gate cannot hold, and what is remarked of a loaded graph."""

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rapo.cascade.setting import Setting
from rapo.graphs.generate import generate
from rapo.graphs.load import from_networkx
from rapo.graphs.scale import cascade_size, scaled, spectral_radius
from rapo.graphs.warnings import SUBCRITICAL, graph_warnings, ungated_edges
from rapo_core.deformation import gate_odds

DEFAULT = Setting.default()
COMPACT = Setting.named("compact")


def matrix(n, pairs):
    dense = np.zeros((n, n), np.float32)
    for u, v, p in pairs:
        dense[u, v] = p
    return sparse.csr_array(dense)


# --- spectral radius -----------------------------------------------------------------------


@given(st.integers(2, 30), st.floats(0.02, 0.5), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_the_radius_is_the_largest_eigenvalue(n, density, seed):
    rng = np.random.default_rng(seed)
    dense = rng.beta(2, 5, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(dense, 0)
    exact = np.abs(np.linalg.eigvals(dense)).max()
    # a defective matrix (no cycle, or one cycle behind another) moves its numerical eigenvalues
    assert spectral_radius(sparse.csr_array(dense)) == pytest.approx(exact, rel=5e-3, abs=1e-2)


@pytest.mark.parametrize("n", [2, 5, 200])
def test_a_graph_without_cycles_has_none(n):
    chain = matrix(n, [(i, i + 1, 0.9) for i in range(n - 1)])
    assert spectral_radius(chain) == 0
    rng = np.random.default_rng(0)
    assert spectral_radius(sparse.csr_array(np.triu(rng.random((n, n)), 1))) == 0


def test_a_cycle_of_probability_zero_is_no_cycle():
    ring = [(i, (i + 1) % 6, 0.5) for i in range(6)]
    assert spectral_radius(matrix(6, ring)) == pytest.approx(0.5, rel=1e-5)
    stored = matrix(6, ring)
    stored.data[0] = 0  # the entry stays, with nothing in it
    assert stored.nnz == 6 and spectral_radius(stored) == 0


def test_two_colours_do_not_make_it_swing():
    star = [(0, leaf, 0.3) for leaf in range(1, 17)] + [(leaf, 0, 0.3) for leaf in range(1, 17)]
    assert spectral_radius(matrix(17, star)) == pytest.approx(0.3 * 4, rel=1e-5)


def test_an_edge_between_cycles_does_not_count():
    two = [(0, 1, 0.4), (1, 0, 0.4), (2, 3, 0.6), (3, 2, 0.6), (1, 2, 1.0)]
    assert spectral_radius(matrix(4, two)) == pytest.approx(0.6, rel=1e-5)


def test_the_radius_is_the_same_every_time_and_grows_with_the_factor():
    graph = generate(500, 1, COMPACT, scale=0.3)
    once = spectral_radius(graph.adjacency)
    assert once == spectral_radius(graph.adjacency)
    assert spectral_radius(scaled(graph, 2.0).adjacency) == pytest.approx(2 * once, rel=1e-4)


# --- what the gate cannot hold -------------------------------------------------------------


@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_an_edge_counts_when_the_floor_leaves_it_above_one_half(p, psi_min):
    graph = generate(10, 0, scale=0.0)
    prob = np.zeros(graph.edges, np.float32)
    prob[3] = p
    left = float(gate_odds(np.array([prob[3]], float), np.array([psi_min]))[0])
    if abs(left - 0.5) > 1e-9:  # at the border itself rounding decides
        assert ungated_edges(graph.replace(prob=prob), psi_min) == int(left > 0.5)


def test_ungated_edges_at_the_usual_floor():
    graph = generate(10, 0, scale=0.0)
    prob = np.linspace(0.5, 1, graph.edges)
    assert ungated_edges(graph.replace(prob=prob), 0.1) == (prob > 1 / 1.1).sum() > 0
    assert ungated_edges(graph, 0.1) == 0
    for bad in (0, -0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="psi_min"):
            ungated_edges(graph, bad)


# --- the threshold -------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "seed"), [(100, 0), (250, 1), (500, 2)])
def test_at_the_threshold_a_seed_activates_about_one_other(nodes, seed):
    graph = generate(nodes, seed, scale=0.3)
    stay = 1 - DEFAULT.persistence
    at = scaled(graph, SUBCRITICAL * stay / spectral_radius(graph.adjacency))
    alone = cascade_size(scaled(graph, 0.0), DEFAULT)
    assert 1.2 * alone < cascade_size(at, DEFAULT) < 2.5 * alone


def test_only_given_probabilities_are_called_weak():
    weak = scaled(generate(100, 0), 0.05)
    assert graph_warnings(weak, DEFAULT, own_probabilities=False) == []
    said = graph_warnings(weak, DEFAULT, own_probabilities=True)
    assert len(said) == 1 and "scale=True" in said[0]
    factor = float(said[0].split("by about ")[1].split()[0])
    reached = spectral_radius(weak.adjacency) * factor / (1 - DEFAULT.persistence)
    assert reached == pytest.approx(1, rel=0.02)
    assert graph_warnings(generate(100, 0), DEFAULT, own_probabilities=True) == []


def test_weak_probabilities_without_a_cycle_are_named_too():
    graph = generate(100, 0)
    said = graph_warnings(
        graph.replace(prob=np.zeros(graph.edges)), DEFAULT, own_probabilities=True
    )
    assert len(said) == 1 and "scale=True" in said[0]


def test_the_generator_has_nothing_to_remark():
    for nodes, seed in ((50, 0), (100, 1), (250, 2)):
        assert graph_warnings(generate(nodes, seed, COMPACT), COMPACT, own_probabilities=True) == []
        graph = generate(nodes, seed)  # stronger edges inside: the gate may lose a few
        said = graph_warnings(graph, DEFAULT, own_probabilities=True)
        assert all("edges" in one and "spread" not in one for one in said)
        # the same cascade asks for stronger edges on 50 nodes
        assert ungated_edges(graph, DEFAULT.psi_min) < (0.03 if nodes == 50 else 0.01) * graph.edges


def test_given_probabilities_that_spread_far_are_told_and_scaled_ones_are_not():
    crowd = nx.powerlaw_cluster_graph(400, 4, 0.3, seed=1)
    nx.set_edge_attributes(crowd, 0.3, "w")
    with pytest.warns(UserWarning, match="spread far"):
        from_networkx(crowd, probability="w", setting=COMPACT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_networkx(crowd, probability="w", scale=True, setting=COMPACT)


def test_a_graph_without_cycles_that_does_spread_is_not_warned_about():
    edges = [(u, v) for u in range(40) for v in range(u + 1, min(u + 4, 40))]
    tree = nx.DiGraph(edges)
    nx.set_edge_attributes(tree, 0.6, "w")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_networkx(tree, probability="w")
