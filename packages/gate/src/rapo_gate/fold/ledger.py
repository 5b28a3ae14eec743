"""The ledger: every report's share in every region, in the order in which it counts.

Harm is a whole number of `UNIT`s: sums are exact, so they do not depend on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.jit import kernel
from rapo_gate.fold.records import grown, stable_order

UNIT = 2**32
"""Fixed-point one: harm 1, or the whole of one decision's exposure."""

MOST = 2**61
"""Sums of harm stop here, 500 million: one more report cannot overflow them."""

NOTHING = -1
"""`taken` of a report that was rolled back."""

ROW = np.dtype(
    [
        ("tick", np.int64),  # at which it counts
        ("report", np.int64),  # position in the log
        ("amount", np.int64),  # harm x attribution weight, in UNITs
        ("at", np.float64),  # Unix seconds, as reported
        ("region", np.int32),
        ("source", np.int32),
        ("signal", np.int32),
        ("by_source", np.int32),  # number of the pair (region, source)
        ("bystander", np.bool_),  # its share is too small to agree with anybody
        ("rolled_back", np.bool_),
    ],
    align=True,
)
"""One report's share in one region."""

Rows = npt.NDArray[np.void]
Whole = npt.NDArray[np.int64]
Caps = Sequence[tuple[int, float]]


@kernel
def _cap(rows: Any, gone: Any, first: int, last: int, cap: float, sums: Any, taken: Any) -> None:
    """What counts of rows `first` to `last`, in UNITs, after the cap per reporter and tick."""
    start = first
    while start < last:
        end = start
        while end < last and rows[end].tick == rows[start].tick:
            if not gone[end]:
                source = rows[end].source
                sums[source] = min(sums[source] + rows[end].amount, MOST)
            end += 1
        for i in range(start, end):
            amount, total = rows[i].amount, float(sums[rows[i].source])
            if gone[i]:
                taken[i] = NOTHING
            elif total > cap:
                taken[i] = np.int64(np.floor(float(amount) * cap / total))
            else:
                taken[i] = amount
        for i in range(start, end):
            sums[rows[i].source] = 0
        start = end


