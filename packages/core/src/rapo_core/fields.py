"""The mathematics of harm memory, once: functions that every kernel inlines.

They work on a float64 (`HarmMemory`), a float32 or 32 of them side by side (the cascade engine,
see `rapo_core.lanes`); no other file has a copy. Constants are float32, which any float absorbs: a
Python float would turn single-precision arithmetic into double.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from rapo_core.jit import inlined, kernel
from rapo_core.lanes import FLOATS, two_to_minus, where, whole

HARM_PER_NODE = 0.1
"""Harm of one affected node; ten or more saturate at 1 (the paper's `min(0.1 k, 1)`)."""

_ZERO, _ONE = np.float32(0), np.float32(1)
_VANISHED = np.float32(1e-30)
"""A field below this is 0. Without it a decaying float32 trace ends in subnormal numbers, which
cost 100x on some processors; no conductance can tell the difference."""


@inlined
def harm_of(affected: Any, per_node: Any) -> Any:
    """Harm `c` in [0, 1] of a number of affected nodes."""
    value = per_node * affected
    return where(value < _ONE, value, _ONE)


@inlined
def share_of(count: Any, total: Any) -> Any:
    """Attribution weight of a region that holds `count` of `total` affected nodes; 0 of 0 is 0."""
    return count / where(total > _ZERO, total, _ONE)


@inlined
def next_trace(G: Any, inflow: Any, keep: Any) -> Any:
    """`G_{t+1} = (1 - lambda) G_t + alpha c_t w_t`, with keep = 1 - lambda, inflow = alpha c w."""
    value = keep * G + inflow
    return where(value > _VANISHED, value, _ZERO)


@inlined
def next_scar(H: Any, G: Any, delta: Any, eta: Any, tau: Any) -> Any:
    """`H_{t+1} = delta H_t + eta max(0, G_t - tau)`; uses the trace *before* its update."""
    excess = G - tau
    value = delta * H + eta * where(excess > _ZERO, excess, _ZERO)
    return where(value > _VANISHED, value, _ZERO)


def exp_negative(y: Any) -> Any:
    """`exp(-y)` for y >= 0; in single precision a polynomial with an error below 2 ulp."""
    return np.exp(-y)


@overload(exp_negative)
def _exp_negative(y: Any) -> Any:
    if y not in (types.float32, FLOATS):

        def exact(y: Any) -> Any:
            return np.exp(-y)

        return exact

    log2e, half, largest = np.float32(1.4426950408889634), np.float32(0.5), np.float32(87)
    ln2_high = np.float32(0.693359375)  # ln 2 in two parts, so that k ln 2 - y loses no digits
    ln2_low = np.float32(-2.12194440e-4)
    c2, c3, c4 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24)
    c5, c6, c7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)

    def fast(y: Any) -> Any:
        bounded = where(y < largest, y, largest)  # exp(-87) is about the last normal float32
        k = whole(bounded * log2e + half)
        r = (k * ln2_high - bounded) + k * ln2_low  # in [-ln2/2, ln2/2]
        poly = c4 + r * (c5 + r * (c6 + r * c7))
        poly = _ONE + r * (_ONE + r * (c2 + r * (c3 + r * poly)))
        return poly * two_to_minus(k)

    return fast


@inlined
def psi_of(G: Any, H: Any, w_G: Any, w_H: Any, psi_min: Any) -> Any:
    """`psi = clip(exp(-w_G G - w_H H), psi_min, 1)`; exactly 1 where both fields are 0."""
    value = exp_negative(w_G * G + w_H * H)
    return where(value > psi_min, value, psi_min)


@kernel
def harm_and_shares(affected: Any, per_node: Any, harm: Any, shares: Any) -> None:
    """Harm (B,) and attribution (B, R) of affected counts (B, R), all of one dtype."""
    for b in range(affected.shape[0]):
        total = affected[b, 0]
        for r in range(1, affected.shape[1]):
            total += affected[b, r]
        harm[b] = harm_of(total, per_node)
        for r in range(affected.shape[1]):
            shares[b, r] = share_of(affected[b, r], total)


@kernel
def step_fields(
    G: Any, H: Any, harm: Any, weights: Any, keep: Any, alpha: Any, delta: Any, eta: Any, tau: Any,
    next_G: Any, next_H: Any,
) -> None:  # fmt: skip
    """One update of all episodes. G, H, weights: (B, R); harm: (B,); one dtype.

    `next_G` and `next_H` are filled; they may be G and H themselves.
    """
    for b in range(G.shape[0]):
        gain = alpha * harm[b]
        for r in range(G.shape[1]):
            trace = G[b, r]
            next_H[b, r] = next_scar(H[b, r], trace, delta, eta, tau)
            next_G[b, r] = next_trace(trace, gain * weights[b, r], keep)


@kernel
def conductance_into(G: Any, H: Any, w_G: Any, w_H: Any, psi_min: Any, out: Any) -> None:
    """`psi` of every element; G, H, out: (N,) of one dtype, the constants of the same."""
    for i in range(G.size):
        out[i] = psi_of(G[i], H[i], w_G, w_H, psi_min)
