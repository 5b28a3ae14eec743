"""Names as small numbers: regions, reporters and signals in the order in which the log has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.jit import kernel
from rapo.gate.events import Region
from rapo.gate.names import UNKNOWN, Names, NameTable

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
def _look_up(keys: Any, values: Any, wanted: Any, out: Any) -> int:
    """Numbers of `wanted`; returns how many are unknown."""
    missing = 0
    for i in range(wanted.size):
        out[i] = values[_slot(keys, values, wanted[i])]
        missing += out[i] == UNKNOWN
    return missing


@kernel
def _taken(reals: Any, numbers: Any, out: Any) -> None:
    """`reals` of numbers, 1 where there is none."""
    for i in range(numbers.size):
        known = 0 <= numbers[i] < reals.size
        out[i] = reals[numbers[i]] if known else 1.0


class IntTable:
    """A hash table from 64-bit integers to numbers >= 0, read by kernels.

    >>> table = IntTable(); table.insert(np.array([7, -3]), np.array([0, 1]))
    >>> table.numbers(np.array([-3, 5, 7]))
    array([ 1, -1,  0], dtype=int32)
    """

    def __init__(self) -> None:
        self._count = 0
        self._read = np.zeros(16, np.int64), np.full(16, UNKNOWN, np.int32)

    def insert(self, keys: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
        """Add keys that are not there yet, each once."""
        self._count += keys.size
        held, numbers = self._read
        if 2 * self._count > held.size:
            size = 1 << (4 * self._count - 1).bit_length()
            old_keys, old = held[numbers != UNKNOWN], numbers[numbers != UNKNOWN]
            held, numbers = np.zeros(size, np.int64), np.full(size, UNKNOWN, np.int32)
            _insert(held, numbers, old_keys, old)
        _insert(held, numbers, keys.astype(np.int64), values.astype(np.int32))
        self._read = held, numbers

    def numbers(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Number of each key, UNKNOWN where there is none."""
        out = np.empty(keys.size, np.int32)
        _look_up(*self._read, keys, out)
        return out


class Registry:
    """Names in the order in which they came; a name keeps its number for ever.

    One thread adds while others ask for `reals`: see `NameTable`. A number that an asker has not
    heard of yet is beyond the end of his reals, whatever the tables say.
    """

    def __init__(self, names: Iterable[Region] = ()) -> None:
        self.names: list[Region] = []
        self._numbers: dict[Region, int] = {}
        self._integers, self._strings = IntTable(), NameTable()
        self.add(list(names))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: Region) -> bool:
        return name in self._numbers

    def add(self, names: list[Any]) -> None:
        """Take in those names that are new."""
        start = len(self.names)
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = len(self.names)
                self.names.append(name)
        new = self.names[start:]
        whole = [i for i, name in enumerate(new, start) if not isinstance(name, str)]
        if whole:
            keys = np.array([self.names[i] for i in whole], np.int64)
            self._integers.insert(keys, np.array(whole))
        if len(whole) < len(new):
            text = [(name, i) for i, name in enumerate(new, start) if isinstance(name, str)]
            self._strings.insert(*zip(*text, strict=True))

    def number(self, name: Region) -> int:
        """Number of a name, UNKNOWN where there is none."""
        return self._numbers.get(name, UNKNOWN)

    def add_one(self, name: Region) -> int:
        """Number of a name, new or not."""
        number = self._numbers.get(name)
        if number is None:
            self.add([name])
            number = self._numbers[name]
        return number

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
        _taken(reals, self.numbers(names), out)
        return out
