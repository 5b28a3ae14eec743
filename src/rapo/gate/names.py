"""`Names`: many strings as one piece of memory, and a hash table over them that kernels read."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.jit import inlined, kernel

UNKNOWN = -1
"""Number of a name that is not there."""

_BREAK = ord("\n")
_BLOCK = 64
_UPPER, _LOWER = np.uint64(0xFFFFFFFF00000000), np.uint64(0xFFFFFFFF)
_SEED = np.uint64(secrets.randbits(64))
_FACTOR = np.uint64(secrets.randbits(64) | 1)
"""Of the hash: drawn by every process, so that nobody can send names that collide."""


@kernel
def _spans(joined: Any, spans: Any) -> tuple[int, int, bool]:
    """Where each line starts and ends.

    Returns:
        Lines found (counted on where there are more than `spans` holds), bytes of the longest, and
        whether every line is printable ASCII and has a character.
    """
    lines, start, longest, plain = 0, 0, 0, True
    for at in range(joined.size + 1):
        if at < joined.size and joined[at] != _BREAK:
            plain &= 32 <= joined[at] < 127
            continue
        if lines < spans.shape[0]:
            spans[lines, 0], spans[lines, 1] = start, at
        plain &= at > start
        longest = max(longest, at - start)
        lines, start = lines + 1, at + 1
    return lines, longest, plain


class Names:
    """n >= 1 strings as UTF-8, one after the other.

    >>> Names.of(["a", "é"]).listed()
    ['a', 'é']
    """

    __slots__ = ("joined", "longest", "plain", "spans")

    def __init__(self, joined: bytes, count: int) -> None:
        """Take apart what was joined by line breaks.

        Raises:
            ValueError: it is not `count` lines.
        """
        self.joined = joined
        """UTF-8, a line break between two names."""
        self.spans = np.empty((count, 2), np.int32)
        """First byte of each and the first after it, (n, 2)."""
        lines, self.longest, self.plain = _spans(np.frombuffer(joined, np.uint8), self.spans)
        if lines != count:
            raise ValueError(f"{lines} lines for {count} names")

    @classmethod
    def of(cls, names: Sequence[str]) -> Names:
        """Join strings, none of which has a line break.

        Raises:
            TypeError: not all of them are strings.
            ValueError: one has a line break or cannot be written as UTF-8.
        """
        return cls("\n".join(names).encode(), len(names))

    def __len__(self) -> int:
        return len(self.spans)

    def listed(self) -> list[str]:
        """As Python's strings."""
        return self.joined.decode().split("\n")


@inlined
def _hash(text: Any, start: int, end: int, seed: Any, factor: Any) -> Any:
    mixed = seed
    for at in range(start, end):
        mixed = (mixed ^ np.uint64(text[at])) * factor
    return mixed ^ (mixed >> np.uint64(32))


@kernel
def _hashes(text: Any, spans: Any, seed: Any, factor: Any, out: Any) -> None:
    for i in range(spans.shape[0]):
        out[i] = _hash(text, spans[i, 0], spans[i, 1], seed, factor)


@inlined
def _same(text: Any, start: int, end: int, other: Any, at: int, other_end: int) -> bool:
    if end - start != other_end - at:
        return False
    i = 0
    while i < end - start and text[start + i] == other[at + i]:
        i += 1
    return i == end - start


@kernel
def _insert(slots: Any, mixed: Any, first: int) -> None:
    """Put rows `first`, `first + 1`, … into empty slots; open addressing, linear probing."""
    mask = np.uint64(slots.size - 1)
    for i in range(mixed.size):
        at = mixed[i] & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = (mixed[i] & _UPPER) | np.uint64(first + i + 1)


@inlined
def _next(slots: Any, count: int, mixed: Any, at: Any) -> tuple[Any, Any]:
    """The next row of a hash from a slot on, and its slot; UNKNOWN where there is none.

    Rows from `count` on may still be on their way in: they are passed over.
    """
    mask = np.uint64(slots.size - 1)
    while True:
        held = slots[at & mask]
        if held == 0:
            return at, UNKNOWN
        row = np.int64(held & _LOWER) - 1
        if (held ^ mixed) & _UPPER == 0 and row < count:
            return at, row
        at += np.uint64(1)


