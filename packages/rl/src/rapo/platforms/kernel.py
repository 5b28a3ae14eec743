"""One step of all walkers: psi of their candidates, the deformed law, a keyed draw, and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.cascade.draws import draw, words_of
from rapo_core.deformation import SUM_TOLERANCE
from rapo_core.fields import psi_of
from rapo_core.jit import inlined, lean_kernel

FINE, NEGATIVE, NO_SUM, EMPTY, UNKNOWN, NOWHERE, NO_PSI = range(7)
"""Faults: none; a `P0` below 0 or NaN; a row of `P0` that does not sum to 1; a moving walker that
has no candidates; an unknown region; harm that lies in no region; a psi outside (0, 1]."""

MOVING, SERVED, ENTRY_NOMINAL, ENTRY_DEFORMED, ODDS, ODDS_MASS, GATED = range(7)
STAY, STAY_DEFORMED = 7, 8
"""Rows of the (9, E) float64 array `stats`. The first seven are sums over the moving walkers: their
number; the mass that psi lets through; the probability of harmful entry under `P0` and as sampled;
the change of the odds of entry, weighted by the nominal probability, and these weights; the walkers
with psi < 1 on a candidate. The last two are products over walkers: the probability that nobody
enters a harmful place, under `P0` and as sampled."""
STATS = STAY_DEFORMED + 1

W_G, W_H, PSI_MIN = range(3)
"""Elements of the (3,) float64 array `weights`."""


@inlined
def _outside_top(p0: Any, e: int, w: int, k: int, top: int) -> Any:
    """Whether `top` candidates are more probable than k; of equal ones the first counts as more."""
    before = 0
    for j in range(p0.shape[2]):
        if p0[e, w, j] > p0[e, w, k] or (p0[e, w, j] == p0[e, w, k] and j < k):
            before += 1
    return before >= top


@inlined
def _only_top(p0: Any, psi: Any, e: int, w: int, top: int) -> None:
    """Set psi of one walker's candidates to 1, but for the `top` most probable."""
    for k in range(p0.shape[2]):
        if _outside_top(p0, e, w, k, top):
            psi[k] = 1.0


@inlined
def _choose(
    p0: Any, psi: Any, harmful: Any, e: int, w: int, top: int, k0: Any, k1: Any, choice: Any,
    stats: Any,
) -> Any:  # fmt: skip
    """Draw the candidate of one walker and add to `stats`; returns the fault, or `FINE`.

    psi: (K,) of the walker's candidates, written over. harmful: (E, m, K), or of size 0 where the
    platform does not tell it. k0, k1: words of the episode's key and step.
    """
    if top > 0:
        _only_top(p0, psi, e, w, top)
    u = draw(k0, k1, w)  # not before `_only_top`: the loops would compile to a third more time
    with_harm, sound, gated = harmful.size > 0, True, False
    total = passed = inside = inside_passed = 0.0
    for k in range(p0.shape[2]):  # without branches: a wrong guess costs more than a candidate
        p, s = p0[e, w, k], psi[k]
        entering = p if with_harm and harmful[e, w, k] else 0.0
        sound &= p >= 0
        gated |= p * s < p
        total += p
        passed += p * s
        psi[k] = passed
        inside += entering
        inside_passed += entering * s
    if not sound:
        return NEGATIVE
    if total == 0:
        return EMPTY
    if not abs(total - 1) <= SUM_TOLERANCE:
        return NO_SUM
    edge, picked = u * passed, 0
    for k in range(p0.shape[2]):  # a pad adds nothing to the sum before it, so none is picked
        picked += psi[k] <= edge
    choice[e, w] = picked
    entered = inside_passed / passed
    stats[MOVING, e] += 1
    stats[SERVED, e] += passed
    stats[GATED, e] += gated
    stats[ENTRY_NOMINAL, e] += inside
    stats[ENTRY_DEFORMED, e] += entered
    stats[STAY, e] *= 1 - inside
    stats[STAY_DEFORMED, e] *= 1 - entered
    if 0 < inside < total:  # the sums of harmful rows are equal, term by term
        stats[ODDS, e] += inside_passed / ((passed - inside_passed) / (total - inside))
        stats[ODDS_MASS, e] += inside
    return FINE


@inlined
def _clear(e: int, stats: Any) -> None:
    for i in range(STATS):
        stats[i, e] = 0.0
    stats[STAY, e] = stats[STAY_DEFORMED, e] = 1.0


@inlined
def _count_harm(weight: Any, where: Any, e: int, affected: Any) -> Any:
    """Count harmed walkers per region, each shared by its regions; the first fault, its walker."""
    for r in range(affected.shape[1]):
        affected[e, r] = 0.0
    for w in range(weight.shape[1]):
        if weight[e, w] > 0:
            regions = 0
            for i in range(where.shape[2]):
                if where[e, w, i] >= affected.shape[1] or where[e, w, i] < -1:
                    return UNKNOWN, w
                regions += where[e, w, i] >= 0
            if regions == 0:
                return NOWHERE, w
            for i in range(where.shape[2]):
                if where[e, w, i] >= 0:
                    affected[e, where[e, w, i]] += weight[e, w] / regions
    return FINE, 0


