"""Bytes that an object holds in NumPy arrays, itself and everything it owns."""

from __future__ import annotations

from typing import Any

import numpy as np


def bytes_of(root: Any, without: tuple[type, ...] = ()) -> int:
    """Sum over all distinct arrays reachable from `root`; a view counts as the array it shows.

    Args:
        root: any object.
        without: types whose instances are left out, with the arrays that only they own and those
            they share.
    """
    shared: set[int] = set()
    if without:
        for owner in _owned(root, ()):
            if isinstance(owner, without):
                shared |= {id(_base(a)) for a in _owned(owner, ()) if isinstance(a, np.ndarray)}
    arrays = {id(_base(a)): _base(a) for a in _owned(root, without) if isinstance(a, np.ndarray)}
    return sum(array.nbytes for key, array in arrays.items() if key not in shared)


def _base(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _owned(root: Any, without: tuple[type, ...]) -> list[Any]:
    """Every object reachable through attributes and containers, each once."""
    seen: dict[int, Any] = {}
    stack = [root]
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, (*without, type, str, bytes, int, float)):
            continue
        seen[id(item)] = item
        if isinstance(item, dict):
            stack += item.values()
        elif isinstance(item, (list, tuple, set, frozenset)):
            stack += item
        elif not isinstance(item, np.ndarray):
            stack += getattr(item, "__dict__", {}).values()
    return list(seen.values())
