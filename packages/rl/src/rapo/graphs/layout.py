"""Positions: as they were given, or a spring layout for networks that come without coordinates.

The kernel is our own because networkx's needs about a minute for 7,000 nodes; this one, seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from rapo.cascade.edges import NodeTable
from rapo_core.checks import UserError
from rapo_core.jit import kernel

EXACT = 4000
"""Up to this many nodes every pair repels; above, nodes repel a random sample."""
SAMPLE = 1000
"""Nodes in that sample, drawn anew at every step."""
STEPS = 150
"""Moves of every node; the longest allowed move shrinks linearly to 0 over them."""
GRAVITY = 0.5
"""Pull to the middle relative to the total repulsion a node feels at distance 1."""


def spring_layout(neighbours: sparse.csr_array, seed: int = 0) -> npt.NDArray[np.float32]:
    """Fruchterman-Reingold positions with a pull to the middle that holds components together.

    Args:
        neighbours: (n, n) undirected adjacency, as `Graph.neighbours`.
        seed: of the starting positions and of the samples; the same seed gives the same layout.

    Returns:
        (n, 2) positions in the unit square, the same scale on both axes.
    """
    n = neighbours.shape[0]
    rng = np.random.default_rng(seed)
    xy = rng.random((2, n)) - 0.5
    spacing = 1.0 / np.sqrt(n)
    indptr, indices = neighbours.indptr.astype(np.int32), neighbours.indices.astype(np.int32)
    everyone = np.arange(n)
    for step in range(STEPS):
        others = everyone if n <= EXACT else rng.integers(n, size=SAMPLE)
        _move(xy, indptr, indices, others, spacing, 0.1 * (1 - step / STEPS))
    return _into_unit_square(xy.T)


@kernel
def _move(
    xy: npt.NDArray[np.float64],
    indptr: npt.NDArray[np.int32],
    indices: npt.NDArray[np.int32],
    others: npt.NDArray[np.int64],
    spacing: float,
    longest: float,
) -> None:
    """Move every node once, in place, by at most `longest`. `xy` is (2, n)."""
    n = xy.shape[1]
    x, y = xy[0].copy(), xy[1].copy()
    fx, fy = np.zeros(n), np.zeros(n)
    strength = spacing * spacing * n / len(others)
    nearest = 0.1 * strength  # a sampled node stands for n / SAMPLE nodes spread around it
    # Sample outside, nodes inside: no sum is carried over the inner loop, so it vectorises
    # without reordering additions and the result does not depend on the vector width.
    for j in others:
        xj, yj = x[j], y[j]
        for i in range(n):
            dx, dy = x[i] - xj, y[i] - yj
            force = strength / max(dx * dx + dy * dy, nearest)
            fx[i] += force * dx
            fy[i] += force * dy
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            dx, dy = x[indices[e]] - x[i], y[indices[e]] - y[i]
            pull = np.sqrt(dx * dx + dy * dy) / spacing
            fx[i] += pull * dx
            fy[i] += pull * dy
        fx[i] -= GRAVITY * x[i]
        fy[i] -= GRAVITY * y[i]
        length = np.sqrt(fx[i] * fx[i] + fy[i] * fy[i])
        share = longest / max(length, longest)
        xy[0, i] += fx[i] * share
        xy[1, i] += fy[i] * share


def _into_unit_square(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Centre and scale (n, 2) points; far outliers are drawn in so that they do not set the scale.

    Radii up to the 95% quantile r keep their proportions; a larger radius d becomes r (2 - r/d),
    which stays in order and below 2r.
    """
    centred = points - np.median(points, axis=0)
    radius = np.sqrt((centred**2).sum(axis=1))
    usual = float(np.quantile(radius, 0.95))
    if usual > 0:
        far = radius > usual
        centred[far] *= (usual * (2 - usual / radius[far]) / radius[far])[:, None]
    return fit_unit_square(centred)


def fit_unit_square(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Shift and scale (n, 2) points into the unit square, centred, one scale for both axes.

    Points that all coincide go to the middle.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    extent = float((high - low).max())
    scaled = (points - (low + high) / 2) / (extent if extent > 0 else 1.0) + 0.5
    # Rounding can leave a point 1e-16 outside; nothing further out exists to be clipped.
    inside: npt.NDArray[np.float32] = np.clip(scaled, 0.0, 1.0).astype(np.float32)
    return inside


def given_positions(
    positions: str | npt.ArrayLike, index: dict[str, int], nodes: NodeTable
) -> npt.NDArray[np.float32]:
    """(n, 2) positions from an array, or from one label that holds pairs or two labels `x,y`.

    Args:
        positions: an (n, 2) array inside the unit square, or names of labels to scale into it.
        index: number of each node by the text of its id.
        nodes: the labels.
    """
    if not isinstance(positions, str):
        xy = np.asarray(positions, np.float32)
        if xy.shape != (len(index), 2):
            raise UserError(
                f"positions must have shape ({len(index)}, 2), nodes in sorted order of their ids, "
                f"got {xy.shape}"
            )
        return xy
    names = [positions] if positions in nodes.columns else positions.split(",")
    columns = [nodes.column(name.strip()) for name in names]
    points = np.empty((len(index), 2))
    for key, i in index.items():
        values = [column.get(key) for column in columns]
        point = _pair(values if len(columns) > 1 else values[0])
        if point is None:
            raise UserError(
                f"node {key} has no position in {positions!r}, got {values}; give every node a "
                "pair of numbers, or use positions=None for a spring layout"
            )
        points[i] = point
    return fit_unit_square(points)


def _pair(value: Any) -> npt.NDArray[np.float64] | None:
    """`value` as two finite numbers, or None."""
    try:
        point = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return None
    return point if point.shape == (2,) and np.isfinite(point).all() else None
