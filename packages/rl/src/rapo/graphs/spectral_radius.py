"""The spectral radius of a graph: how strongly its edges pass activity on."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

_STEPS, _TOLERANCE = 2000, 1e-6
"""Most steps of the power iteration, and the relative change at which it ends."""


def spectral_radius(adjacency: sparse.csr_array) -> float:
    """Largest eigenvalue of an (n, n) matrix of p_uv; 0 where no cycle carries a probability.

    Activity that is passed on at this rate and kept at the rate s dies out by itself if radius
    / (1 - s) is below 1. Power iteration from a fixed start, so the same number every time, with
    half of each step held back: without this the iteration swings for ever on a two-coloured graph.
    """
    pairs = adjacency.tocoo()
    n, carries = pairs.shape[0], pairs.data > 0
    row, col, prob = pairs.row[carries], pairs.col[carries], pairs.data[carries]
    P = sparse.csr_array((prob.astype(np.float64), (row, col)), shape=pairs.shape)
    parts, part = connected_components(P, directed=True, connection="strong")
    if parts == n:
        return 0.0  # without a cycle the matrix is nilpotent, and no iteration settles
    P.data[part[P.tocoo().row] != part[P.indices]] = 0  # edges that lead from cycle to cycle
    x = np.full(n, 1 / n)
    radius = before = 0.0
    for step in range(_STEPS):
        y = P @ x
        radius = float(y.sum())  # x sums to 1
        x = y + radius / 2 * x
        x /= x.sum()
        if step % 10 == 9:
            if abs(radius - before) <= _TOLERANCE * radius:
                break
            before = radius
    return radius
