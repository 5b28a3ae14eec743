"""Random numbers alone: the floor under any step that draws once per node.

Each candidate draws uniform float32 numbers and reduces them to a sum, so that nothing can be
optimised away. The fastest of them is the bar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, uint32

_NODE, _MUL1, _MUL2 = np.uint32(0x9E3779B9), np.uint32(0x21F0AAAD), np.uint32(0x735A2D97)


@njit(cache=True, fastmath=True, error_model="numpy")
def _hash_sum(k0: Any, k1: Any, nodes: int) -> Any:
    """Sum of the engine's draws for nodes 0..nodes - 1 under every pair of key words.

    fastmath lets LLVM reorder the sum, without which the loop is not vectorised.
    """
    total = np.float32(0)
    for e in range(k0.size):
        a, b = k0[e], k1[e]
        for v in range(nodes):
            x = uint32(a ^ uint32(uint32(v) * _NODE))
            x = uint32(uint32(x ^ uint32(x >> uint32(16))) * _MUL1)
            x = uint32(uint32(x ^ uint32(x >> uint32(15))) + b)
            x = uint32(x * _MUL2)
            x = uint32(x ^ uint32(x >> uint32(15)))
            total += np.float32(np.int32(x >> uint32(8))) * np.float32(2.0**-24)
    return total


def hash_kernel(nodes: int, episodes: int) -> Callable[[int], None]:
    """Draw with the engine's counter hash, in one numba loop per step."""
    rng = np.random.default_rng(0)
    k0, k1 = rng.integers(2**32, size=(2, episodes), dtype=np.uint32)

    def run(steps: int) -> None:
        for _ in range(steps):
            _hash_sum(k0, k1, nodes)

    return run


def numpy_kernel(
    nodes: int, episodes: int, bits: type[np.random.BitGenerator]
) -> Callable[[int], None]:
    """Draw with a NumPy generator into a buffer that stays in cache."""
    rng = np.random.Generator(bits(0))
    out = np.empty(nodes * episodes, np.float32)

    def run(steps: int) -> None:
        for _ in range(steps):
            rng.random(dtype=np.float32, out=out)
            out.sum()

    return run


def candidates(nodes: int, episodes: int) -> dict[str, Callable[[int], None]]:
    """Every kernel, drawing nodes x episodes numbers a step."""
    return {
        "counter hash (numba)": hash_kernel(nodes, episodes),
        "NumPy SFC64": numpy_kernel(nodes, episodes, np.random.SFC64),
        "NumPy PCG64": numpy_kernel(nodes, episodes, np.random.PCG64),
    }
