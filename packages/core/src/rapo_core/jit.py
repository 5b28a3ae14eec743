"""`kernel`: numba's njit with a disk cache that notices changes in all that a kernel takes in.

Kernels inline functions of other files (the field update, psi, the hash). The stamp by which the
cache knows a stale kernel is made in `kernel_stamp`.

The options leave out what nobody calls (C entry points, entry points of inlined functions) and what
nobody needs (reference counts where no array is made): a third of the time to compile otherwise.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from numba import extending, njit
from numba.core.event import Listener, register
from numba.core.registry import CPUDispatcher

from rapo_core.kernel_stamp import KernelIndex

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

intrinsic = cast(Decorator, extending.intrinsic)
"""Numba's `intrinsic`, whose own annotation hides the typing context from callers."""
type_callable = cast(Callable[[Function], Decorator], extending.type_callable)
lower_builtin = cast(Callable[..., Decorator], extending.lower_builtin)
"""Numba's own, with annotations."""

QUIET = "RAPO_QUIET"
"""Environment variable that, set to anything but 0, keeps the line about compiling away."""
MOMENT = 0.5
"""Seconds of compiling in a process after which the user is told about it."""


class _Announcer(Listener):
    """Tells the user, once per process, that our kernels are being compiled.

    Numba reports where each compilation begins and ends, those of inlined functions inside that of
    their kernel, and reports nothing for a kernel that its cache holds. All under numba's own lock.
    """

    def __init__(self) -> None:
        self.kernels: set[Function] = set()
        """The functions whose compilation counts; others belong to the user's own code."""
        self._depth, self._began, self._spent = 0, 0.0, 0.0
        self._silent = False

    def on_start(self, event: Any) -> None:
        """Begin to count if this is a kernel of ours."""
        if self._depth == 0:
            dispatcher = (event.data or {}).get("dispatcher")
            if getattr(dispatcher, "py_func", None) not in self.kernels:
                return
            self._began = time.perf_counter()
        self._depth += 1
        self._tell()

    def on_end(self, event: Any) -> None:
        """Add up what the kernel took."""
        if self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.perf_counter() - self._began
        else:
            self._tell()

    def _tell(self) -> None:
        """Write the line if this has taken a moment: between two functions, before the long end."""
        if self._silent or self._spent + time.perf_counter() - self._began < MOMENT:
            return
        self._silent = True
        if sys.stderr is None or os.environ.get(QUIET, "0") not in ("", "0"):
            return
        text = f"rapo: compiling its kernels for this machine (once, about 10 s; {QUIET}=1 hides"
        with suppress(OSError, ValueError):  # a stderr that nobody reads must not stop the work
            print(text, "this line)", file=sys.stderr, flush=True)


_announcer = _Announcer()
register("numba:compile", _announcer)  # type: ignore[no-untyped-call]


def kernel(function: Function) -> Function:
    """Compile `function` lazily with numba; release the GIL; cache on disk.

    `error_model="numpy"` drops Python's division-by-zero check, which would stop vectorisation.
    """
    return _kernel(function, counts_references=True)


def lean_kernel(function: Function) -> Function:
    """A `kernel` that makes no array, only views of those it is given: it compiles faster."""
    return _kernel(function, counts_references=False)


def _kernel(function: Function, counts_references: bool) -> Function:
    options: dict[str, Any] = {"no_cfunc_wrapper": True, "_nrt": counts_references}
    dispatcher = njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    cache: Any = getattr(dispatcher, "_cache", None)
    index = getattr(cache, "_cache_file", None)
    if index is not None:  # private to numba: absent means its own, narrower stamp stays in force
        cache._cache_file = KernelIndex(index, function)
    _announcer.kernels.add(function)
    return cast(Function, dispatcher)


class _Inlined(CPUDispatcher):
    """A function that kernels call. It has no entry point for Python, which runs it as Python."""

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)


def inlined(function: Function) -> Function:
    """Let kernels call a function that makes no array; LLVM inlines it, so it has no cache entry.

    Always: a call would copy every array's shape and strides to the stack, a tenth of a step.
    Unboxing the arguments from Python would take longer to compile than most of these functions.
    """
    options = {
        "nopython": True,
        "boundscheck": None,
        "error_model": "numpy",
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "_nrt": False,
        "forceinline": True,
    }
    return _Inlined(function, targetoptions=options)