@inlined
def _search(table: Any, count: int, text: Any, start: int, end: int, mixed: Any, slot: Any) -> Any:
    """The row of a name, beyond a slot with another of the same hash."""
    slots, kept, starts, _ = table
    while True:
        slot, row = _next(slots, count, mixed, slot + np.uint64(1))
        if row == UNKNOWN or _same(kept, starts[row], starts[row + 1], text, start, end):
            return row


@kernel
def _look_up(table: Any, count: int, text: Any, spans: Any, mixed: Any, out: Any) -> int:
    """Numbers of names.

    The tables are larger than any cache. In a block each pass goes over names that need nothing of
    one another, so that the processor waits for many of them at a time.
    """
    slots, kept, starts, numbers = table
    slot, rows = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.int64)
    fetched = 0
    for first in range(0, spans.shape[0], _BLOCK):
        size = min(_BLOCK, spans.shape[0] - first)
        for i in range(size):
            slot[i], rows[i] = _next(slots, count, mixed[first + i], mixed[first + i])
        for i in range(size):
            fetched += kept[starts[max(rows[i], 0)]]
        for i in range(size):
            row = rows[i]
            start, end = spans[first + i, 0], spans[first + i, 1]
            if row != UNKNOWN and not _same(kept, starts[row], starts[row + 1], text, start, end):
                row = _search(table, count, text, start, end, mixed[first + i], slot[i])
            out[first + i] = numbers[row] if row != UNKNOWN else UNKNOWN
    return fetched


class NameTable:
    """A hash table from strings to numbers >= 0.

    One thread adds while others look up, without a lock: a row never moves within its arrays, a
    slot is written at once, and whoever looks up holds the arrays and the count of rows that were
    there when he began.

    >>> table = NameTable(); table.insert(["b", "a"], [0, 1])
    >>> table.numbers(Names.of(["a", "x", "b"]))
    array([ 1, -1,  0], dtype=int32)
    """

    def __init__(self) -> None:
        self._seed, self._factor = _SEED, _FACTOR
        self._read: tuple[tuple[npt.NDArray[Any], ...], int] = (
            (np.zeros(16, np.uint64), np.zeros(64, np.uint8), np.zeros(9, np.int64),
             np.zeros(8, np.int32)), 0,
        )  # fmt: skip
        """Slots (upper half of the hash, row + 1), text, where each row starts in it, its number;
        and how many rows there are."""

    def insert(self, names: Sequence[str], values: Sequence[int]) -> None:
        """Add strings that are not there yet, each once."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        text = np.frombuffer(b"".join(encoded), np.uint8)
        (slots, kept, starts, numbers), count = self._read
        total, used = count + len(encoded), int(starts[count])
        kept = _room(kept, used + text.size)
        starts, numbers = _room(starts, total + 1), _room(numbers, total)
        kept[used : used + text.size] = text
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        starts[count + 1 : total + 1] = used + np.cumsum(lengths)
        numbers[count:total] = values
        first = count
        if 2 * total > slots.size:
            slots, first = np.zeros(1 << (4 * total - 1).bit_length(), np.uint64), 0
        spans = np.stack((starts[first:total], starts[first + 1 : total + 1]), axis=1)
        _insert(slots, self._mixed(kept, spans), first)
        self._read = (slots, kept, starts, numbers), total

    def numbers(self, names: Names) -> npt.NDArray[np.int32]:
        """Number of each name, UNKNOWN where there is none."""
        table, count = self._read
        text = np.frombuffer(names.joined, np.uint8)
        out = np.empty(len(names), np.int32)
        _look_up(table, count, text, names.spans, self._mixed(text, names.spans), out)
        return out

    def _mixed(self, text: npt.NDArray[Any], spans: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        out = np.empty(len(spans), np.uint64)
        _hashes(text, spans, self._seed, self._factor, out)
        return out


def _room(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """An array for at least so many rows: the same, or a copy twice as long."""
    if rows <= len(array):
        return array
    longer = np.zeros((2 * rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
