"""The cascade step for 32 episodes side by side, pulling over in-edges.

For many episodes on one graph: an edge costs a few vector operations for 32 episodes, and nothing
when its source is active in none of them. The other backend is `push_kernel`; both follow
`reference` operation by operation and agree bit by bit.

Arrays of a block are flat: element (i, lane) of a table is at `32 i + lane`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.cascade import stats as row
from rapo.cascade.clock import (
    CLOCK,
    GATED,
    INJECTING,
    PHASE,
    PHASE_KEY,
    advance_clock,
    injection_code,
)
from rapo.cascade.rng import draw, words_of
from rapo.cascade.stats import centroid_and_spread
from rapo.core.fields import harm_of, next_scar, next_trace, psi_of, share_of
from rapo.core.jit import inlined, lean_kernel
from rapo.core.lanes import LANES, bits_of, fused, load, store, where

_ZERO, _ONE = np.float32(0), np.float32(1)
_NONE = np.uint32(0)
_REACH, _X, _Y, _SQUARES, _SENSITIVE, _NOMINAL, _DEFORMED, _STAY, _PARTITION, _SERVED = range(10)
SUMS = 10
"""Rows of the running sums of a step."""


@inlined
def _lay_injection(code: int, before: int, lane: int, slot: Any, miss: Any, lanes: Any) -> None:
    """Rewrite one lane's `1 - b` after its stimulus, action or phase changed.

    slot: (Z, k) row of each seed in `lanes`; miss: (Z, 3, k) values of 1 - b.
    """
    if before > 0:
        for j in range(slot.shape[1]):
            lanes[slot[(before - 1) // 3, j] * LANES + lane] = _ONE
    if code > 0:
        z, a = (code - 1) // 3, (code - 1) % 3
        for j in range(slot.shape[1]):
            lanes[slot[z, j] * LANES + lane] = miss[z, a, j]


@inlined
def _propagate(now: Any, after: Any, bits_now: Any, bits_after: Any, wiring: Any, miss: Any,
               psi: Any, words: Any, sums: Any, s: Any) -> None:  # fmt: skip
    """Sample A_{t+1} of a block into `after` and add up the sums of the step.

    A node that no lane can activate has q = 0 everywhere: it is passed over, its sums unchanged.
    """
    in_ptr, in_src, in_prob, where_x, where_y, region, seed_row, sensitive = wiring
    zero = load(psi, 0) * _ZERO
    inside, outside, total_x, total_y, squares = zero, zero, zero, zero, zero
    for v in range(region.size):
        at = v * LANES
        touched = seed_row[v] >= 0
        m = zero + _ONE
        if bits_now[v] != _NONE:
            touched = True
            m = fused(-s, load(now, at), _ONE)
        if seed_row[v] >= 0:
            m = load(miss, seed_row[v] * LANES) * m
        for e in range(in_ptr[v], in_ptr[v + 1]):
            u = np.int64(in_src[e])
            if bits_now[u] != _NONE:
                touched = True
                m = m * fused(-in_prob[e], load(now, u * LANES), _ONE)
        if not touched:
            if bits_after[v] != _NONE:
                store(after, at, zero)
                bits_after[v] = _NONE
            continue

        q = _ONE - m
        draws = draw(load(words, 0), load(words, LANES), v)
        if region[v] >= 0:
            passed = q * load(psi, region[v] * LANES)
            born = draws * (passed + m) < passed
        else:  # psi = 1: the same test, since (1 - m) + m is exactly 1
            passed = q
            born = draws < q
        active = where(born, zero + _ONE, zero)
        store(after, at, active)
        bits_after[v] = bits_of(born)

        x, y = where_x[v], where_y[v]
        total_x = fused(x, active, total_x)
        total_y = fused(y, active, total_y)
        squares = fused(x * x + y * y, active, squares)
        if sensitive[v]:
            inside = inside + active
            store(sums, _NOMINAL * LANES, load(sums, _NOMINAL * LANES) + q)
            store(sums, _DEFORMED * LANES, load(sums, _DEFORMED * LANES) + passed)
            store(sums, _STAY * LANES, load(sums, _STAY * LANES) * m)
            store(sums, _PARTITION * LANES, load(sums, _PARTITION * LANES) * (passed + m))
        else:
            outside = outside + active
        if seed_row[v] >= 0:
            missed = load(miss, seed_row[v] * LANES)
            b = _ONE - missed
            if region[v] >= 0:
                b = b * load(psi, region[v] * LANES)
            store(sums, _SERVED * LANES, load(sums, _SERVED * LANES) + b / (b + missed))
    store(sums, _REACH * LANES, inside + outside)
    store(sums, _SENSITIVE * LANES, inside)
    store(sums, _X * LANES, total_x)
    store(sums, _Y * LANES, total_y)
    store(sums, _SQUARES * LANES, squares)


@inlined
def _remember(now: Any, bits_now: Any, G: Any, H: Any, counts: Any, ring: Any, slot: int,
              credit: Any, law: Any, trace: Any, t: int, first: int) -> None:  # fmt: skip
    """Delayed harm: store who is affected now, apply who was `D` steps ago, report the sums."""
    nodes, regions = credit
    keep, alpha, delta, eta, tau, per_node = law[1], law[2], law[3], law[4], law[5], law[9]
    live = G.size // LANES
    zero = load(now, 0) * _ZERO
    for r in range(live):
        store(counts, r * LANES, zero)
    for i in range(nodes.size):
        if bits_now[nodes[i]] != _NONE:
            at = regions[i] * LANES
            store(counts, at, load(counts, at) + load(now, nodes[i] * LANES))
    base = slot * live * LANES
    k = zero
    for r in range(live):
        k = k + load(ring, base + r * LANES)
    harm = harm_of(k, per_node)
    gain = alpha * harm
    traces, gains, scars = zero, zero, zero
    for r in range(live):
        at = r * LANES
        g, h = load(G, at), load(H, at)
        grown = next_scar(h, g, delta, eta, tau)
        store(H, at, grown)
        store(G, at, next_trace(g, gain * share_of(load(ring, base + at), k), keep))
        store(ring, base + at, load(counts, at))
        traces, gains, scars = traces + g, gains + (grown - h), scars + grown
    store(trace[t, row.HARM], first, harm)
    store(trace[t, row.TRACE], first, traces)
    store(trace[t, row.SCAR_GAIN], first, gains)
    store(trace[t, row.SCAR], first, scars)


@inlined
def _report(sums: Any, trace: Any, t: int, first: int) -> None:
    """Turn the sums of a step into its rows of statistics."""
    reach = load(sums, _REACH * LANES)
    x, y, spread = centroid_and_spread(
        load(sums, _X * LANES), load(sums, _Y * LANES), load(sums, _SQUARES * LANES), reach
    )
    store(trace[t, row.REACH], first, reach)
    store(trace[t, row.SENSITIVE], first, load(sums, _SENSITIVE * LANES))
    store(trace[t, row.CENTROID_X], first, x)
    store(trace[t, row.CENTROID_Y], first, y)
    store(trace[t, row.SPREAD], first, spread)
    store(trace[t, row.SERVED], first, load(sums, _SERVED * LANES))
    store(trace[t, row.ENTRY_NOMINAL], first, load(sums, _NOMINAL * LANES))
    store(trace[t, row.ENTRY_DEFORMED], first, load(sums, _DEFORMED * LANES))
    store(trace[t, row.STAY_NOMINAL], first, load(sums, _STAY * LANES))
    store(trace[t, row.PARTITION], first, load(sums, _PARTITION * LANES))


@lean_kernel
def run_lanes(
    blocks: Any, steps: int, parity: int, slot: int, wiring: Any, credit: Any, seeds: Any,
    designated: Any, law: Any, schedule: Any, episode: Any, keys: Any, actions: Any, active: Any,
    bits: Any, miss: Any, fields: Any, ring: Any, scratch: Any, trace: Any,
) -> None:  # fmt: skip
    """Run `steps` steps of the blocks `blocks[0]..blocks[1] - 1`, all in one call.

    Args:
        blocks: (first, end) block numbers.
        steps: how many, >= 1.
        parity: which half of `active` holds A_t.
        slot: ring entry that is D steps old.
        wiring: in-edges (ptr, src, prob), positions minus 0.5 (x, y), live region of each node
            or -1, row of each node in `miss` or -1, V_sens membership.
        credit: sensitive nodes and the live region each one's harm is credited to.
        seeds: (Z, k) row in `miss` of each stimulus' seeds, (Z, 3, k) float32 1 - b.
        designated: (R,) whether a live region may be deformed.
        law: (10,) float32, s, 1 - lambda, alpha, delta, eta, tau, w_G, w_H, psi_min, harm per node.
        schedule: (3, 3), see `clock`.
        episode: (8, E), see `clock`.
        keys: (2, E), see `clock`.
        actions: (E,) int64.
        active: (2, B, n * 32) float32 0/1.
        bits: (2, B, n) uint32, the same as one bit per lane.
        miss: (B, seed rows * 32) float32, 1 - b as laid out for each lane.
        fields: (2, B, R * 32) float32, G and H of the live regions.
        ring: (B, D * R * 32) float32, affected counts of the last D steps.
        scratch: (B, words) float32 and (B, 64) uint32.
        trace: (steps, rows, E) float32, filled.
    """
    s, w_G, w_H, psi_min = law[0], law[6], law[7], law[8]
    slot_of, miss_of = seeds
    live = designated.size
    delay = ring.shape[1] // (live * LANES)
    for b in range(blocks[0], blocks[1]):
        first = b * LANES
        G, H, lane_miss = fields[0, b], fields[1, b], miss[b]
        words = scratch[1][b]
        psi = scratch[0][b, : live * LANES]
        counts = scratch[0][b, live * LANES : 2 * live * LANES]
        sums = scratch[0][b, 2 * live * LANES : (2 * live + SUMS) * LANES]
        gated = scratch[0][b, (2 * live + SUMS) * LANES :]
        for t in range(steps):
            this, other = (parity + t) & 1, (parity + t + 1) & 1
            now, after = active[this, b], active[other, b]
            for lane in range(LANES):
                e = first + lane
                words[lane], words[LANES + lane] = words_of(keys[PHASE_KEY, e], episode[CLOCK, e])
                gated[lane] = _ONE if schedule[GATED, episode[PHASE, e]] else _ZERO
                code = injection_code(episode, e, actions[e])
                if code != episode[INJECTING, e]:
                    _lay_injection(code, episode[INJECTING, e], lane, slot_of, miss_of, lane_miss)
                    episode[INJECTING, e] = code
            zero = load(now, 0) * _ZERO
            for r in range(live):
                value = psi_of(load(G, r * LANES), load(H, r * LANES), w_G, w_H, psi_min)
                deforms = load(gated, 0) if designated[r] else zero
                store(psi, r * LANES, where(deforms > _ZERO, value, _ONE))
            for i in range(SUMS):
                start = _ONE if i in (_STAY, _PARTITION) else _ZERO
                store(sums, i * LANES, zero + start)
            _propagate(
                now, after, bits[this, b], bits[other, b], wiring, lane_miss, psi, words, sums, s
            )
            _report(sums, trace, t, first)
            _remember(
                now,
                bits[this, b],
                G,
                H,
                counts,
                ring[b],
                (slot + t) % delay,
                credit,
                law,
                trace,
                t,
                first,
            )
            for lane in range(LANES):
                if advance_clock(episode, keys, schedule, first + lane):
                    for v in range(after.size // LANES):
                        after[v * LANES + lane] = _ZERO
                        bits[other, b, v] &= ~(np.uint32(1) << np.uint32(lane))
