"""The kernels of `KernelField`: centres that learn and merge, and queries.

Centres are stored as (d, cap), so that the distances of a point to all centres are `d` vectorised
passes. The points of a step are sorted (harm before visits, then by coordinate), so the order in
which a caller names them does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.scars.field import NOTHING, REACH, VISIT
from rapo_core.fields import next_scar, next_trace, psi_of
from rapo_core.jit import inlined, kernel

NARROWER = 3.0
"""How many times narrower the kernel of a query is than that of a deposit."""
NOVELTY = 0.5
"""A point becomes a centre if it is more than this many widths from every centre."""
FULL_WEIGHT = float(np.exp(-0.5 * (NARROWER * NOVELTY) ** 2))
"""Sum of query weights from which a value counts in full: that of one centre at NOVELTY."""
NOTICED = 0.02
"""A harmless visit becomes a centre only where psi is below 1 by more than this: elsewhere psi is
about 1 without a centre too."""


@inlined
def distances_into(C: Any, n: Any, point: Any, out: Any) -> None:
    """Squared distances (n,) from a point (d,) to the first n centres of C (d, cap)."""
    for c in range(n):
        out[c] = 0.0
    for j in range(point.size):
        at = point[j]
        row = C[j]
        for c in range(n):
            gap = row[c] - at
            out[c] += gap * gap


@inlined
def nearest(squared: Any, n: Any) -> Any:
    """Index of the least of n squared distances, the first of equal ones; -1 if n is 0."""
    near = -1
    for c in range(n):
        if near < 0 or squared[c] < squared[near]:
            near = c
    return near


@inlined
def blend(squared: Any, n: Any, G: Any, H: Any, narrow: Any) -> Any:
    """Means of G and H (n,) under the narrow kernel; they fade to 0 away from every centre.

    Square roots are averaged and the mean is squared: a plain mean is too high at a steep border.
    """
    reach, scale = (REACH * narrow) ** 2, -0.5 / (narrow * narrow)
    total, g, h = 0.0, 0.0, 0.0
    for c in range(n):
        if squared[c] <= reach:
            weight = np.exp(scale * squared[c])
            total += weight
            g += weight * np.sqrt(G[c])
            h += weight * np.sqrt(H[c])
    total = max(total, FULL_WEIGHT)
    return (g / total) ** 2, (h / total) ** 2


@kernel
def query(
    C: Any, G: Any, H: Any, count: Any, width: Any, points: Any, G_out: Any, H_out: Any
) -> None:
    """G and H (E, q) at points (E, q, d); C (E, d, cap), G and H (E, cap), count (E,)."""
    squared = np.empty(C.shape[2])
    for e in range(points.shape[0]):
        for q in range(points.shape[1]):
            distances_into(C[e], count[e], points[e, q], squared)
            g, h = blend(squared, count[e], G[e], H[e], width / NARROWER)
            G_out[e, q], H_out[e, q] = g, h


@inlined
def comes_before(points: Any, shares: Any, i: Any, j: Any) -> Any:
    """Whether point i comes before point j: harm first, then by coordinates, then by share."""
    harm_i, harm_j = shares[i] > VISIT, shares[j] > VISIT
    if harm_i != harm_j:
        return harm_i
    for k in range(points.shape[1]):
        if points[i, k] != points[j, k]:
            return points[i, k] < points[j, k]
    return shares[i] < shares[j]


@inlined
def order_into(points: Any, shares: Any, order: Any) -> Any:
    """Fill `order` with the sorted indices of points that are not `NOTHING`; their number."""
    n = 0
    for i in range(shares.size):
        if shares[i] != NOTHING:
            place = n
            while place > 0 and comes_before(points, shares, i, order[place - 1]):
                order[place] = order[place - 1]
                place -= 1
            order[place] = i
            n += 1
    return n


@inlined
def closest_pair(C: Any, n: Any, squared: Any) -> Any:
    """Indices of the two nearest of the first n centres, and their squared distance."""
    least, first, second = np.inf, 0, 0
    for a in range(1, n):
        distances_into(C, a, C[:, a], squared)
        for b in range(a):
            if squared[b] < least:
                least, first, second = squared[b], b, a
    return first, second, least


@inlined
def free_slot(C: Any, G: Any, H: Any, gap: Any, near: Any, harmful: Any, squared: Any) -> Any:
    """Free a slot of a full dictionary for a point at squared distance `gap` from all centres.

    The two nearest centres merge: the more scarred stays in its place and gets the larger trace, so
    no scar falls. If the point is nearer to a centre than any two centres are, a harmful point
    takes the slot of that centre if the centre is unharmed; otherwise the point is dropped, since
    its deposit reaches the neighbouring centres anyway.

    Returns:
        The slot, -1 for none, and the squared distance of the two nearest. No two centres will be
        nearer again: a later point that is nearer to a centre needs no search.
    """
    a, b, least = closest_pair(C, C.shape[1], squared)
    if least >= gap:
        clean = harmful and G[near] == 0 and H[near] == 0
        return (near if clean else -1), gap
    if H[b] > H[a] or (H[b] == H[a] and G[b] > G[a]):
        a, b = b, a
    G[a] = max(G[a], G[b])
    return b, least


@inlined
def spread_into(C: Any, n: Any, point: Any, share: Any, width: Any, squared: Any, out: Any) -> None:
    """Add the inflow from a deposit to each of the first n centres."""
    distances_into(C, n, point, squared)
    reach, scale = (REACH * width) ** 2, -0.5 / (width * width)
    for c in range(n):
        if squared[c] <= reach:
            out[c] += share * np.exp(scale * squared[c])


@inlined
def inflow_into(
    C: Any, n: Any, points: Any, shares: Any, order: Any, width: Any, squared: Any, out: Any
) -> None:
    """Fill the inflow to the first n centres from harm at points (k, d), in the given order."""
    for c in range(n):
        out[c] = 0.0
    for i in order:
        if shares[i] > VISIT:
            spread_into(C, n, points[i], shares[i], width, squared, out)


@inlined
def evolve(
    G: Any, H: Any, n: Any, inflow: Any, keep: Any, alpha: Any, delta: Any, eta: Any, tau: Any,
    scar_cap: Any,
) -> None:  # fmt: skip
    """The core's step of the first n centres: H from the old trace, then G."""
    for c in range(n):
        H[c] = min(next_scar(H[c], G[c], delta, eta, tau), scar_cap)
        G[c] = next_trace(G[c], alpha * inflow[c], keep)


