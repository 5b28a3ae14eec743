"""Counter-based randomness: a draw is a pure function of (episode key, step, node).

No stream, no state: a trajectory depends on its key alone, whatever the batch, the thread or the
backend, and two runs are coupled by giving them the same key. 64 bits of key enter every draw,
hashed first: neighbouring episode numbers must not give neighbouring words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.jit import inlined, kernel
from rapo.core.lanes import unit, word

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
def low_word(x: Any) -> Any:
    """Lower 32 bits of a uint64."""
    return np.uint32(x)


@inlined
def high_word(x: Any) -> Any:
    """Upper 32 bits of a uint64."""
    return np.uint32(x >> _S32)


@inlined
def node_word(node: Any) -> Any:
    """The word by which a node enters its draws."""
    return word(np.uint32(node) * _NODE)


@inlined
def draw(k0: Any, k1: Any, node: Any) -> Any:
    """Uniform float32 in [0, 1) on a grid of 2^-24, from the two words of a key and a `node_word`.

    Two rounds of multiply and xor-shift with the second key word added in between; scalars or
    lanes.
    """
    x = word(k0 ^ node)
    x = word(word(x ^ word(x >> _S16)) * _MUL1)
    x = word(word(x ^ word(x >> _S15)) + k1)
    x = word(x * _MUL2)
    return unit(word(x ^ word(x >> _S15)))


@kernel
def _uniform(keys: Any, counters: Any, nodes: Any, out: Any) -> None:
    for i in range(out.size):
        x = mix(keys[i], counters[i])
        out[i] = draw(low_word(x), high_word(x), node_word(nodes[i]))


@kernel
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
    _uniform(k.flatten(), c.flatten(), v.flatten(), out.reshape(-1))
    return out


def derive(keys: npt.ArrayLike, counters: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Independent uint64 keys from keys and counters (seed and episode, episode and phase, ...)."""
    k, c = np.broadcast_arrays(np.asarray(keys, np.uint64), np.asarray(counters, np.uint64))
    out = np.empty(k.shape, np.uint64)
    _derive(k.flatten(), c.flatten(), out.reshape(-1))
    return out
