"""Stimuli of a graph: seed distributions around nodes of V_sens, and whether they lead into it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from rapo.graphs.sensitive_set import grow_ball
from rapo_core.checks import UserError

if TYPE_CHECKING:
    from rapo.cascade.graph import Graph


def draw_stimuli(
    neighbours: sparse.csr_array,
    positions: npt.NDArray[np.floating],
    sensitive: npt.NDArray[np.bool_],
    support: int,
    count: int,
    rng: np.random.Generator,
    shares: tuple[float, float] | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Fixed seed distributions around nodes of V_sens with Dirichlet(1) weights.

    Centres are drawn from V_sens without replacement; once all were used, the draw starts over.

    Args:
        neighbours: (n, n) undirected adjacency.
        positions: (n, 2) coordinates.
        sensitive: (n,) membership of V_sens, at least one node.
        support: seed nodes of a stimulus, >= 1.
        count: number of stimuli Z, >= 1.
        rng: source of randomness.
        shares: None for the ball around the centre; a pair (low, high) splits the seeds into those
            nearest to the centre inside V_sens and those nearest outside, the share inside uniform
            over stimuli between the two, cut to [0, 1].

    Returns:
        Seed nodes (Z, k), ascending rows, and weights (Z, k), rows sum to 1. k is `support`, or the
        size of V_sens' component (the smallest one, if it lies in several) when that is smaller.
    """
    if support < 1 or count < 1:
        raise UserError(
            f"a stimulus needs at least 1 seed and there must be at least 1 stimulus, "
            f"got support {support}, count {count}"
        )
    members = np.flatnonzero(sensitive)
    if not len(members):
        raise UserError("the sensitive set is empty; name at least one node to draw stimuli from")
    _, label = connected_components(neighbours, directed=False)
    k = min(support, int(np.bincount(label)[label[members]].min()))
    rounds = math.ceil(count / len(members))
    centres = np.concatenate([rng.permutation(members) for _ in range(rounds)])[:count]
    if shares is None:
        seeds = np.stack([grow_ball(neighbours, positions, int(c), k) for c in centres])
    else:
        wanted = np.clip(rng.uniform(*shares, count), 0, 1) * k
        seeds = _split_seeds(positions, sensitive, label, centres, np.rint(wanted).astype(int), k)
    return seeds, rng.dirichlet(np.ones(k), size=count)


def _split_seeds(
    positions: npt.NDArray[np.floating],
    sensitive: npt.NDArray[np.bool_],
    label: npt.NDArray[np.int32],
    centres: npt.NDArray[np.int64],
    inside: npt.NDArray[np.int64],
    k: int,
) -> npt.NDArray[np.int32]:
    """(Z, k) the nearest nodes of each centre's component, `inside` (Z,) of them in V_sens.

    Where one side has too few nodes, the other side supplies the rest.
    """
    seeds = np.empty((len(centres), k), np.int32)
    for row, centre, wanted in zip(seeds, centres, inside, strict=True):
        reached = np.flatnonzero(label == label[centre])
        gaps = np.hypot(*(np.asarray(positions[reached], np.float64) - positions[centre]).T)
        nearest = reached[np.argsort(gaps, kind="stable")]
        within = sensitive[nearest]
        most, rest = int(within.sum()), int((~within).sum())
        take = min(max(int(wanted), k - rest), most)
        row[:] = np.sort(np.r_[nearest[within][:take], nearest[~within][: k - take]])
    return seeds


def stimuli_in_reach(graph: Graph) -> npt.NDArray[np.bool_]:
    """(Z,) whether a directed path of positive probability leads from a stimulus to V_sens.

    Seeds of weight 0 are never injected and do not count. A seed inside V_sens needs no path.
    """
    carries, members = graph.prob > 0, np.flatnonzero(graph.sensitive)
    # The search runs against the edges, from an extra node that all of V_sens leads to.
    start = np.concatenate([graph.indices[carries], np.full(len(members), graph.n)])
    end = np.concatenate([graph.sources[carries], members])
    backwards = sparse.csr_array(
        (np.ones(len(start), np.int8), (start, end)), shape=(graph.n + 1, graph.n + 1)
    )
    reaches = np.zeros(graph.n + 1, np.bool_)
    reaches[breadth_first_order(backwards, graph.n, return_predecessors=False)] = True
    injected = reaches[graph.support] & (graph.weights > 0)
    return np.asarray(injected.any(axis=1), np.bool_)