@kernel
def learn(
    C: Any,
    G: Any,
    H: Any,
    count: Any,
    spacing: Any,
    merges: Any,
    points: Any,
    shares: Any,
    width: Any,
    scar_cap: Any,
    law: Any,
) -> None:
    """One step of all episodes, in place.

    Args:
        C: centres, (E, d, cap).
        G: trace per centre, (E, cap).
        H: scar per centre, (E, cap).
        count: centres in use, (E,).
        spacing: squared distance from every centre beyond which a point becomes a centre, (E,).
        merges: how often two centres have merged, (E,).
        points: (E, n, d) in the unit cube.
        shares: harm of each point, (E, n); or `VISIT`, or `NOTHING`.
        width: of a deposit.
        scar_cap: largest H.
        law: `FieldParams.rates`, then w_G, w_H and psi_min.
    """
    keep, alpha, delta, eta, tau, w_G, w_H, psi_min = law
    cap = C.shape[2]
    squared, inflow = np.empty(cap), np.empty(cap)
    order = np.empty(shares.shape[1], np.int64)
    for e in range(C.shape[0]):
        taken = order_into(points[e], shares[e], order)
        for i in range(taken):
            point, harmful, n = points[e, order[i]], shares[e, order[i]] > VISIT, count[e]
            distances_into(C[e], n, point, squared)
            near = nearest(squared, n)
            if near >= 0 and squared[near] <= spacing[e]:
                continue
            g, h = blend(squared, n, G[e], H[e], width / NARROWER)
            if not harmful:
                if psi_of(g, h, w_G, w_H, psi_min) > 1 - NOTICED:
                    continue
                g, h = 0.0, 0.0  # only harm inherits: visits that did would let scars creep
            slot = n
            if n < cap:
                count[e] += 1
            else:
                slot, least = free_slot(C[e], G[e], H[e], squared[near], near, harmful, squared)
                spacing[e] = max(spacing[e], least)
                merges[e] += 1
            if slot >= 0:
                C[e, :, slot] = point
                G[e, slot], H[e, slot] = g, h
        n = count[e]
        inflow_into(C[e], n, points[e], shares[e], order[:taken], width, squared, inflow)
        evolve(G[e], H[e], n, inflow, keep, alpha, delta, eta, tau, scar_cap)
