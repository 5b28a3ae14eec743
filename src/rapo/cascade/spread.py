"""How strongly a graph spreads, and how much of that the gate can hold back."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo.core.params import FieldParams

SUBCRITICAL = 0.5
"""Given probabilities whose spectral radius / (1 - s) is below this are warned about. At this value
the mean |A_t| of ten networks out of eleven was 1.4 to 2.1 times what injection alone keeps, so a
seed activated about one other node or none; |A_t| is 1 at about 0.7, and 8.5 at 0.9 to 1.6."""
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
        raise ValueError(f"psi_min must be in (0, 1], got {psi_min!r}")
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


def remarks(graph: Graph, setting: Setting, *, given: bool) -> list[str]:
    """What a user should know of a loaded graph before trusting what is measured on it.

    Args:
        graph: as it was loaded.
        setting: with which it was loaded.
        given: whether its probabilities are the file's own, neither drawn nor scaled.
    """
    found, psi_min = [], FieldParams().psi_min
    if graph.sensitive.sum() == 1:
        found.append(
            f"V_sens was drawn as a single node of {graph.n}; on a graph this small name it with "
            "sensitive="
        )
    if capped := graph.meta["capped_edges"]:
        found.append(
            f"{capped:,} of {graph.edges:,} edges exceeded the largest probability of "
            f"{setting.edge_cap:g} and stand at it now: odds of 1 are infinite, and no gate lowers "
            "them; another cap is setting=Setting.default().replace(edge_cap=...)"
        )
    if ungated := ungated_edges(graph, psi_min):
        found.append(
            f"{ungated:,} of {graph.edges:,} edges have a probability above "
            f"{1 / (1 + psi_min):.2f}, which even psi_min {psi_min:g} leaves above one half; what "
            "passes over them stays, whatever the odds ratio says: lower those weights"
        )
    spread = spectral_radius(graph.adjacency) / (1 - setting.persistence) if given else 1.0
    if spread < SUBCRITICAL:
        factor = f" by about {1 / spread:.1f}" if spread > 0 else ""
        found.append(
            f"the probabilities hardly spread: spectral radius / (1 - s) is {spread:.2g}, and "
            f"below {SUBCRITICAL:g} a seed activates about one other node or none; pass "
            f"scale=True, which multiplies them{factor} to reach cascades of "
            f"{setting.cascade_target:g} nodes"
        )
    return found
