"""What compiled code was made from: the stamp by which a cached kernel is known to be stale.

Numba stamps a cached kernel with the kernel's own source file. A kernel also takes in functions and
constants of other modules, and an edit of those would be served from a stale cache. `stamp_of`
follows the names that the kernel's code refers to, and the names in what they stand for, so every
file and every constant that can change the machine code is part of the stamp, and no other file is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

Stamp = tuple[tuple[str, ...], ...]
_Intrinsic: Any = type(intrinsic(lambda typingctx: None))
_CONSTANTS = (int, float, complex, str, bytes, type(None), np.generic, np.dtype, types.Type)
_DECORATORS = f"{__package__}.jit"


class KernelIndex(IndexDataCacheFile):
    """The index of a kernel's cached versions, stamped with all that the kernel is made from.

    Numba asks for the stamp when the kernel is first called: by then every name that the kernel
    uses is defined, also one that its module defines later than the kernel.
    """

    def __init__(self, index: Any, function: Callable[..., Any]) -> None:
        self.__dict__.update(index.__dict__)
        self._function = function

    @property
    def _source_stamp(self) -> tuple[object, Stamp]:
        return self.__dict__["_source_stamp"], stamp_of(self._function)


@cache
def stamp_of(function: Callable[..., Any]) -> Stamp:
    """Files (module, time, size) and constants (function, value) that a kernel is compiled from.

    The stamp of a process is made once: an edit during the process does not change its functions.
    """
    modules, constants = {_DECORATORS}, set()
    waiting, seen = [function], {function}
    while waiting:
        user = waiting.pop()
        modules.add(user.__module__)
        for value in _values_used_by(user):
            if _is_constant(value):
                constants.add((f"{user.__module__}.{user.__qualname__}", _text_of(value)))
            for part in _sources_of(value):
                modules.add(part.__module__)
                if isinstance(part, FunctionType) and part not in seen:
                    seen.add(part)
                    waiting.append(part)
    return (*map(file_stamp, sorted(modules)), *sorted(constants))


def file_stamp(module: str) -> tuple[str, ...]:
    """Name, time of change and size of the file of an imported module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not Path(file).is_file():
        return (module,)
    status = Path(file).stat()
    return module, str(status.st_mtime_ns), str(status.st_size)


def _values_used_by(function: Callable[..., Any]) -> Iterator[object]:
    """The values behind all names in a function's code, in functions inside it, in its closure."""
    codes, names = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield value
        if isinstance(value, ModuleType) and _is_ours(value.__name__):
            yield from (getattr(value, part) for part in names if hasattr(value, part))
    for cell in function.__closure__ or ():
        yield cell.cell_contents


def _sources_of(value: object) -> Iterator[Any]:
    """The functions and classes whose files decide what numba makes of a value.

    Numba replaces a plain function by what is registered for it (`overload`, `lower_builtin`), and
    finds operators by the types of their operands. Neither is visible by name, but both are in the
    module of the function or of the type: all functions of that module count.
    """
    if isinstance(value, Dispatcher):
        yield value.py_func
    elif isinstance(value, _Intrinsic):
        yield value._defn
        yield from _functions_of(value._defn.__module__)
    elif isinstance(value, tuple):
        for item in value:
            yield from _sources_of(item)
    elif isinstance(value, FunctionType | type) and _is_ours(value.__module__):
        yield value
        yield from _functions_of(value.__module__)
    elif _is_ours(type(value).__module__):
        yield type(value)
        yield from _functions_of(type(value).__module__)


def _functions_of(module: str) -> Iterator[FunctionType]:
    for value in vars(sys.modules[module]).values():
        if isinstance(value, FunctionType) and value.__module__ == module:
            yield value


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("rapo", "rapo_core", "rapo_gate")


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, (*_CONSTANTS, np.ndarray))


def _text_of(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    return repr(value)
