"""The paper's random graphs: spatial nearest-neighbour digraphs with Beta(2, 5) probabilities."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial import cKDTree

from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo.graphs.edge_weights import edge_weights, stimulus_shares
from rapo.graphs.ignition import Stimuli, with_igniting_stimuli
from rapo.graphs.scale import scale_to_target, scaled
from rapo.graphs.sensitive_set import draw_sensitive
from rapo.graphs.stimuli import draw_stimuli
from rapo_core.checks import UserError, whole_number

STIMULI = 20
OUT_DEGREES = (3, 4, 5)
LEAST_STIMULI = 8
"""Stimuli of split seeds that would fit beside each other: none holds more of the nodes."""


def generate(
    nodes: int = 250,
    seed: int = 0,
    setting: Setting | None = None,
    scale: float | None = None,
) -> Graph:
    """A random graph, deterministic for (nodes, seed, setting).

    Positions are uniform in the unit square; a node has 3, 4 or 5 targets among its nearest; V_sens
    is connected and may be stretched; edges that leave it may be turned inwards; edges inside,
    entering and leaving have weights; then all probabilities are scaled by the setting's factor or
    to its cascade target, none above `edge_cap`.

    Args:
        nodes: |V|, >= 10.
        seed: >= 0.
        setting: open choices; default `Setting.default()`.
        scale: a factor for the probabilities, instead of the setting's or of the search for one.
    """
    nodes, seed = whole_number("nodes", nodes, 10), whole_number("seed", seed, 0)
    if scale is not None and not (isfinite(scale) and scale >= 0):
        raise UserError(f"scale must be a finite number >= 0, got {scale!r}")
    chosen = Setting.default() if setting is None else setting
    if not isinstance(chosen, Setting):
        raise UserError(f"setting must be a Setting, got {setting!r}")
    return _generate(nodes, seed, chosen, scale)


@lru_cache(maxsize=32)  # graphs are immutable, and the search for the factor takes a while
def _generate(nodes: int, seed: int, setting: Setting, scale: float | None) -> Graph:
    rng = np.random.default_rng([seed, nodes])
    positions = _along_curve(rng.random((nodes, 2)))
    source, target = _nearest_targets(positions, setting.neighbours, rng)
    prob = rng.beta(2, 5, len(source))

    order = np.lexsort((target, source))
    source, target = source[order], target[order]
    both = sparse.coo_array((np.ones(len(source), np.int8), (source, target)), (nodes, nodes))
    neighbours = sparse.csr_array((both + both.T) > 0)
    sensitive = draw_sensitive(
        neighbours, positions, setting.sensitive_low, setting.sensitive_high, rng, setting.stretch
    )

    def stimuli(count: int, rng: np.random.Generator) -> Stimuli:
        seeds, shares = _seeds(nodes, setting), stimulus_shares(setting)
        return draw_stimuli(neighbours, positions, sensitive, seeds, count, rng, shares)

    support, weights = stimuli(STIMULI, rng)
    if setting.echo > 0:
        target = _turned_inwards(positions, sensitive, source, target, setting.echo, rng)
    prob = edge_weights(sensitive, source, target, setting) * prob
    top = max(1.0, float(prob.max()))  # a probability for now; the scaling undoes it
    order = np.lexsort((target, source))  # turned edges have other targets
    target, prob = target[order], prob[order]
    indptr = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(source, minlength=nodes), out=indptr[1:])
    graph = Graph(
        indptr=indptr,
        indices=target.astype(np.int32),
        prob=(prob / top).astype(np.float32),
        positions=positions.astype(np.float32),
        sensitive=sensitive,
        support=support,
        weights=weights,
        meta={"generator": "spatial", "nodes": nodes, "seed": seed},
    )
    factor = scale if scale is not None or setting.factor == 0 else setting.factor
    if factor is not None:
        graph = scaled(graph, factor * top, setting.edge_cap)
    else:
        graph = scale_to_target(graph, setting, seed=seed)
    if setting.ignition_runs:
        again = np.random.default_rng([seed, nodes, 1])  # leaves the draws above as they were
        graph = with_igniting_stimuli(graph, setting, lambda n: stimuli(n, again), seed=seed)
    return graph.replace(meta={**graph.meta, "scale": graph.meta["scale"] / top})


def _seeds(nodes: int, setting: Setting) -> int:
    """Seed nodes of a stimulus: split ones are local, on a small graph too."""
    most = nodes if setting.seeding == "ball" else max(1, nodes // LEAST_STIMULI)
    return min(setting.support, most)


def _along_curve(positions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Number the nodes along a Morton curve, so that neighbours are close in memory."""
    cells = (positions * 2**16).astype(np.uint64)
    code = np.zeros(len(positions), np.uint64)
    for bit in range(16):
        for axis in range(2):
            taken = (cells[:, axis] >> np.uint64(bit)) & np.uint64(1)
            code |= taken << np.uint64(2 * bit + axis)
    return positions[np.argsort(code, kind="stable")]


def _nearest_targets(
    positions: npt.NDArray[np.float64], factor: float, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Edges: each node picks its targets among its `factor` x out-degree nearest."""
    n = len(positions)
    degree = rng.choice(OUT_DEGREES, n)
    reach = np.minimum(np.ceil(factor * degree).astype(np.int64), n - 1)
    widest = int(reach.max())
    near = np.asarray(cKDTree(positions).query(positions, k=widest + 1)[1])
    lottery = rng.random((n, widest))
    lottery[np.arange(widest)[None, :] >= reach[:, None]] = np.inf  # beyond this node's circle
    chosen = np.argsort(lottery, axis=1)[:, : max(OUT_DEGREES)]
    keep = np.arange(max(OUT_DEGREES))[None, :] < degree[:, None]
    target = np.take_along_axis(near[:, 1:], chosen, axis=1)  # column 0 is the node itself
    source = np.repeat(np.arange(n), max(OUT_DEGREES)).reshape(n, -1)
    return source[keep], target[keep]


def _turned_inwards(
    positions: npt.NDArray[np.float64],
    sensitive: npt.NDArray[np.bool_],
    source: npt.NDArray[np.int64],
    target: npt.NDArray[np.int64],
    share: float,
    rng: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Targets (E,) with a share of the edges that leave V_sens led back into it.

    Such an edge goes to the nearest node of V_sens that its source does not lead to yet; where
    there is none it stays. V_sens keeps the edges it had inside and so stays connected.
    """
    leaving = np.flatnonzero(sensitive[source] & ~sensitive[target])
    turned = leaving[rng.random(len(leaving)) < share]
    members = np.flatnonzero(sensitive)
    target = target.copy()
    for edge in turned.tolist():
        node = source[edge]
        free = members[~np.isin(members, np.r_[target[source == node], node])]
        if len(free):
            gaps = np.hypot(*(positions[free] - positions[node]).T)
            target[edge] = free[gaps.argmin()]
    return target
