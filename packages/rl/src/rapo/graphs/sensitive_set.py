"""The sensitive set V_sens of a graph: drawn as a connected ball, or named by the user."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from rapo.cascade.edges import NodeTable
from rapo_core.checks import UserError

if TYPE_CHECKING:
    pass


def grow_ball(
    neighbours: sparse.csr_array, positions: npt.NDArray[np.floating], centre: int, size: int
) -> npt.NDArray[np.int32]:
    """A connected set of `size` nodes around `centre`; an ellipse in stretched coordinates.

    The set grows over its frontier, the node nearest to the centre first (ties by node id), so it
    is connected by construction.

    Args:
        neighbours: (n, n) undirected adjacency, as `Graph.neighbours`.
        positions: (n, 2) coordinates.
        centre: node id in 0..n-1.
        size: number of nodes, >= 1.

    Returns:
        (size,) node ids, ascending.

    Raises:
        ValueError: when the component of `centre` is smaller than `size`.
    """
    n = neighbours.shape[0]
    if size < 1:
        raise UserError(f"a ball holds at least 1 node, got size {size}; ask for 1 or more")
    if not 0 <= centre < n:
        raise UserError(f"centre must be a node 0..{n - 1}, got {centre}")
    indptr, indices = neighbours.indptr, neighbours.indices
    distance = np.hypot(*(np.asarray(positions, np.float64) - positions[centre]).T)
    seen = np.zeros(n, np.bool_)
    seen[centre] = True
    heap: list[tuple[float, int]] = [(0.0, int(centre))]
    ball: list[int] = []
    while heap and len(ball) < size:
        _, node = heapq.heappop(heap)
        ball.append(node)
        around = indices[indptr[node] : indptr[node + 1]]
        fresh = around[~seen[around]]
        seen[fresh] = True
        for item in zip(distance[fresh].tolist(), fresh.tolist(), strict=True):
            heapq.heappush(heap, item)
    if len(ball) < size:
        raise UserError(
            f"a ball of {size} nodes does not fit: the component of node {centre} has {len(ball)}; "
            "ask for a smaller ball or choose a centre in a larger component"
        )
    return np.sort(np.array(ball, np.int32))


def draw_sensitive(
    neighbours: sparse.csr_array,
    positions: npt.NDArray[np.floating],
    low: float,
    high: float,
    rng: np.random.Generator,
    stretch: float = 1.0,
) -> npt.NDArray[np.bool_]:
    """V_sens as a connected ball that holds a share of the nodes drawn uniformly from [low, high].

    The centre is drawn among the nodes of the largest component. The count stays inside
    [low * n, high * n]; on a graph so small that no whole number lies there, it is the whole number
    nearest to the drawn share, at least 1.

    Args:
        neighbours: (n, n) undirected adjacency.
        positions: (n, 2) coordinates.
        low: smallest share, 0 < low <= high.
        high: largest share, <= 1.
        rng: source of randomness.
        stretch: length over breadth, >= 1; more than 1 grows an ellipse along a drawn direction.

    Returns:
        (n,) membership.
    """
    if not 0 < low <= high <= 1:
        raise UserError(f"shares must satisfy 0 < low <= high <= 1, got low {low}, high {high}")
    n = neighbours.shape[0]
    count = _share_to_count(rng.uniform(low, high), low, high, n)
    _, label = connected_components(neighbours, directed=False)
    sizes = np.bincount(label)
    largest = np.flatnonzero(label == sizes.argmax())
    if len(largest) < count:
        raise UserError(
            f"V_sens of {count} nodes ({low:.0%} to {high:.0%} of {n}) does not fit: the largest "
            f"component has {len(largest)}; lower the share or name the sensitive nodes"
        )
    mask = np.zeros(n, np.bool_)
    centre = int(rng.choice(largest))
    if stretch > 1:
        positions = _stretched(positions, stretch, rng.uniform(0, math.pi))
    mask[grow_ball(neighbours, positions, centre, count)] = True
    return mask


def _stretched(
    positions: npt.NDArray[np.floating], stretch: float, angle: float
) -> npt.NDArray[np.float64]:
    """Coordinates (n, 2) in which an ellipse of that length over breadth and angle is a ball."""
    along = np.array([math.cos(angle), math.sin(angle)])
    across = np.array([-along[1], along[0]])
    axes = np.stack([along / math.sqrt(stretch), across * math.sqrt(stretch)], axis=1)
    return np.asarray(np.asarray(positions, np.float64) @ axes)


def _share_to_count(share: float, low: float, high: float, n: int) -> int:
    """Nodes for a drawn share; 1e-9 keeps 0.07 * 100 = 7.000000000000001 from asking for 8."""
    least, most = math.ceil(low * n - 1e-9), math.floor(high * n + 1e-9)
    count = round(share * n)
    if least <= most:
        count = min(max(count, least), most)
    return max(count, 1)


def named_sensitive(
    sensitive: str | Iterable[Any], index: dict[str, int], nodes: NodeTable
) -> npt.NDArray[np.bool_]:
    """(n,) membership of a V_sens given as `column=value`, as ids or as a boolean per node.

    Args:
        sensitive: what was asked for.
        index: number of each node by the text of its id.
        nodes: the labels.
    """
    if isinstance(sensitive, str):
        name, equals, wanted = sensitive.partition("=")
        if not equals:
            raise UserError(
                f"sensitive={sensitive!r} is not of the form 'column=value'; "
                "give that, or a list of node ids, or a boolean per node"
            )
        column = {key: str(value).strip() for key, value in nodes.column(name.strip()).items()}
        mask = np.array([column.get(key) == wanted.strip() for key in index])
        if not mask.any():
            some = sorted(set(column.values()))[:10]
            raise UserError(
                f"no node has {sensitive}; {name.strip()} takes values like {some}, choose one"
            )
        return mask
    if not isinstance(sensitive, Iterable):
        raise UserError(
            f"sensitive must be 'column=value', node ids or a boolean per node, got {sensitive!r}"
        )
    values = np.asarray(sensitive).tolist() if isinstance(sensitive, np.ndarray) else [*sensitive]
    if not values:
        raise UserError("sensitive is an empty list; name at least one node")
    if all(isinstance(value, bool | np.bool_) for value in values):
        if len(values) != len(index):
            raise UserError(
                f"sensitive has {len(values)} booleans for {len(index)} nodes; give one per node"
            )
        return np.array(values, np.bool_)
    unknown = [value for value in values if str(value) not in index]
    if unknown:
        raise UserError(
            f"sensitive names {len(unknown)} unknown nodes, first {unknown[0]!r}; "
            f"use the ids of the data, such as {next(iter(index))}"
        )
    mask = np.zeros(len(index), np.bool_)
    mask[[index[str(value)] for value in values]] = True
    return mask


def largest_part(
    inside: npt.NDArray[np.bool_], neighbours: sparse.csr_array
) -> npt.NDArray[np.bool_]:
    """The largest connected part of a set of nodes, both (n,) membership."""
    members = np.flatnonzero(inside)
    part = np.zeros_like(inside)
    if len(members):
        _, label = connected_components(neighbours[members][:, members], directed=False)
        part[members[label == np.bincount(label).argmax()]] = True
    return part