@lean_kernel
def count_harm(weight: Any, where: Any, affected: Any) -> tuple[int, int, int]:
    """Harmed walkers per region (E, R), from weights (E, m) in regions (E, m, L), -1 for none.

    Returns:
        The fault, its episode and its walker; `FINE` if there is none.
    """
    for e in range(weight.shape[0]):
        fault, w = _count_harm(weight, where, e, affected)
        if fault != FINE:
            return fault, e, w
    return FINE, 0, 0


@inlined
def _routes(where: Any, e: int, w: int, table: Any, least: Any, psi: Any) -> Any:
    """Fill psi (K,) of candidates that cross several regions; whether all regions exist."""
    exist, regions = True, table.size - 1
    for k in range(where.shape[2]):
        through = 1.0
        for i in range(where.shape[3]):
            r = where[e, w, k, i]
            exist &= -1 <= r < regions
            through *= table[r if 0 <= r < regions else regions]
        psi[k] = max(through, least)
    return exist


@lean_kernel
def choose_by_region(
    p0: Any, where: Any, harmful: Any, moving: Any, G: Any, H: Any, never_gated: Any,
    weights: Any, gated: Any, keys: Any, clock: Any, top: int, table: Any, psi: Any, choice: Any,
    stats: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """Choices (E, m) of walkers whose candidates lie in regions.

    Args:
        p0: (E, m, K) float64.
        where: (E, m, K, L) regions that a candidate crosses, -1 for pads; their psi are multiplied.
        harmful: bool (E, m, K), or of size 0 where the platform does not tell it.
        moving: bool (E, m), walkers that choose; the choice of others is -1.
        G: (E, R) trace.
        H: (E, R) scar.
        never_gated: bool (R,), regions that are never deformed.
        weights: w_G, w_H, psi_min.
        gated: bool (E,), whether an episode is deformed now.
        keys: (E,) uint64 of the present phase.
        clock: (E,) int64 step within it.
        top: deform only so many of the most probable candidates; 0 for all.
        table: (R + 1,) room for psi of regions.
        psi: (K,) room for psi of candidates.
        choice: (E, m) int64, filled.
        stats: (STATS, E) float64, filled.

    Returns:
        The fault, its episode and its walker; `FINE` if there is none.
    """
    regions = G.shape[1]
    for e in range(p0.shape[0]):
        _clear(e, stats)
        for r in range(regions):
            table[r] = 1.0
            harmed = G[e, r] > 0 or H[e, r] > 0  # elsewhere psi is 1 without asking `exp`
            if harmed and gated[e] and not never_gated[r]:
                table[r] = psi_of(G[e, r], H[e, r], weights[W_G], weights[W_H], weights[PSI_MIN])
        table[regions] = 1.0  # of candidates that lie in none
        k0, k1 = words_of(keys[e], clock[e])
        for w in range(p0.shape[1]):
            choice[e, w] = -1
            if not moving[e, w]:
                continue
            exist = True
            if where.shape[3] == 1:  # the usual case, twice as fast without the inner loop
                for k in range(p0.shape[2]):
                    r = where[e, w, k, 0]
                    exist &= -1 <= r < regions
                    psi[k] = table[r if 0 <= r < regions else regions]
            else:
                exist = _routes(where, e, w, table, weights[PSI_MIN], psi)
            if not exist:
                return UNKNOWN, e, w
            fault = _choose(p0, psi, harmful, e, w, top, k0, k1, choice, stats)
            if fault != FINE:
                return fault, e, w
    return FINE, 0, 0


@lean_kernel
def choose_by_psi(
    p0: Any, conductance: Any, harmful: Any, moving: Any, gated: Any, keys: Any, clock: Any,
    top: int, psi: Any, choice: Any, stats: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """The same from the psi of every candidate, `conductance`, (E, m, K) float64."""
    for e in range(p0.shape[0]):
        _clear(e, stats)
        k0, k1 = words_of(keys[e], clock[e])
        for w in range(p0.shape[1]):
            choice[e, w] = -1
            if not moving[e, w]:
                continue
            for k in range(p0.shape[2]):
                psi[k] = conductance[e, w, k] if gated[e] else 1.0
                if not 0 < psi[k] <= 1:
                    return NO_PSI, e, w
            fault = _choose(p0, psi, harmful, e, w, top, k0, k1, choice, stats)
            if fault != FINE:
                return fault, e, w
    return FINE, 0, 0


@lean_kernel
def draws_into(keys: Any, clock: Any, first: int, out: Any) -> None:
    """Uniform draws (E, m, n) of all walkers: numbers `first`, `first + m`, ... of this step."""
    walkers = out.shape[1]
    for e in range(out.shape[0]):
        k0, k1 = words_of(keys[e], clock[e])
        for w in range(walkers):
            for j in range(out.shape[2]):
                out[e, w, j] = draw(k0, k1, np.int64(first + j * walkers + w))
