"""Regions: the map rho from nodes to the cells that carry harm memory."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from rapo.cascade.graph import Graph
from rapo_core.checks import UserError

Rows = list[list[int]]
RegionSpec = str | npt.ArrayLike | Callable[[Graph], npt.ArrayLike]
"""What an environment takes as regions, see `make_regions`."""

LOOSEST = 2.0
"""No component is cut into pieces of more than this times the asked mean size, on average."""
FINEST = 1_000_000
"""Largest k of a grid: beyond it a float32 position does not tell two cells apart."""


def make_regions(
    spec: RegionSpec, graph: Graph, *, seed: int = 0, straddle: bool = True
) -> npt.NDArray[np.int32]:
    """The region of every node.

    Args:
        spec: one of
            `"node"`, every node is its own region;
            `"community:<mean size>"`, connected pieces (direction ignored) of balanced size,
            round(n / mean size) of them; more only where many components need it, since each has
            at least one and none is cut into pieces of over twice that size; mean size >= 1;
            `"pieces:<mean size>"`, V_sens alone cut in that way, and one region for all the rest;
            `"grid:<k>"`, k x k cells over the unit square, empty cells not counted;
            `"label:<column>"`, a region for every value of a label of the graph, and one for the
            nodes without it;
            an integer array (n,) that uses every id 0..max;
            a callable that takes the graph and returns such an array.
        graph: the graph.
        seed: of the communities and pieces; the same seed gives the same regions.
        straddle: whether a community may hold nodes of V_sens and of the rest. Cells, labels and
            explicit arrays are taken as they are.

    Returns:
        (n,) region ids 0..R-1, each used, read-only.

    Raises:
        ValueError: a spec or array outside of the above, by value.
    """
    if callable(spec):
        try:
            regions = _check_explicit(np.asarray(spec(graph)), graph.n)
        except ValueError as error:
            name = getattr(spec, "__name__", repr(spec))
            raise UserError(f"the regions callable {name}: {error}") from error
    elif not isinstance(spec, str):
        regions = _check_explicit(np.asarray(spec), graph.n)
    else:
        regions = _parse(spec, graph, seed, straddle)
    regions.setflags(write=False)
    return regions


def _parse(spec: str, graph: Graph, seed: int, straddle: bool) -> npt.NDArray[np.int32]:
    kind, _, rest = spec.partition(":")
    if spec == "node":
        return np.arange(graph.n, dtype=np.int32)
    if kind == "community" and _is_number(rest, least=1.0):
        near = graph.neighbours
        return _communities(near if straddle else _without_border(graph), float(rest), seed)
    if kind == "pieces" and _is_number(rest, least=1.0):
        return _pieces(graph, float(rest), seed)
    if kind == "grid" and rest.isdecimal() and 1 <= int(rest) <= FINEST:
        return _grid(graph.positions, int(rest))
    if kind == "label" and rest:
        return _by_label(graph, rest)
    raise UserError(
        f"unknown regions {spec!r}; use 'node', 'community:<mean size >= 1>', 'pieces:<mean size "
        f">= 1>', 'grid:<k in 1..{FINEST}>', 'label:<column>', an integer array with one region "
        "id per node or a callable that takes the graph and returns one"
    )


def _is_number(text: str, least: float) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return math.isfinite(value) and value >= least


def _check_explicit(ids: npt.NDArray[np.generic], n: int) -> npt.NDArray[np.int32]:
    if ids.shape != (n,):
        raise UserError(f"regions must have shape ({n},), one id per node, got {ids.shape}")
    if not np.issubdtype(ids.dtype, np.integer):
        raise UserError(f"region ids must be integers, got dtype {ids.dtype}; convert them first")
    if ids.min() < 0:
        raise UserError(
            f"region ids must be >= 0, got {ids.min()}; number them 0..R-1 (node "
            f"{int(np.argmin(ids))} has it)"
        )
    used = np.unique(ids)
    if used[-1] != len(used) - 1:
        gap = int(np.flatnonzero(used != np.arange(len(used)))[0])
        raise UserError(
            f"region ids must use every number 0..{used[-1]}, {gap} is missing; renumber them, "
            "for instance with np.unique(ids, return_inverse=True)[1]"
        )
    return ids.astype(np.int32)


def _grid(positions: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int32]:
    column, row = np.minimum((positions.astype(np.float64) * k).astype(np.int64), k - 1).T
    return np.unique(row * k + column, return_inverse=True)[1].astype(np.int32)


def _by_label(graph: Graph, column: str) -> npt.NDArray[np.int32]:
    """A region per value, in the order of their first nodes; nodes without one share a region."""
    if column not in graph.labels:
        raise UserError(
            f"no node label is called {column!r}, the graph has {sorted(graph.labels)}; load it "
            "with labels=<file> or node attributes"
        )
    numbers: dict[str | None, int] = {}
    return np.array([numbers.setdefault(v, len(numbers)) for v in graph.labels[column]], np.int32)


def _pieces(graph: Graph, mean_size: float, seed: int) -> npt.NDArray[np.int32]:
    members = np.flatnonzero(graph.sensitive)
    inside = sparse.csr_array(graph.neighbours[members][:, members])
    inside.sort_indices()
    pieces = _communities(inside, mean_size, seed)
    regions = np.full(graph.n, pieces.max() + 1, np.int32)
    regions[members] = pieces
    return regions


def _without_border(graph: Graph) -> sparse.csr_array:
    """`graph.neighbours` without the edges between V_sens and the rest."""
    pairs = graph.neighbours.tocoo()
    row, col = pairs.row, pairs.col
    same = graph.sensitive[row] == graph.sensitive[col]
    return sparse.csr_array(
        (pairs.data[same], (row[same], col[same])), shape=graph.neighbours.shape
    )


def _communities(near: sparse.csr_array, mean_size: float, seed: int) -> npt.NDArray[np.int32]:
    """Connected pieces: spread the starting nodes, then always grow the smallest piece."""
    n = near.shape[0]
    indices, indptr = near.indices.tolist(), near.indptr.tolist()
    rows = [indices[a:b] for a, b in pairwise(indptr)]

    blocks, label = connected_components(near, directed=False)
    order = np.random.default_rng(seed).permutation(n)
    members: Rows = [[] for _ in range(blocks)]
    for node, block in zip(order.tolist(), label[order].tolist(), strict=True):
        members[block].append(node)

    region = [-1] * n
    starts: list[int] = []
    counts = _apportion([len(block) for block in members], mean_size)
    for block, count in zip(members, counts, strict=True):
        starts += _spread(rows, block, count, mean_size)
    _grow(rows, starts, region)
    # Ids follow the lowest node of each region and so do not depend on the order of growth.
    _, first, inverse = np.unique(region, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int32)


def _apportion(sizes: list[int], mean_size: float) -> list[int]:
    """Number of pieces of each block; no mean size is above `LOOSEST` times the asked one.

    Further pieces go one by one to the block with the largest mean size.
    """
    counts = [math.ceil(size / (LOOSEST * mean_size)) for size in sizes]
    wanted = math.floor(sum(sizes) / mean_size + 0.5)
    heap = [(-size / count, i) for i, (size, count) in enumerate(zip(sizes, counts, strict=True))]
    heapq.heapify(heap)
    for _ in range(wanted - sum(counts)):
        i = heap[0][1]
        counts[i] += 1
        heapq.heapreplace(heap, (-sizes[i] / counts[i], i))
    return counts


def _spread(rows: Rows, block: list[int], count: int, mean_size: float) -> list[int]:
    """`count` nodes of a shuffled block, apart by a hop distance that shrinks until they fit."""
    starts: list[int] = []
    gap = int(min(mean_size, len(block)))
    while True:
        reach: dict[int, int] = {}
        for start in starts:
            _mark(rows, reach, start, gap)
        for node in block:
            if len(starts) == count:
                return starts
            if node not in reach:
                starts.append(node)
                _mark(rows, reach, node, gap)
        gap = int(gap * 0.7)


def _mark(rows: Rows, reach: dict[int, int], start: int, gap: int) -> None:
    """Put every node within `gap` hops of `start` into `reach` (node -> hops still to go).

    A wave stops where an earlier one had as far to go, so that all waves together stay linear.
    """
    reach[start] = gap
    queue = deque([start] if gap else [])
    while queue:
        node = queue.popleft()
        left = reach[node] - 1
        for other in rows[node]:
            if reach.get(other, -1) < left:
                reach[other] = left
                if left:
                    queue.append(other)


def _grow(rows: Rows, starts: list[int], region: list[int]) -> None:
    """Give every node a region: the smallest region that still can takes its next neighbour."""
    fronts = [deque(rows[start]) for start in starts]
    heap = [(1, r) for r in range(len(starts))]
    for r, start in enumerate(starts):
        region[start] = r
    while heap:
        size, r = heap[0]
        front = fronts[r]
        while front and region[front[0]] >= 0:
            front.popleft()
        if not front:
            heapq.heappop(heap)
            continue
        node = front.popleft()
        region[node] = r
        front.extend(rows[node])
        heapq.heapreplace(heap, (size + 1, r))
