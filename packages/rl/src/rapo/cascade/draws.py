"""Counter-based randomness: a draw is a pure function of (episode key, step, node).

No stream, no state: a trajectory depends on its key alone, whatever the batch, the thread or the
backend, and two runs are coupled by giving them the same key. 64 bits of key enter every draw,
hashed first: neighbouring episode numbers must not give neighbouring words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.jit import inlined, lean_kernel
from rapo_core.lanes import unit, word

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)

_NODE = np.uint32(0x9E3779B9)
_MUL1, _MUL2 = np.uint32(0x21F0AAAD), np.uint32(0x735A2D97)
_S15, _S16 = np.uint32(15), np.uint32(16)

ACTION = 0xFFFFFFFF
"""Node number of the draw that picks an action."""
STIMULUS = 0xFFFFFFFE
"""Node number of the draw that picks a stimulus."""


@inlined
def mix(key: Any, counter: Any) -> Any:
    """A uint64 hash of a uint64 key and a counter (the splitmix64 finaliser)."""
    x = np.uint64(key) + (np.uint64(counter) + np.uint64(1)) * _GOLDEN
    x = (x ^ (x >> _S30)) * _MIX1
    x = (x ^ (x >> _S27)) * _MIX2
    return x ^ (x >> _S31)


@inlined
def words_of(key: Any, counter: Any) -> tuple[Any, Any]:
    """`mix` as two uint32, the lower half first: the words that all draws of a step share."""
    x = mix(key, counter)
    return np.uint32(x), np.uint32(x >> _S32)


@inlined
def draw(k0: Any, k1: Any, node: Any) -> Any:
    """Uniform float32 in [0, 1) on a grid of 2^-24, from the two words of a step and a node number.

    Two rounds of multiply and xor-shift with the second word added in between; scalars or lanes of
    words, one node.
    """
    x = word(k0 ^ word(np.uint32(node) * _NODE))
    x = word(word(x ^ word(x >> _S16)) * _MUL1)
    x = word(word(x ^ word(x >> _S15)) + k1)
    x = word(x * _MUL2)
    return unit(word(x ^ word(x >> _S15)))


@lean_kernel
def _uniform(keys: Any, counters: Any, nodes: Any, out: Any) -> None:
    for i in range(out.size):
        k0, k1 = words_of(keys[i], counters[i])
        out[i] = draw(k0, k1, nodes[i])


@lean_kernel
def _derive(keys: Any, counters: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = mix(keys[i], counters[i])


def uniform(
    keys: npt.ArrayLike, counters: npt.ArrayLike, nodes: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """The engine's draws: float32 in [0, 1) for each (key, step counter, node), broadcast."""
    k, c, v = np.broadcast_arrays(
        np.asarray(keys, np.uint64), np.asarray(counters, np.uint64), np.asarray(nodes, np.uint32)
    )
    out = np.empty(k.shape, np.float32)
    _uniform(k.flatten(), _as_engine(c), v.flatten(), out.reshape(-1))
    return out


def derive(keys: npt.ArrayLike, counters: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Independent uint64 keys from keys and counters (seed and episode, episode and phase, ...)."""
    k, c = np.broadcast_arrays(np.asarray(keys, np.uint64), np.asarray(counters, np.uint64))
    out = np.empty(k.shape, np.uint64)
    _derive(k.flatten(), _as_engine(c), out.reshape(-1))
    return out


def _as_engine(counters: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The same 64 bits as int64, as the engine counts steps: `mix` is compiled for one type."""
    return counters.flatten().view(np.int64)
