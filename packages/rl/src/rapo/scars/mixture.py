"""The kernels of `DensityField`: a few components that move, widen and merge, and queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.scars.dictionary import (
    closest_pair,
    distances_into,
    evolve,
    inflow_into,
    nearest,
    order_into,
)
from rapo.scars.field import REACH, VISIT
from rapo_core.jit import inlined, kernel

JOINED = 0.75
"""Distance in widths within which harm joins a component."""
SLENDER = 0.4
"""Width, in widths of a deposit, with which a query sees a component of a single point."""
PER_AXIS = 0.5
"""Share of the mean squared distance of a component's harm that widens its kernel: harm on a sheet
lies along two axes."""


@kernel
def query_mixture(
    M: Any, V: Any, G: Any, H: Any, count: Any, width: Any, points: Any, G_out: Any, H_out: Any
) -> None:
    """G and H (E, q) at points (E, q, d): means over components, each as wide as its harm.

    M (E, d, cap) are the means of components, V (E, cap) the mean squared distances of their harm.
    """
    squared = np.empty(M.shape[2])
    for e in range(points.shape[0]):
        for q in range(points.shape[1]):
            distances_into(M[e], count[e], points[e, q], squared)
            total, g, h = 0.0, 0.0, 0.0
            for c in range(count[e]):
                wide = (SLENDER * width) ** 2 + PER_AXIS * V[e, c]
                if squared[c] <= REACH * REACH * wide:
                    weight = np.exp(-0.5 * squared[c] / wide)
                    total += weight
                    g += weight * G[e, c]
                    h += weight * H[e, c]
            total = max(total, 1.0)
            G_out[e, q], H_out[e, q] = g / total, h / total


@inlined
def join(M: Any, V: Any, mass: Any, c: Any, point: Any, squared: Any, share: Any) -> None:
    """Add harm at a point, at squared distance `squared` from component c, to component c."""
    mass[c] += share
    part = share / mass[c]
    V[c] = (1 - part) * (V[c] + part * squared)
    for j in range(point.size):
        M[j, c] += part * (point[j] - M[j, c])


@inlined
def unite(M: Any, V: Any, mass: Any, G: Any, H: Any, a: Any, b: Any, squared: Any) -> None:
    """Let component a take over b: moments are weighted by mass, the larger fields stay."""
    part = mass[b] / (mass[a] + mass[b])
    V[a] = (1 - part) * V[a] + part * V[b] + part * (1 - part) * squared
    for j in range(M.shape[0]):
        M[j, a] += part * (M[j, b] - M[j, a])
    mass[a] += mass[b]
    G[a], H[a] = max(G[a], G[b]), max(H[a], H[b])


@kernel
def absorb(
    M: Any,
    V: Any,
    mass: Any,
    G: Any,
    H: Any,
    count: Any,
    spacing: Any,
    merges: Any,
    points: Any,
    shares: Any,
    width: Any,
    scar_cap: Any,
    rates: Any,
) -> None:
    """One step of all episodes, in place; arguments as in `dictionary.learn`, `query_mixture`.

    `mass` (E, cap) is the harm that a component has taken; rates: `FieldParams.rates`.
    """
    keep, alpha, delta, eta, tau = rates
    cap = M.shape[2]
    squared, inflow = np.empty(cap), np.empty(cap)
    order = np.empty(shares.shape[1], np.int64)
    for e in range(M.shape[0]):
        taken = order_into(points[e], shares[e], order)
        for i in range(taken):
            point, share, n = points[e, order[i]], shares[e, order[i]], count[e]
            if share <= VISIT:
                continue
            distances_into(M[e], n, point, squared)
            near = nearest(squared, n)
            slot = n
            if near >= 0 and squared[near] <= spacing[e]:
                join(M[e], V[e], mass[e], near, point, squared[near], share)
                continue
            if n < cap:
                count[e] += 1
            else:
                gap = squared[near]
                a, slot, least = closest_pair(M[e], n, squared)
                spacing[e] = max(spacing[e], min(least, gap))
                merges[e] += 1
                if least >= gap:
                    join(M[e], V[e], mass[e], near, point, gap, share)
                    continue
                unite(M[e], V[e], mass[e], G[e], H[e], a, slot, least)
            M[e, :, slot] = point
            mass[e, slot] = share
            V[e, slot], G[e, slot], H[e, slot] = 0.0, 0.0, 0.0
        n = count[e]
        inflow_into(M[e], n, points[e], shares[e], order[:taken], width, squared, inflow)
        evolve(G[e], H[e], n, inflow, keep, alpha, delta, eta, tau, scar_cap)
