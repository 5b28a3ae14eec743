"""Spring layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rapo.graphs import layout
from rapo.graphs.layout import fit_unit_square, spring_layout


def path(n):
    ones = np.ones(n - 1)
    return sparse.csr_array(sparse.diags_array([ones, ones], offsets=[1, -1]))


def lattice(side):
    line, eye = path(side), sparse.eye_array(side)
    return sparse.csr_array(sparse.kron(line, eye) + sparse.kron(eye, line))


def edge_to_random_length(neighbours, positions):
    """Mean edge length relative to the mean distance of two random nodes."""
    pairs = sparse.coo_array(neighbours)
    edges = np.linalg.norm(positions[pairs.row] - positions[pairs.col], axis=1).mean()
    order = np.random.default_rng(0).permutation(len(positions))
    return edges / np.linalg.norm(positions - positions[order], axis=1).mean()


@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.floats(0, 0.5))
@settings(max_examples=40, deadline=None)
def test_positions_fill_the_unit_square_whatever_the_graph(n, seed, density):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    positions = spring_layout(sparse.csr_array((upper | upper.T).astype(np.int8)), seed)
    assert positions.shape == (n, 2) and positions.dtype == np.float32
    assert np.all((positions >= 0) & (positions <= 1))
    if n > 1:
        assert np.ptp(positions, axis=0).max() == pytest.approx(1, abs=1e-6)
    else:
        assert positions.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("exact", [10_000, 100])
def test_neighbours_end_up_near_each_other(monkeypatch, exact):
    monkeypatch.setattr(layout, "EXACT", exact)
    monkeypatch.setattr(layout, "SAMPLE", 100)
    grid = lattice(20)
    assert edge_to_random_length(grid, spring_layout(grid)) < 0.25


def test_the_seed_decides_the_layout():
    grid = lattice(6)
    np.testing.assert_array_equal(spring_layout(grid, 1), spring_layout(grid, 1))
    assert not np.array_equal(spring_layout(grid, 1), spring_layout(grid, 2))


def test_isolated_nodes_do_not_squeeze_the_rest():
    core = lattice(10)
    whole = sparse.csr_array(sparse.block_diag([core] + [sparse.csr_array((1, 1))] * 5))
    positions = spring_layout(whole)
    assert np.ptp(positions[:100], axis=0).max() > 0.3


def test_a_large_graph_takes_the_sampled_path_and_stays_local():
    grid = lattice(70)
    assert grid.shape[0] > layout.EXACT
    assert edge_to_random_length(grid, spring_layout(grid)) < 0.2


def test_fitting_keeps_the_aspect_and_centres():
    points = np.array([[10.0, 5.0], [14.0, 5.0], [12.0, 6.0]])
    expected = [[0, 0.375], [1, 0.375], [0.5, 0.625]]
    np.testing.assert_allclose(fit_unit_square(points), expected)
    assert fit_unit_square(np.full((2, 2), 7.0)).tolist() == [[0.5, 0.5]] * 2
