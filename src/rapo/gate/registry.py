"""Names as small numbers: regions, reporters and signals in the order in which the log has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.jit import kernel
from rapo.gate.events import Region

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
def _look_up(keys: Any, values: Any, wanted: Any, out: Any) -> int:
    """Numbers of `wanted`; returns how many are unknown."""
    missing = 0
    for i in range(wanted.size):
        out[i] = values[_slot(keys, values, wanted[i])]
        missing += out[i] == UNKNOWN
    return missing


@kernel
def _look_up_real(keys: Any, values: Any, reals: Any, wanted: Any, out: Any) -> None:
    """`reals` of `wanted`, 1 where unknown."""
    for i in range(wanted.size):
        number = values[_slot(keys, values, wanted[i])]
        out[i] = reals[number] if number != UNKNOWN else 1.0


class IntTable:
    """A hash table from 64-bit integers to numbers >= 0, read by kernels.

    >>> table = IntTable(); table.insert(np.array([7, -3]), np.array([0, 1]))
    >>> table.numbers(np.array([-3, 5, 7]))
    array([ 1, -1,  0], dtype=int32)
    """

    def __init__(self) -> None:
        self._count = 0
        self._keys = np.zeros(16, np.int64)
        self._values = np.full(16, UNKNOWN, np.int32)

    def insert(self, keys: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
        """Add keys that are not there yet, each once."""
        self._count += keys.size
        if 2 * self._count > self._keys.size:
            size = 1 << (4 * self._count - 1).bit_length()
            old_keys, old = self._keys[self._values != UNKNOWN], self._values[self._values >= 0]
            self._keys, self._values = np.zeros(size, np.int64), np.full(size, UNKNOWN, np.int32)
            _insert(self._keys, self._values, old_keys, old)
        _insert(self._keys, self._values, keys.astype(np.int64), values.astype(np.int32))

    def numbers(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Number of each key, UNKNOWN where there is none."""
        out = np.empty(keys.size, np.int32)
        _look_up(self._keys, self._values, keys, out)
        return out

    def reals(
        self, keys: npt.NDArray[np.int64], reals: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """`reals[number]` of each key, 1 where there is none."""
        out = np.empty(keys.size)
        _look_up_real(self._keys, self._values, reals, keys, out)
        return out


class Registry:
    """Names in the order in which they came; a name keeps its number for ever."""

    def __init__(self, names: Iterable[Region] = ()) -> None:
        self.names: list[Region] = []
        self._numbers: dict[Region, int] = {}
        self._table = IntTable()
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
        new = [(n, start + i) for i, n in enumerate(self.names[start:]) if isinstance(n, int)]
        if new:
            keys, values = np.array(new, np.int64).T
            self._table.insert(keys, values)

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

    def numbers(self, names: npt.NDArray[np.int64] | list[Any]) -> npt.NDArray[np.int32]:
        """Numbers of many names, UNKNOWN where there is none."""
        if isinstance(names, np.ndarray):
            return self._table.numbers(names)
        get = self._numbers.get
        return np.array([get(name, UNKNOWN) for name in names], np.int32)
