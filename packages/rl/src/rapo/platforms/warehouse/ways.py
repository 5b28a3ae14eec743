"""Routes between two cells: the shortest ones through different aisles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rapo.platforms.warehouse.floor import NONE, Array, Floor
from rapo_core.jit import lean_kernel


class Ways(NamedTuple):
    """Up to K routes for each pair of cells (row), the shortest first."""

    cells: Array
    """(rows, K, L) int32 cells of a route, both ends too, -1 for pads."""
    last: Array
    """(rows, K) int32 steps of a route, the number of its last cell; 0 for pads."""


class Reach:
    """Distances from some cells to all others, and from all others to them.

    Args:
        floor: its one-way streets.
        cells: the cells to measure from, in any order.
    """

    def __init__(self, floor: Floor, cells: Array) -> None:
        self.cells = np.unique(cells)
        shape = len(self.cells), floor.free.size
        self.away, self.before, self.left, self.after = np.full((4, *shape), NONE, np.int32)
        queue = np.empty(shape[1], np.int32)
        _spread(self.cells, floor.exits, self.away, self.before, queue)
        _spread(self.cells, floor.entries, self.left, self.after, queue)

    def row(self, cells: Array) -> Array:
        """Rows of cells in the tables."""
        return np.searchsorted(self.cells, cells)


def ways_of(
    floor: Floor, reach: Reach, start: Array, end: Array, most: int, longest: float, apart: float
) -> Ways:
    """Up to `most` routes from every start to its end, each by way of some aisle's entrance.

    Args:
        floor: with the entrances.
        reach: of all starts and ends.
        start: (rows,) cells.
        end: (rows,) cells.
        most: K.
        longest: times the shortest.
        apart: least share of its cells that a route shares with no shorter route.
    """
    a, b = reach.row(start), reach.row(end)
    # The end as a stop on the way gives the shortest route, which may enter no aisle.
    via = np.column_stack([end, np.tile(floor.entrance, (len(end), 1))])
    length = reach.away[a[:, None], via] + reach.left[b[:, None], via]
    order = np.argsort(length, axis=1, kind="stable")
    limit = longest * reach.away[a, end]
    room = int(limit.max()) + 1
    cells = np.full((len(start), most, room), NONE, np.int32)
    last = np.zeros((len(start), most), np.int32)
    mark = np.zeros(floor.free.size, np.int64)
    _find(
        a, b, start, np.take_along_axis(via, order, 1), np.take_along_axis(length, order, 1), limit,
        reach.before, reach.after, 1 - apart, mark, cells, last,
    )  # fmt: skip
    return Ways(cells[:, :, : last.max() + 1].copy(), last)


@lean_kernel
def _spread(cells: Any, exits: Any, away: Any, before: Any, queue: Any) -> None:
    """Breadth first from every one of `cells`: steps `away` and the cell `before`, else -1."""
    for i in range(cells.size):
        queue[0], away[i, cells[i]] = cells[i], 0
        head, tail = 0, 1
        while head < tail:
            at = queue[head]
            head += 1
            for k in range(2):
                to = exits[at, k]
                if to >= 0 and away[i, to] < 0:
                    away[i, to], before[i, to] = away[i, at] + 1, at
                    queue[tail] = to
                    tail += 1


@lean_kernel
def _find(
    a: Any, b: Any, start: Any, via: Any, length: Any, limit: Any, before: Any, after: Any,
    shared: float, mark: Any, cells: Any, last: Any,
) -> None:  # fmt: skip
    """Fill cells (rows, K, L) and last (rows, K). `mark` (all cells) is 0 before and after."""
    most = cells.shape[1]
    here = np.int64(1) << most  # the bit of the route that is being tried
    for i in range(start.size):
        count = 0
        for j in range(via.shape[1]):
            if count == most or length[i, j] > limit[i]:
                break
            steps = length[i, j]
            at, n = via[i, j], 0
            while at != start[i]:
                at = before[a[i], at]
                n += 1
            at = via[i, j]
            for k in range(n, -1, -1):
                cells[i, count, k] = at
                at = before[a[i], at]
            at = via[i, j]
            for k in range(n + 1, steps + 1):
                at = after[b[i], at]
                cells[i, count, k] = at
            simple = True
            for k in range(steps + 1):
                simple &= mark[cells[i, count, k]] & here == 0
                mark[cells[i, count, k]] |= here
            different = True
            for old in range(count):
                common = 0
                for k in range(steps + 1):
                    common += mark[cells[i, count, k]] >> old & 1
                different &= common <= shared * (steps + 1)
            for k in range(steps + 1):
                mark[cells[i, count, k]] &= ~here
            if simple and different:
                for k in range(steps + 1):
                    mark[cells[i, count, k]] |= np.int64(1) << count
                last[i, count] = steps
                count += 1
            else:
                for k in range(steps + 1):
                    cells[i, count, k] = -1
        for r in range(count):
            for k in range(last[i, r] + 1):
                mark[cells[i, r, k]] = 0
