"""What the fold knows of each region that has been reported, and what it is stepped through.

Everything begins as zeros: memory that no region has touched costs nothing. Arrays grow, and what
belongs together within one is linked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo_core.jit import kernel
from rapo_gate.config import GateConfig

Array = npt.NDArray[Any]


def grown(array: Array, size: int, fill: int) -> Array:
    """`array` if it has `size` elements, else a longer copy; those handed out stay as they were."""
    if size <= array.size:
        return array
    size = max(size, 2 * array.size)
    longer = np.zeros(size, array.dtype) if fill == 0 else np.full(size, fill, array.dtype)
    longer[: array.size] = array
    return longer


@kernel
def _append(owners: Any, start: int, first: Any, last: Any, following: Any) -> None:
    for i in range(owners.size):
        item, owner = start + i + 1, owners[i]
        if last[owner] == 0:
            first[owner] = item
        else:
            following[last[owner] - 1] = item
        last[owner] = item


class Links:
    """Lists of items, one list for each owner, in the order in which items came.

    Items are numbered from 1; 0 is the end of a list.

    >>> links = Links(); links.append(np.array([0, 1, 0]), owners=2, start=0)
    >>> int(links.first[0]), int(links.next[0]), int(links.next[2])
    (1, 3, 0)
    """

    def __init__(self) -> None:
        self.first = np.zeros(16, np.int64)
        """First item of each owner."""
        self.last = np.zeros(16, np.int64)
        self.next = np.zeros(16, np.int64)
        """What follows each item (that of item 1 comes first)."""

    def append(self, owner_of: Array, owners: int, start: int) -> None:
        """Add items `start + 1` and on; room is made for so many `owners`."""
        self.room(owners, start + owner_of.size)
        _append(owner_of.astype(np.int64), start, self.first, self.last, self.next)

    def room(self, owners: int, items: int) -> None:
        """Make room."""
        self.first, self.last = grown(self.first, owners, 0), grown(self.last, owners, 0)
        self.next = grown(self.next, items, 0)


CELL = np.dtype(
    [
        ("tick", np.int64),  # last one that was stepped
        ("row", np.int64),  # last one that was looked at; this and the next three count from 1
        ("trail", np.int64),  # last row whose agreement has expired
        ("brk", np.int64),  # break of the exposure in force
        ("vouch", np.int64),  # last confirmation that was taken in
        ("S", np.float64),  # reports in memory
        ("E", np.float64),  # exposures in memory
        ("G", np.float64),
        ("H", np.float64),
        ("L", np.float64),  # of S, by those reporters who are loud: beyond the bound
        ("bound", np.float64),  # as it is held
        ("grown", np.int64),  # tick in which the scar last grew
        ("confirmed_until", np.int64),  # tick until which a reviewer's word holds
        ("sources", np.int32),  # different reporters within the window
        ("signals", np.int32),
        ("loud", np.int32),  # how many are
        ("topic", np.int32),  # counts from 1; 0 for none
        ("live", np.bool_),  # whether time alone changes it
        ("heard", np.bool_),  # whether any report counted
    ],
    align=True,
)

PAIR = np.dtype(
    [
        ("mass", np.float64),  # of a reporter's reports on a region, in memory
        ("tick", np.int64),  # when it was that
        ("now", np.int64),  # in UNITs, within a tick
        ("said", np.int64),  # last tick that agrees, 0 for none
        ("loud", np.bool_),
    ],
    align=True,
)

COURSE = np.dtype(
    [(n, np.float64) for n in ("G", "H", "psi", "harm", "S", "E", "grew", "held", "fade", "keep")]
)
"""A region after a tick; what the scar grew by, and what was kept of scar, reports and trace."""


class Cells(NamedTuple):
    """Cells (slots,), pairs with reporters (pairs,), last agreeing tick by signal (pairs,)."""

    cells: npt.NDArray[np.void]
    pairs: npt.NDArray[np.void]
    says: npt.NDArray[np.int64]


class Book(NamedTuple):
    """What cells are stepped through: rows, breaks and confirmations, linked slot by slot."""

    rows: npt.NDArray[np.void]
    taken: npt.NDArray[np.int64]
    first_row: npt.NDArray[np.int64]
    next_row: npt.NDArray[np.int64]
    first_pair: npt.NDArray[np.int64]
    next_pair: npt.NDArray[np.int64]
    break_tick: npt.NDArray[np.int64]
    break_E: npt.NDArray[np.float64]
    first_break: npt.NDArray[np.int64]
    next_break: npt.NDArray[np.int64]
    vouch_tick: npt.NDArray[np.int64]
    vouch_until: npt.NDArray[np.int64]
    first_vouch: npt.NDArray[np.int64]
    next_vouch: npt.NDArray[np.int64]


class Stops(NamedTuple):
    """Ticks at which cells are written down, in ascending order cell by cell."""

    first: npt.NDArray[np.int64]
    """Place of the first one of each cell that is stepped, and the end, (cells + 1,)."""
    ticks: npt.NDArray[np.int64]
    course: npt.NDArray[np.void]
    """`COURSE` at each; zeros and psi 1 where nothing had been reported."""

    @classmethod
    def at(cls, first: npt.ArrayLike, ticks: npt.NDArray[np.int64]) -> Stops:
        """Stops with nothing written."""
        course = np.zeros(ticks.size, COURSE)
        course["psi"] = 1.0
        return cls(np.asarray(first, np.int64), ticks, course)


class Change(NamedTuple):
    """Settings in force from the tick after `tick` on."""

    tick: int
    config: GateConfig


def window_at(changes: Sequence[Change], tick: int) -> int:
    """For how many ticks agreement holds at a tick; settings of that tick come after it."""
    before = [change for change in changes if change.tick < tick] or changes[:1]
    return before[-1].config.confirm_ticks


class Vouch(NamedTuple):
    """A reviewer's word for a region, from the tick after `tick` up to `until`."""

    tick: int
    region: int
    until: int
    report: int = 0
    """The report that was vouched for, 0 for the region itself; void once the report is gone."""


class Fields(NamedTuple):
    """Fields of some regions; arrays of one length."""

    regions: npt.NDArray[np.int32]
    G: npt.NDArray[np.float64]
    H: npt.NDArray[np.float64]
    psi: npt.NDArray[np.float64]
