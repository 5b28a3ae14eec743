"""Names as small numbers: regions, reporters and signals in the order in which the log has them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.jit import inlined, kernel
from rapo_gate.events import Region
from rapo_gate.fold.names import Names

UNKNOWN = -1
"""Number of a name that is not there."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _slot(keys: Any, values: Any, key: int) -> int:
    """Where `key` is, or the empty slot where it belongs; open addressing, linear probing."""
    mask = np.uint64(keys.size - 1)
    mixed = np.uint64(key) * _MIX
    at = (mixed ^ (mixed >> np.uint64(29))) & mask
    while values[at] != UNKNOWN and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return int(at)


@kernel
def _insert(keys: Any, values: Any, new_keys: Any, new_values: Any) -> None:
    for i in range(new_keys.size):
        at = _slot(keys, values, new_keys[i])
        keys[at] = new_keys[i]
        values[at] = new_values[i]


@kernel
def _look_up(keys: Any, values: Any, wanted: Any, out: Any) -> None:
    for i in range(wanted.size):
        out[i] = values[_slot(keys, values, wanted[i])]


@inlined
def _real(reals: Any, number: int) -> Any:
    """`reals` of a number, 1 where there is none."""
    return reals[number] if 0 <= number < reals.size else 1.0


@kernel
def _reals(reals: Any, numbers: Any, out: Any) -> None:
    for i in range(numbers.size):
        out[i] = _real(reals, numbers[i])


@inlined
def reals_into(keys: Any, values: Any, wanted: Any, reals: Any, out: Any) -> None:
    """`reals` of every key that is wanted, by the arrays of an `IntTable`; 1 where there is none.

    For kernels that go on with them: a call costs as much as looking up hundreds of keys.
    """
    for i in range(wanted.size):
        out[i] = _real(reals, values[_slot(keys, values, wanted[i])])


class IntTable:
    """A hash table from 64-bit integers to numbers >= 0, read by kernels.

    >>> table = IntTable(); table.insert(np.array([7, -3]), np.array([0, 1]))
    >>> table.numbers(np.array([-3, 5, 7]))
    array([ 1, -1,  0], dtype=int32)
    """

    def __init__(self) -> None:
        self._count = 0
        self.arrays = np.zeros(16, np.int64), np.full(16, UNKNOWN, np.int32)

    def insert(self, keys: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
        """Add keys that are not there yet, each once."""
        self._count += keys.size
        held, numbers = self.arrays
        if 2 * self._count > held.size:
            size = 1 << (4 * self._count - 1).bit_length()
            old_keys, old = held[numbers != UNKNOWN], numbers[numbers != UNKNOWN]
            held, numbers = np.zeros(size, np.int64), np.full(size, UNKNOWN, np.int32)
            _insert(held, numbers, old_keys, old)
        _insert(held, numbers, keys.astype(np.int64), values.astype(np.int32))
        self.arrays = held, numbers

    def numbers(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Number of each key, UNKNOWN where there is none."""
        out = np.empty(keys.size, np.int32)
        _look_up(*self.arrays, keys, out)
        return out


_BLOCK = 64
_UPPER, _LOWER = np.uint64(0xFFFFFFFF00000000), np.uint64(0xFFFFFFFF)
_SEED = np.uint64(secrets.randbits(64))
_FACTOR = np.uint64(secrets.randbits(64) | 1)
"""Of the hash: drawn by every process, so that nobody can send names that collide."""


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
def _insert_rows(slots: Any, mixed: Any, first: int) -> None:
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
def _look_up_names(table: Any, count: int, text: Any, spans: Any, mixed: Any, out: Any) -> int:
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
        kept = _room(kept, used + text.size + 1)  # an empty name starts behind the last
        starts, numbers = _room(starts, total + 1), _room(numbers, total)
        kept[used : used + text.size] = text
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        starts[count + 1 : total + 1] = used + np.cumsum(lengths)
        numbers[count:total] = values
        first = count
        if 2 * total > slots.size:
            slots, first = np.zeros(1 << (4 * total - 1).bit_length(), np.uint64), 0
        spans = np.stack((starts[first:total], starts[first + 1 : total + 1]), axis=1)
        _insert_rows(slots, self._mixed(kept, spans), first)
        self._read = (slots, kept, starts, numbers), total

    def numbers(self, names: Names) -> npt.NDArray[np.int32]:
        """Number of each name, UNKNOWN where there is none."""
        table, count = self._read
        text = np.frombuffer(names.joined, np.uint8)
        out = np.empty(len(names), np.int32)
        _look_up_names(table, count, text, names.spans, self._mixed(text, names.spans), out)
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


class Numbering:
    """Names in the order in which they came; a name keeps its number for ever."""

    def __init__(self, names: Iterable[Region] = ()) -> None:
        self.names: list[Region] = []
        self._numbers: dict[Region, int] = {}
        self.add(list(names))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: Region) -> bool:
        return name in self._numbers

    def add(self, names: Iterable[Any]) -> None:
        """Give numbers to those names that are new."""
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = len(self.names)
                self.names.append(name)

    def number(self, name: Region) -> int:
        """Number of a name, UNKNOWN where there is none."""
        return self._numbers.get(name, UNKNOWN)


class Registry(Numbering):
    """A numbering whose numbers are looked up many at a time, by kernels.

    One thread adds while others ask for `reals`: see `NameTable`. A number that an asker has not
    heard of yet is beyond the end of his reals, whatever the tables say.
    """

    def __init__(self, names: Iterable[Region] = ()) -> None:
        self._integers, self._strings = IntTable(), NameTable()
        super().__init__(names)

    def add(self, names: Iterable[Any]) -> None:
        """Give numbers to those names that are new."""
        start = len(self.names)
        super().add(names)
        new = self.names[start:]
        whole = [i for i, name in enumerate(new, start) if not isinstance(name, str)]
        if whole:
            keys = np.array([self.names[i] for i in whole], np.int64)
            self._integers.insert(keys, np.array(whole))
        if len(whole) < len(new):
            text = [(name, i) for i, name in enumerate(new, start) if isinstance(name, str)]
            self._strings.insert(*zip(*text, strict=True))

    @property
    def integers(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Arrays of the table of names that are integers, for `reals_into`."""
        return self._integers.arrays

    def numbers(self, names: npt.NDArray[np.int64] | Names | list[Any]) -> npt.NDArray[np.int32]:
        """Numbers of many names, UNKNOWN where there is none."""
        if isinstance(names, np.ndarray):
            return self._integers.numbers(names)
        if isinstance(names, Names):
            return self._strings.numbers(names)
        get = self._numbers.get
        return np.array([get(name, UNKNOWN) for name in names], np.int32)

    def reals(
        self, names: npt.NDArray[np.int64] | Names, reals: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """`reals[number]` of each name, 1 where there is none."""
        out = np.empty(len(names))
        _reals(reals, self.numbers(names), out)
        return out
