"""The floor: a warehouse of the MovingAI benchmark or a stand-in, with one-way aisles and doors."""

from __future__ import annotations

import gzip
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rapo.platforms.data import STAND_IN, data_path
from rapo.platforms.warehouse.entry import WAREHOUSE
from rapo_core.checks import UserError

Array = npt.NDArray[Any]
NONE = -1


class Floor(NamedTuple):
    """Cells are numbered row by row."""

    free: Array
    """(rows, columns) bool, cells without shelf and wall."""
    exits: Array
    """(cells, 2) int32 next cell along the row, and along the column, -1 for none."""
    entries: Array
    """(cells, 2) int32 previous cell along the row, and along the column, -1 for none."""
    used: Array
    """(cells,) bool, cells that can all be reached from each other."""
    aisle: Array
    """(cells,) bool, used cells between two shelves."""
    entrance: Array
    """Numbers of the first cells of the aisles."""
    real: bool


def floor_of(source: str) -> Floor:
    """The real floor or the stand-in.

    Args:
        source: `real` or `stand-in`.

    Raises:
        UserError: the data are missing or damaged.
    """
    return _stand_in() if source == STAND_IN else _read(str(data_path(WAREHOUSE.files[0])))


@lru_cache
def _read(path: str) -> Floor:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows, columns = int(next(lines)), int(next(lines))
            free = np.array(lines.read().split(), int).reshape(rows, columns) == 0
        if free[[0, -1]].any() or free[:, [0, -1]].any():
            raise UserError("it has no wall around it")
        return _laid_out(free, real=True)
    except (ValueError, OSError, EOFError, StopIteration) as error:
        raise UserError(f"{path} does not hold a floor of 0 and 1: {error!r}") from error


@lru_cache
def _stand_in() -> Floor:
    """Sixteen rows of eleven shelves, 8 x 2 each, with open floor left and right."""
    free = np.ones((51, 139), np.bool_)
    free[[0, -1]] = free[:, [0, -1]] = False
    y, x = np.ogrid[:49, :98]
    free[1:-1, 21:119] = (y % 3 == 0) | (x % 9 == 8)
    return _laid_out(free, real=False)


def _laid_out(free: Array, real: bool) -> Floor:
    """Make every row (odd ones east) and column (odd ones north) a one-way street.

    So no robots meet head-on in aisles that are one robot wide.
    """
    columns = free.shape[1]
    y, x = np.nonzero(free)
    cell = y * columns + x
    east, south = np.where(y % 2 == 1, 1, -1), np.where(x % 2 == 1, -1, 1)
    exits, entries = np.full((2, free.size, 2), NONE, np.int32)
    for table, way in ((exits, 1), (entries, -1)):
        along, across = free[y, x + way * east], free[y + way * south, x]
        table[cell[along], 0] = (cell + way * east)[along]
        table[cell[across], 1] = (cell + way * south * columns)[across]
    start, side = np.nonzero(exits >= 0)
    streets = csr_array((np.ones(len(start)), (start, exits[start, side])), (free.size, free.size))
    part = connected_components(streets, connection="strong")[1]
    used = (part == np.bincount(part).argmax()) & free.ravel()
    level, upright = ~(free[y - 1, x] | free[y + 1, x]), ~(free[y, x - 1] | free[y, x + 1])
    aisle = np.zeros(free.size, np.bool_)
    aisle[cell[level | upright]] = True
    aisle &= used
    entrance = np.flatnonzero(aisle & ~(aisle[entries] & (entries >= 0)).any(axis=1))
    return Floor(free, exits, entries, used, aisle, entrance, real)


def doors_of(floor: Floor, each_side: int) -> Array:
    """Cells through which robots come and go, on the open floor left and right of the shelves."""
    rows, columns = floor.free.shape
    shelves = np.flatnonzero(~floor.free[1:-1].all(axis=0))
    inner = shelves[(shelves > 0) & (shelves < columns - 1)]
    if not len(inner) or inner[0] < 3 or inner[-1] > columns - 4:
        raise UserError(f"the floor {floor.free.shape} has no open room on both sides of shelves")
    height = np.linspace(1, rows - 2, each_side + 2)[1:-1]
    used = floor.used.reshape(floor.free.shape)
    doors = []
    for column in (inner[0] - 2, inner[-1] + 2):
        rows_used = np.flatnonzero(used[:, column])
        nearest = rows_used[np.abs(rows_used[:, None] - height).argmin(axis=0)]
        doors.extend(nearest * columns + column)
    return np.array(doors)
