"""What the fold knows of each region that has been reported, and what it is stepped through.

Everything begins as zeros: memory that no region has touched costs nothing. What came in over time
lies in columns in the order in which it came; where it is wanted region by region it is sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo_gate.config import MOST_SIGNALS, MOST_SOURCES, GateConfig

Array = npt.NDArray[Any]


def grown(array: Array, size: int, fill: int) -> Array:
    """`array` if it has `size` elements, else a longer copy; those handed out stay as they were."""
    if size <= array.size:
        return array
    size = max(size, 2 * array.size)
    longer = np.zeros(size, array.dtype) if fill == 0 else np.full(size, fill, array.dtype)
    longer[: array.size] = array
    return longer


def stable_order(slots: Array) -> Array:
    """As `np.argsort(slots, kind="stable")`; 16 bits at a time, which NumPy sorts in one pass."""
    order = np.argsort(slots.astype(np.uint16), kind="stable")
    if int(slots.max(initial=0)) >= 1 << 16:
        order = order[np.argsort((slots >> 16).astype(np.uint16)[order], kind="stable")]
    return order


class Spans(NamedTuple):
    """Where each of some regions has its items in a list that is sorted by region, (regions,)."""

    next: npt.NDArray[np.int64]
    """The item that comes next; a kernel moves it on."""
    end: npt.NDArray[np.int64]
    """The first item of the next region."""

    @classmethod
    def of(cls, owners: Array, slots: Array, first: int = 0) -> tuple[Array, Spans]:
        """Items of some regions, sorted by region and then in the order in which they came.

        Args:
            owners: slot of each item.
            slots: whose items are wanted, in ascending order.
            first: number of the first item in `owners`.

        Returns:
            Numbers of the items, and the span of each slot in them.

        >>> Spans.of(np.array([7, 3, 7]), np.array([3, 5, 7]))[0]
        array([1, 0, 2])
        """
        wanted = np.zeros(int(owners.max(initial=-1)) + 1, np.bool_)
        wanted[slots[slots < wanted.size]] = True
        mine = np.flatnonzero(wanted[owners])
        order = mine[stable_order(owners[mine])]
        return order + first, cls.within(owners[order], slots)

    @classmethod
    def within(cls, sorted_owners: Array, slots: Array) -> Spans:
        """The span of each slot among owners in ascending order."""
        start, end = (np.searchsorted(sorted_owners, slots, side) for side in ("left", "right"))
        return cls(start, end)


AGREEING = MOST_SOURCES + MOST_SIGNALS
"""Newest reporters, then kinds of signal, of a region that are kept."""

CELL = np.dtype(
    [
        ("tick", np.int64),  # last one that was stepped
        ("point_tick", np.int64),  # newest point of the exposures that was heeded
        ("point_E", np.float64),
        ("S", np.float64),  # reports in memory
        ("E", np.float64),  # exposures in memory
        ("G", np.float64),
        ("H", np.float64),
        ("L", np.float64),  # of S, by those reporters who are loud: beyond the bound
        ("bound", np.float64),  # as it is held
        ("grown", np.int64),  # tick in which the scar last grew
        ("confirmed_until", np.int64),  # tick until which a reviewer's confirmation holds
        ("agreed_until", np.int64),  # last tick in which enough reporters and signals agree
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
        ("loud", np.bool_),
    ],
    align=True,
)

COURSE = np.dtype(
    [(n, np.float64) for n in ("G", "H", "psi", "harm", "S", "E", "grew", "held", "fade", "keep")]
)
"""A region after a tick; what the scar grew by, and what was kept of scar, reports and trace."""


class Records(NamedTuple):
    """What the fold knows of regions and of reporters on them."""

    cells: npt.NDArray[np.void]
    """`CELL`, (slots,)."""
    pairs: npt.NDArray[np.void]
    """`PAIR` of each region and reporter, (pairs,)."""
    names: npt.NDArray[np.int32]
    """Reporters, then kinds of signal, that agreed on a region, the newest of each first,
    (slots, AGREEING)."""
    ticks: npt.NDArray[np.int64]
    """Last tick in which each of them agreed; 0 where there is none."""

    def grown(self, slots: int, pairs: int) -> Records:
        """With room for so many regions and pairs."""
        if slots <= self.cells.size and pairs <= self.pairs.size:
            return self
        cells, pairs_now = grown(self.cells, slots, 0), grown(self.pairs, pairs, 0)
        names, ticks = (np.zeros((cells.size, AGREEING), a.dtype) for a in self[2:])
        names[: len(self.names)], ticks[: len(self.ticks)] = self.names, self.ticks
        return Records(cells, pairs_now, names, ticks)

    @classmethod
    def empty(cls, slots: int = 0, pairs: int = 0) -> Records:
        """Of regions that were never reported."""
        names, ticks = np.zeros((0, AGREEING), np.int32), np.zeros((0, AGREEING), np.int64)
        return Records(np.zeros(0, CELL), np.zeros(0, PAIR), names, ticks).grown(slots, pairs)

    def copy(self) -> Records:
        """One that can be tried things on."""
        return Records(self.cells.copy(), self.pairs.copy(), self.names.copy(), self.ticks.copy())


class Inputs(NamedTuple):
    """What regions are stepped through. Spans have an element per region that is stepped."""

    rows: npt.NDArray[np.void]
    taken: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    """Numbers of rows, by region."""
    row_span: Spans
    point_tick: npt.NDArray[np.int64]
    """Points of the exposures, by region."""
    point_E: npt.NDArray[np.float64]
    point_span: Spans
    confirmed_tick: npt.NDArray[np.int64]
    """Confirmations, by region."""
    confirmed_until: npt.NDArray[np.int64]
    confirmed_span: Spans
    pair: npt.NDArray[np.int32]
    """Numbers of pairs with reporters, by region."""
    pair_span: Spans


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


class Confirmation(NamedTuple):
    """A reviewer's confirmation of a region, from the tick after `tick` up to `until`."""

    tick: int
    region: int
    until: int
    report: int = 0
    """The report that was confirmed, 0 for the region itself; void once that is rolled back."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a human action changes; the fold tries it out or carries it out."""

    regions: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    """Regions that the action concerns."""
    rolled_back: npt.NDArray[np.bool_] | None = None
    """Whether each row of the ledger will be rolled back; None if none changes."""
    taken: npt.NDArray[np.int64] | None = None
    """What will count of each row."""
    reports: frozenset[int] = frozenset()
    """Reports that are rolled back; their confirmations are void."""
    confirmed: tuple[Confirmation, ...] = ()
    free: bool | None = None
    """Whether the regions will be on the allow-list."""
    topics: Mapping[int, str | None] | None = None
    config: GateConfig | None = None
    """Settings from the next tick on."""
    allowed: dict[int, dict[str, Any]] | None = None
    """The allow-list afterwards; None if it stays."""
    overrides: dict[int, dict[str, Any]] | None = None


class Fields(NamedTuple):
    """Fields of some regions; arrays of one length."""

    regions: npt.NDArray[np.int32]
    G: npt.NDArray[np.float64]
    H: npt.NDArray[np.float64]
    psi: npt.NDArray[np.float64]
