"""The ledger: every report's share in every region, in the order in which it counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.gate.fold import ROW, Rows


class Ledger:
    """A growing array of `ROW`s, sorted by tick, with the pairs that agreement is counted by."""

    def __init__(self, rows: Rows | None = None) -> None:
        self._rows: Rows = np.zeros(1024, ROW) if rows is None else rows.copy()
        self._size = 0 if rows is None else rows.size
        self.kept = self._size
        """Rows that a snapshot has and that have not changed since."""
        self._by_source: dict[int, int] = {}
        self._by_signal: dict[int, int] = {}
        if rows is not None:
            for pairs, other, column in (
                (self._by_source, "source", "by_source"),
                (self._by_signal, "signal", "by_signal"),
            ):
                keys = _pair(rows["region"], rows[other])
                values, first = np.unique(keys, return_index=True)
                pairs.update(zip(values.tolist(), rows[column][first].tolist(), strict=True))

    def copy(self) -> Ledger:
        """A ledger of its own with the same rows; quicker than numbering their pairs again."""
        other = Ledger()
        other._rows, other._size, other.kept = self.rows.copy(), self._size, self.kept
        other._by_source, other._by_signal = self._by_source.copy(), self._by_signal.copy()
        return other

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> Rows:
        """All rows; a view."""
        return self._rows[: self._size]

    @property
    def pairs(self) -> tuple[int, int]:
        """Pairs of (region, source) and of (region, signal) so far."""
        return len(self._by_source), len(self._by_signal)

    def append(self, rows: Rows) -> None:
        """Add rows that count no earlier than those there; numbers their pairs."""
        if not rows.size:
            return
        rows["by_source"] = _numbered(self._by_source, rows["region"], rows["source"])
        rows["by_signal"] = _numbered(self._by_signal, rows["region"], rows["signal"])
        needed = self._size + rows.size
        if needed > self._rows.size:
            longer = np.zeros(max(needed, 2 * self._rows.size), ROW)
            longer[: self._size] = self._rows[: self._size]
            self._rows = longer
        self._rows[self._size : needed] = rows
        self._size = needed


def _pair(region: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return region.astype(np.int64) << 32 | other.astype(np.int64)


def _numbered(
    pairs: dict[int, int], region: npt.NDArray[Any], other: npt.NDArray[Any]
) -> npt.NDArray[np.int32]:
    """Number of each pair; new pairs are numbered in ascending order of the pair."""
    keys, inverse = np.unique(_pair(region, other), return_inverse=True)
    numbers = [pairs.setdefault(key, len(pairs)) for key in keys.tolist()]
    return np.array(numbers, np.int32)[inverse]
