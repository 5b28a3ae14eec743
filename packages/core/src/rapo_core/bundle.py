"""Many arrays as one argument of a kernel.

Numba looks at every array of every call to find its type and its memory: some 60 ns each, which for
the thirty arrays of the engine is a third of a step of 64 episodes. A `Bundle` holds the arrays and
a table of where they are; the kernel gets the table and makes its own views of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.np import arrayobj as untyped_arrayobj

from rapo_core.jit import intrinsic

arrayobj: Any = untyped_arrayobj


def kinds_of(*kinds: Any) -> Any:
    """The numba `Tuple` of some C-contiguous array types."""
    tuple_of: Any = types.Tuple
    return tuple_of(kinds)


class Bundle:
    """Arrays whose memory a kernel may use for as long as this object lives.

    Copies, pickled or not, point to their own arrays.

    Args:
        kinds: from `kinds_of`.
        arrays: one of each.
    """

    def __init__(self, kinds: Any, arrays: Sequence[npt.NDArray[Any]]) -> None:
        for i, (kind, array) in enumerate(zip(kinds, arrays, strict=True)):
            same = (array.dtype.name, array.ndim) == (kind.dtype.name, kind.ndim)
            if not same or not array.flags.c_contiguous:
                raise TypeError(f"array {i} must be {kind}, got {array.dtype} {array.shape}")
        self.__setstate__(tuple(arrays))

    def replace(self, i: int, array: npt.NDArray[Any]) -> None:
        """Use another array of the same type and shape in place of array `i`."""
        old = self._arrays[i]
        same = (array.dtype, array.shape) == (old.dtype, old.shape)
        if not same or not array.flags.c_contiguous:
            raise TypeError(f"array {i} must be {old.dtype} {old.shape}, got {array.dtype}")
        self.__setstate__((*self._arrays[:i], array, *self._arrays[i + 1 :]))

    def __getstate__(self) -> tuple[npt.NDArray[Any], ...]:
        return self._arrays

    def __setstate__(self, arrays: tuple[npt.NDArray[Any], ...]) -> None:
        self._arrays = arrays
        self.table = np.array([n for a in arrays for n in (a.ctypes.data, *a.shape)], np.int64)
        """Address and shape of each array, end to end."""


@intrinsic
def unbundled(typingctx: Any, table: Any, kinds: Any) -> Any:
    """The arrays of a bundle as a tuple, from its table and the kinds it was made with."""
    wanted = kinds.instance_type

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = context.make_array(signature.args[0])(context, builder, args[0]).data
        intp = context.get_value_type(types.intp)

        def word(i: int) -> Any:
            return builder.load(builder.gep(rows, [ir.Constant(intp, i)]))

        views, at = [], 0
        for kind in wanted:
            view = context.make_array(kind)(context, builder)
            item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            shape = [word(at + 1 + axis) for axis in range(kind.ndim)]
            strides = [ir.Constant(intp, item)]
            for size in shape[:0:-1]:
                strides.insert(0, builder.mul(size, strides[0]))
            arrayobj.populate_array(
                view,
                data=builder.inttoptr(word(at), view.data.type),
                shape=shape,
                strides=strides,
                itemsize=ir.Constant(intp, item),
                meminfo=None,
            )
            views.append(view._getvalue())
            at += 1 + kind.ndim
        return context.make_tuple(builder, wanted, views)

    return wanted(table, kinds), codegen
