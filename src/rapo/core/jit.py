"""`kernel`: numba's njit with a disk cache that notices changes in *every* kernel file.

Numba stamps a cached kernel with its own source file only. Ours inline scalar functions from
other files (the field update, psi, the hash), so an edit or an upgrade there would be served from a
stale cache. The stamp used here covers `core` and `cascade`; kernels elsewhere inline nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from numba import extending, njit

Function = Callable[..., Any]

intrinsic = cast(Callable[[Function], Function], extending.intrinsic)
"""Numba's `intrinsic`, whose own annotation hides the typing context from callers."""

_PACKAGE = Path(__file__).resolve().parent.parent
_FOLDERS_WITH_KERNELS = ("core", "cascade")


@lru_cache(maxsize=1)
def _stamp() -> tuple[tuple[str, float, int], ...]:
    """(relative name, mtime, size) of every Python file that may hold a kernel."""
    files = sorted(f for folder in _FOLDERS_WITH_KERNELS for f in (_PACKAGE / folder).rglob("*.py"))
    return tuple((str(f.relative_to(_PACKAGE)), f.stat().st_mtime, f.stat().st_size) for f in files)


def kernel(function: Function) -> Function:
    """Compile `function` lazily with numba; release the GIL; cache on disk.

    `error_model="numpy"` drops Python's division-by-zero check, which would stop vectorisation.
    """
    dispatcher = njit(cache=True, nogil=True, error_model="numpy")(function)
    index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if index is not None:  # private to numba: absent means its own, narrower stamp stays in force
        index._source_stamp = (index._source_stamp, _stamp())
    return cast(Function, dispatcher)


def inlined(function: Function) -> Function:
    """Compile a scalar function that kernels call; LLVM inlines it, so it has no cache entry."""
    return cast(Function, njit(nogil=True, error_model="numpy")(function))