class Ledger:
    """A growing array of `ROW`s, sorted by tick.

    Regions that have rows, or were confirmed, have a slot: a small number of their own.
    """

    def __init__(self, rows: Rows | None = None) -> None:
        self._rows: Rows = np.zeros(1024, ROW)
        self._taken = np.zeros(1024, np.int64)
        self._size = 0
        self.kept = 0
        """Rows that a snapshot has and that have not changed since."""
        self._by_source: dict[int, int] = {}
        self.slot_of = np.full(0, NOTHING, np.int32)
        """By region, NOTHING where it has none."""
        self._region = np.zeros(16, np.int32)
        self.slots = 0
        self._pair_slot = np.zeros(16, np.int32)
        self._pair_order = np.zeros(0, np.int32)
        self._sorted_slots = np.zeros(0, np.int32)
        if rows is not None:
            self._adopt(rows)

    def _adopt(self, rows: Rows) -> None:
        """Take over rows that have been in a ledger; their regions get slots by `seat`."""
        self._rows, self._size, self.kept = rows.copy(), rows.size, rows.size
        self._taken = np.zeros(rows.size, np.int64)
        keys = _pair(rows["region"], rows["source"])
        values, first = np.unique(keys, return_index=True)
        numbers = rows["by_source"][first]
        self._by_source.update(zip(values.tolist(), numbers.tolist(), strict=True))

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> Rows:
        """All rows; a view."""
        return self._rows[: self._size]

    @property
    def taken(self) -> Whole:
        """What counts of each row, in UNITs; NOTHING if it was rolled back. A view."""
        return self._taken[: self._size]

    @property
    def pairs(self) -> int:
        """Pairs of a region and a reporter so far."""
        return len(self._by_source)

    def pairs_by_slot(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Numbers of the pairs, sorted by slot, and their slots; new pairs are merged in."""
        begun, pairs = self._pair_order.size, self.pairs
        if begun < pairs:
            order = stable_order(self._pair_slot[begun:pairs])
            slots = self._pair_slot[begun:pairs][order]
            at = np.searchsorted(self._sorted_slots, slots, "right")
            self._pair_order = np.insert(self._pair_order, at, order + begun)
            self._sorted_slots = np.insert(self._sorted_slots, at, slots)
        return self._pair_order, self._sorted_slots

    @property
    def regions(self) -> npt.NDArray[np.int32]:
        """Region of each slot; a view."""
        return self._region[: self.slots]

    def slot(self, region: int) -> int:
        """Slot of a region, NOTHING if it has none."""
        return int(self.slot_of[region]) if 0 <= region < self.slot_of.size else NOTHING

    def rows_of(self, region: int) -> Whole:
        """Numbers of a region's rows, in order."""
        return np.flatnonzero(self.rows["region"] == region)

    def slots_of(self, regions: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Slots of regions that have one, in ascending order of the slot; each once."""
        known = np.unique(regions[regions < self.slot_of.size])
        slots = np.unique(self.slot_of[known])
        return np.asarray(slots[slots != NOTHING], np.int32)

    def seat(self, regions: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Give regions that have none a slot, in the order given; returns the new slots."""
        most = int(regions.max()) + 1 if regions.size else 0
        if most > self.slot_of.size:
            self.slot_of = grown(self.slot_of, max(most, 2 * self.slot_of.size), NOTHING)
        fresh = list(dict.fromkeys(regions[self.slot_of[regions] == NOTHING].tolist()))
        new = np.arange(self.slots, self.slots + len(fresh), dtype=np.int32)
        self._region = grown(self._region, self.slots + len(fresh), 0)
        self._region[new] = fresh
        self.slot_of[fresh] = new
        self.slots += len(fresh)
        return new

    def append(self, rows: Rows, cap: float) -> None:
        """Add rows of one tick or more, none earlier than those there.

        Numbers their pairs. `cap` is the most harm of one reporter in one tick.
        """
        if not rows.size:
            return
        rows["by_source"] = _numbered(self._by_source, rows["region"], rows["source"])
        start, self._size = self._size, self._size + rows.size
        self._rows = grown(self._rows, self._size, 0)
        self._taken = grown(self._taken, self._size, 0)
        self._rows[start : self._size] = rows
        self.place_pairs(start)
        self.capped(self._rows["rolled_back"], self._taken, start, self._size, cap)

    def place_pairs(self, start: int) -> None:
        """Note the slots of the pairs of rows from `start` on."""
        rows = self.rows[start:]
        self._pair_slot = grown(self._pair_slot, self.pairs, 0)
        self._pair_slot[rows["by_source"]] = self.slot_of[rows["region"]]

    def capped(
        self, gone: npt.NDArray[Any], taken: Whole, first: int, last: int, cap: float
    ) -> None:
        """Write what counts of some rows into `taken`; `gone` are those that do not count."""
        if first == last:
            return
        most = int(self.rows["source"][first:last].max()) + 1
        _cap(self._rows, gone, first, last, cap * UNIT, np.zeros(most, np.int64), taken)

    def without(
        self, gone: npt.NDArray[np.bool_], caps: Caps
    ) -> tuple[Whole, npt.NDArray[np.int32]]:
        """What would count of each row if those `gone` did not, and the regions that differ.

        Args:
            gone: one element per row.
            caps: up to which tick which cap per reporter holds.
        """
        taken = self.taken.copy()
        changed = np.flatnonzero(gone != (taken == NOTHING))
        if changed.size:
            ticks = self.rows["tick"]
            first = int(np.searchsorted(ticks, ticks[changed[0]], "left"))
            last = int(np.searchsorted(ticks, ticks[changed[-1]], "right"))
            for until, cap in caps:
                end = min(int(np.searchsorted(ticks, until, "right")), last)
                if first < end:
                    self.capped(gone, taken, first, end, cap)
                    first = end
        return taken, np.unique(self.rows["region"][taken != self.taken])

    def first_rows(self) -> Whole:
        """Place of the first row of each pair with a reporter."""
        places = np.zeros(len(self._by_source), np.int64)
        places[self.rows["by_source"][::-1]] = np.arange(self._size)[::-1]
        return places

    def roll_back(self, gone: npt.NDArray[np.bool_], taken: Whole) -> None:
        """Let the rows count as `without` says."""
        self.rows["rolled_back"] = gone
        self._taken[: self._size] = taken
        self.kept = 0


def _pair(region: npt.NDArray[Any], other: npt.NDArray[Any]) -> Whole:
    return region.astype(np.int64) << 32 | other.astype(np.int64)


def _numbered(
    pairs: dict[int, int], region: npt.NDArray[Any], other: npt.NDArray[Any]
) -> npt.NDArray[np.int32]:
    """Number of each pair; new pairs are numbered in ascending order of the pair."""
    keys, inverse = np.unique(_pair(region, other), return_inverse=True)
    numbers = [pairs.setdefault(key, len(pairs)) for key in keys.tolist()]
    return np.array(numbers, np.int32)[inverse]


def joined(pieces: Iterable[tuple[bytes]]) -> Rows:
    """Rows from the pieces of bytes that a store keeps them in."""
    data = b"".join(piece for (piece,) in pieces)
    return np.frombuffer(data[: len(data) // ROW.itemsize * ROW.itemsize], ROW)
