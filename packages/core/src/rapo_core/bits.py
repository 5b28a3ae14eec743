"""Sets of small numbers as bits of uint64 words, inside kernels: 64 members a word, lowest first.

A loop over a set takes the lowest bit until no bit is left. Members come in ascending order, and
the cost follows the size of the set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from rapo_core.jit import inlined, intrinsic

BIT = np.uint64(1)
NONE = np.uint64(0)
_LAST = 63


@intrinsic
def lowest_bit(typingctx: Any, x: Any) -> Any:
    """Index of the lowest set bit of a uint64 that is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def bit_count(typingctx: Any, x: Any) -> Any:
    """Number of set bits of a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@inlined
def mark(members: Any, i: int) -> None:
    """Add `i` to a set."""
    members[i >> 6] |= BIT << np.uint64(i & _LAST)


@inlined
def unmark(members: Any, i: int) -> None:
    """Take `i` out of a set."""
    members[i >> 6] &= ~(BIT << np.uint64(i & _LAST))


@inlined
def marked(members: Any, i: int) -> Any:
    """1 if `i` is in a set, else 0."""
    return np.int64((members[i >> 6] >> np.uint64(i & _LAST)) & BIT)


def word_count(size: int) -> int:
    """Words that a set of numbers below `size` needs."""
    return -(-size // 64)


def packed(members: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """(..., words) sets from (..., size) truth values."""
    size = members.shape[-1]
    padded = np.zeros((*members.shape[:-1], word_count(size) * 64), np.bool_)
    padded[..., :size] = members
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint64)


def unpacked(sets: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.bool_]:
    """(..., size) truth values from (..., words) sets."""
    bits = np.unpackbits(sets.view(np.uint8), axis=-1, bitorder="little", count=size)
    return bits.view(np.bool_)
