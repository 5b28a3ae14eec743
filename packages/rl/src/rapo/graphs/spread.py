"""How strongly a graph spreads, and how much of that the gate can hold back."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from rapo.cascade.graph import Graph
from rapo_core.checks import UserError

_STEPS, _TOLERANCE = 2000, 1e-6


def ungated_edges(graph: Graph, psi_min: float) -> int:
    """Number of edges above 1 / (1 + psi_min), which stay above one half whatever the gate does.

    The gate turns q into q psi / (q psi + 1 - q): at psi = psi_min that is one half for q = 1 / (1
    + psi_min), more for any larger q, and 1 for q = 1.

    Args:
        graph: the network.
        psi_min: lower bound of the conductance, in (0, 1].
    """
    if not 0 < psi_min <= 1:
        raise UserError(f"psi_min must be in (0, 1], got {psi_min!r}")
    return int((graph.prob.astype(np.float64) > 1 / (1 + psi_min)).sum())


def spectral_radius(adjacency: sparse.csr_array) -> float:
    """Largest eigenvalue of an (n, n) matrix of p_uv; 0 where no cycle carries a probability.

    Activity that is passed on at this rate and kept at the rate s dies out by itself if radius
    / (1 - s) is below 1. Power iteration from a fixed start, so the same number every time, with
    half of each step held back: on a two-coloured graph the whole step would swing for ever.
    """
    pairs = adjacency.tocoo()
    n, carries = pairs.shape[0], pairs.data > 0
    row, col, prob = pairs.row[carries], pairs.col[carries], pairs.data[carries]
    P = sparse.csr_array((prob.astype(np.float64), (row, col)), shape=pairs.shape)
    parts, part = connected_components(P, directed=True, connection="strong")
    if parts == n:
        return 0.0  # no cycle: a nilpotent matrix, on which no iteration settles
    P.data[part[P.tocoo().row] != part[P.indices]] = 0  # what leads from cycle to cycle
    x = np.full(n, 1 / n)
    radius = before = 0.0
    for step in range(_STEPS):
        y = P @ x
        radius = float(y.sum())  # of x that sums to 1
        x = y + radius / 2 * x
        x /= x.sum()
        if step % 10 == 9:
            if abs(radius - before) <= _TOLERANCE * radius:
                break
            before = radius
    return radius
