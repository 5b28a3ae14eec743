"""The cascade step for blocks of 32 episodes, pushing over the out-edges of active nodes.

This kernel serves many episodes on one graph. A node that any of the 32 episodes can activate costs
a few vector operations for all of them, and every other node costs nothing. The results are those
of `push_kernel`, bit by bit.

An episode of a block is a lane. Arrays of a block are flat: element (i, lane) of a table is at
`32 i + lane`. A set is a row of 64-bit words with a bit per member, see `rapo_core.bits`; a set of
nodes or regions holds every one that counts in any of the 32 lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from rapo.cascade import stats
from rapo.cascade.draws import draw, words_of
from rapo.cascade.kernel_arrays import (
    ALPHA,
    CASCADE,
    CONTACT,
    DELTA,
    ETA,
    KEPT,
    OUTBREAK,
    PER_NODE,
    PERSISTENCE,
    PSI_MIN,
    SITE_REACH,
    SITE_SENSITIVE,
    SITE_SIZE,
    SITE_SQUARES,
    SITE_X,
    SITE_Y,
    TAU,
    W_G,
    W_H,
)
from rapo.cascade.phases import (
    CLOCK,
    END,
    EPISODES,
    FIRST,
    GATED,
    INJECTING,
    PHASE,
    PHASE_KEY,
    RECORDING,
    SLOT,
    advance_clock,
    first_unknown,
    injection_code,
)
from rapo.cascade.setting import DECAY
from rapo.cascade.stats import centroid_and_spread
from rapo_core.bits import BIT, NONE, bit_count, lowest_bit, mark, marked, unmark
from rapo_core.bundle import kinds_of, unbundled
from rapo_core.fields import harm_of, next_scar, next_trace, psi_of, share_of
from rapo_core.jit import inlined, lean_kernel
from rapo_core.lanes import LANES, add_eight, bits_of, fused, load, ones_of, store, where

_ZERO, _ONE = np.float32(0), np.float32(1)
_LANE, _NO_LANE = np.uint32(1), np.uint32(0)
_NOMINAL, _DEFORMED, _STAY, _PARTITION, _SERVED = range(SITE_SENSITIVE + 1, 10)
SUMS = 10
"""Rows of the sums of a step; the first five are sums over the sites of active nodes."""

_FLOATS, _LANE_BITS, _LONGS = types.float32, types.uint32, types.int64
KINDS = kinds_of(
    types.int32[::1], types.int32[::1], _FLOATS[::1], _FLOATS[::1], _LONGS[::1],
    types.boolean[::1], types.uint64[::1], _LONGS[::1], types.uint64[::1], _FLOATS[::1],
    _LONGS[:, ::1], _FLOATS[:, :, ::1],
    _LONGS[:, ::1], _LONGS[:, ::1], types.uint64[:, ::1], _LONGS[::1], _FLOATS[::1],
    _LANE_BITS[:, ::1], types.uint64[:, ::1], _LANE_BITS[:, ::1], _FLOATS[:, ::1],
    _LANE_BITS[:, ::1], types.uint64[:, ::1],
    _FLOATS[:, :, ::1], _FLOATS[:, ::1], types.uint64[:, ::1], types.uint64[:, ::1],
    _FLOATS[:, ::1], _LANE_BITS[:, ::1], types.uint64[:, ::1],
    _LONGS[::1], _LANE_BITS[:, ::1], types.uint64[:, ::1],
)  # fmt: skip
"""The arrays of the kernel: those of `kernel_arrays`, and then of B blocks:

- active_lanes: (B, n) the lanes in which a node is active, a bit each.
- active_nodes: (B, node words) the nodes that are active in any lane, a set.
- spent_lanes: (B, n) the lanes in which a node was active in this phase and tries no neighbours any
  more, a bit each.
- m: (B, 2 * n * 32) first 1 - b, which is 1 where a lane injects nothing; then room for 1 - q.
- injecting_lanes: (B, n) the lanes that inject into a node, a bit each.
- injected_nodes: (B, node words) the nodes that any lane injects into, a set.
- fields: (2, B, R * 32) G and H.
- ring: (B, D * R * 32) affected nodes of each region in the last D steps.
- nonzero_regions: (B, region words) a set with every region whose G or H is above 0 in some lane.
- hit_regions: (B, D * region words) a set for each slot of the ring, with every region that had
  affected nodes when the slot was written.
- sums: (B, ...) numbers of one step; the totals of the sites are 0 between steps.
- draw_keys: (B, 64) the two words per lane that all draws of a step share.
- scratch_sets: (B, node words + region words) sets of one step.
"""


@inlined
def _set_injection(code: int, before: int, lane: int, seeds: Any, m: Any, injected: Any) -> None:
    """Rewrite `1 - b` of one lane after its stimulus, action or phase changed."""
    nodes, miss = seeds
    injecting_lanes, injected_nodes = injected
    own = _LANE << np.uint32(lane)
    z, z_before = (code + 2) // 3, (before + 2) // 3  # stimuli, 0 for none
    if z != z_before:
        if z_before > 0:
            for v in nodes[z_before - 1]:
                m[v * LANES + lane] = _ONE
                injecting_lanes[v] &= ~own
                if injecting_lanes[v] == _NO_LANE:
                    unmark(injected_nodes, v)
        if z > 0:
            for v in nodes[z - 1]:
                injecting_lanes[v] |= own
                mark(injected_nodes, v)
    if z > 0:
        to, values = nodes[z - 1], miss[z - 1, code - 1 - 3 * (z - 1)]
        for j in range(to.size):  # an unsigned index has no sign to be tested
            m[np.uint64(to[j] * LANES + lane)] = values[j]


@inlined
def _update_injections(
    episode: Any, first: int, episodes: int, actions: Any, start: int, seeds: Any, m: Any,
    injected: Any,
) -> None:  # fmt: skip
    """Rewrite `1 - b` of the lanes whose injection is not that of the last step.

    The block's first episode is `first`; the actions of the present step begin at `start`.
    """
    changed = NONE  # a set: no processor predicts which agents change their action
    for lane in range(LANES):
        e = first + lane
        code = injection_code(episode, e, actions[start + min(e, episodes - 1)])
        changed |= np.uint64(code != episode[INJECTING, e]) << np.uint64(lane)
    while changed != NONE:
        lane = lowest_bit(changed)
        changed &= changed - BIT
        e = first + lane
        code = injection_code(episode, e, actions[start + min(e, episodes - 1)])
        _set_injection(code, episode[INJECTING, e], lane, seeds, m, injected)
        episode[INJECTING, e] = code


@inlined
def _set_conductance(regions: Any, fields: Any, weights: Any, gated: Any, psi: Any) -> None:
    """Compute psi of some regions, which is 1 in lanes whose phase is not deformed."""
    G, H = fields
    w_G, w_H, psi_min = weights
    for w in range(regions.size):
        rest = regions[w]
        while rest != NONE:
            at = ((w << 6) + lowest_bit(rest)) * LANES
            rest &= rest - BIT
            value = psi_of(load(G, at), load(H, at), w_G, w_H, psi_min)
            store(psi, at, where(gated > _ZERO, value, _ONE))


@inlined
def _update_memory(
    active: Any, memory: Any, slot: int, harmed: Any, own_harm: Any, constants: Any, output: Any
) -> None:
    """Apply the harm of `D` steps ago to G and H, store who is affected now, report the sums.

    A region outside `nonzero_regions` has G = H = 0 in all lanes. A region outside the slot's
    `hit_regions` has no affected nodes in this slot of the ring, and its row there is 0.
    """
    active_nodes, active_lanes, _ = active
    G, H, nonzero_regions, ring, hit_regions = memory
    inside, harm_region_of = harmed
    trace, top, first = output
    retained, alpha, per_node = constants[KEPT], constants[ALPHA], constants[PER_NODE]
    delta, eta, tau = constants[DELTA], constants[ETA], constants[TAU]
    base, start = slot * G.size, slot * nonzero_regions.size
    zero = ones_of(_NO_LANE)
    k = zero
    for w in range(nonzero_regions.size):
        rest = hit_regions[start + w]
        while rest != NONE:
            k = k + load(ring, base + ((w << 6) + lowest_bit(rest)) * LANES)
            rest &= rest - BIT
    own = load(own_harm, first)
    harm = where(own < _ZERO, harm_of(k, per_node), own)
    gain = alpha * harm
    traces, gains, scars = zero, zero, zero
    for w in range(nonzero_regions.size):
        arriving = hit_regions[start + w]
        hit_regions[start + w] = NONE
        nonzero_regions[w] |= arriving
        rest = nonzero_regions[w]
        while rest != NONE:
            r = (w << 6) + lowest_bit(rest)
            at = r * LANES
            g, h = load(G, at), load(H, at)
            grown = next_scar(h, g, delta, eta, tau)
            inflow = zero
            if arriving & rest & (~rest + BIT) != NONE:
                inflow = gain * share_of(load(ring, base + at), k)
                store(ring, base + at, zero)
            rest &= rest - BIT
            store(H, at, grown)
            store(G, at, next_trace(g, inflow, retained))
            traces, gains, scars = traces + g, gains + (grown - h), scars + grown
    for w in range(active_nodes.size):
        rest = active_nodes[w] & inside[w]
        while rest != NONE:
            v = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            r = harm_region_of[v]
            at = base + r * LANES
            store(ring, at, load(ring, at) + ones_of(active_lanes[v]))
            hit_regions[start + (r >> 6)] |= BIT << np.uint64(r & 63)
    store(trace[top + stats.HARM], first, harm)
    store(trace[top + stats.TRACE], first, traces)
    store(trace[top + stats.SCAR_GAIN], first, gains)
    store(trace[top + stats.SCAR], first, scars)


@inlined
def _gather(active: Any, reached_nodes: Any, m: Any, edges: Any, s: Any, spread: int) -> None:
    """Collect `m_v = 1 - q_v` of every node that active nodes can activate.

    The first half of `m` holds 1 - b, the second half the products of the nodes in `reached_nodes`.
    The first factor of a node is read from the one half and written to the other: this saves a
    branch that no processor could predict.
    """
    active_nodes, active_lanes, spent_lanes = active
    ptr, target, prob = edges
    half = m.size >> 1
    for w in range(active_nodes.size):
        reached_nodes[w] = active_nodes[w] if spread != CONTACT or s > _ZERO else NONE
        rest = reached_nodes[w]
        while rest != NONE:
            v = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            at = v * LANES
            missed = load(m, at)
            if spread == CONTACT:
                missed = missed * fused(-s, ones_of(active_lanes[v]), _ONE)
            store(m, half + at, missed)
    for w in range(active_nodes.size):
        rest = active_nodes[w]
        while rest != NONE:
            u = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            trying = active_lanes[u] & ~spent_lanes[u] if spread == CASCADE else active_lanes[u]
            if spread == CASCADE and trying == _NO_LANE:
                continue
            lanes = ones_of(trying)
            for e in range(ptr[u], ptr[u + 1]):
                v = np.int64(target[e])
                at = v * LANES
                have = load(m, at + half * marked(reached_nodes, v))
                store(m, half + at, have * fused(-prob[e], lanes, _ONE))
                mark(reached_nodes, v)


@inlined
def _sample(
    active: Any, reached_nodes: Any, injected_nodes: Any, m: Any, nodes: Any, gate: Any,
    draw_keys: Any, output: Any, s: Any, spread: int,
) -> None:  # fmt: skip
    """Sample A_{t+1} in place of A_t and add up the sums of the step."""
    active_nodes, active_lanes, spent_lanes = active
    site, region, sensitive = nodes
    deformed_regions, psi = gate
    totals, sums = output
    for i in range(_NOMINAL, SUMS):
        store(sums, i * LANES, ones_of(_NO_LANE) + (_ONE if i in (_STAY, _PARTITION) else _ZERO))
    k0, k1 = load(draw_keys, 0), load(draw_keys, LANES)
    half = m.size >> 1
    for w in range(active_nodes.size):
        injected = injected_nodes[w]
        rest = active_nodes[w] & ~(reached_nodes[w] | injected)
        while rest != NONE:
            active_lanes[(w << 6) + lowest_bit(rest)] = _NO_LANE
            rest &= rest - BIT
        rest = reached_nodes[w] | injected
        some = NONE
        while rest != NONE:
            v = (w << 6) + lowest_bit(rest)
            own = rest & (~rest + BIT)
            rest ^= own
            at = v * LANES
            missed = load(m, at + half * marked(reached_nodes, v))
            was = active_lanes[v]
            closed = _NO_LANE if spread == CONTACT else was | spent_lanes[v]
            if closed != _NO_LANE:
                missed = where(ones_of(closed) > _ZERO, _ONE, missed)
                if spread == OUTBREAK:
                    missed = where(ones_of(was) > _ZERO, _ONE - s, missed)
            q = _ONE - missed
            draws = draw(k0, k1, v)
            r = region[v]
            deformed = r >= 0 and marked(deformed_regions, r) != 0
            if deformed:
                passed = q * load(psi, r * LANES)
                born = bits_of(draws * (passed + missed) < passed)
            else:  # psi = 1: the same test, since (1 - m) + m is exactly 1
                passed = q
                born = bits_of(draws < q)
            if spread == CASCADE:
                born |= was
                spent_lanes[v] = was
            elif spread == OUTBREAK:
                spent_lanes[v] |= was & ~born
            active_lanes[v] = born
            if sensitive[v]:
                if closed != _NO_LANE:  # nodes that cannot be entered do not count
                    shut = ones_of(closed) > _ZERO
                    q, passed = where(shut, _ZERO, q), where(shut, _ZERO, passed)
                    missed = where(shut, _ONE, missed)
                store(sums, _NOMINAL * LANES, load(sums, _NOMINAL * LANES) + q)
                store(sums, _DEFORMED * LANES, load(sums, _DEFORMED * LANES) + passed)
                store(sums, _STAY * LANES, load(sums, _STAY * LANES) * missed)
                if deformed:
                    at_z = _PARTITION * LANES
                    store(sums, at_z, load(sums, at_z) * (passed + missed))
            if own & injected != NONE:
                resting = load(m, at)
                b = _ONE - resting
                if deformed:
                    b = b * load(psi, r * LANES)
                    b = b / (b + resting)
                store(sums, _SERVED * LANES, load(sums, _SERVED * LANES) + b)
            if born != _NO_LANE:
                some |= own
                lanes = np.uint64(born)
                while lanes != NONE:
                    add_eight(totals, lowest_bit(lanes) * SITE_SIZE, site, v * SITE_SIZE)
                    lanes &= lanes - BIT
        active_nodes[w] = some


@inlined
def _report(totals: Any, sums: Any, trace: Any, top: int, first: int) -> None:
    """Turn the sums of a step into its rows of statistics, and set `totals` to 0."""
    for lane in range(LANES):
        for i in range(SITE_SENSITIVE + 1):
            sums[i * LANES + lane] = totals[lane * SITE_SIZE + i]
            totals[lane * SITE_SIZE + i] = _ZERO
    reach = load(sums, SITE_REACH * LANES)
    x, y = load(sums, SITE_X * LANES), load(sums, SITE_Y * LANES)
    x, y, spread = centroid_and_spread(x, y, load(sums, SITE_SQUARES * LANES), reach)
    store(trace[top + stats.REACH], first, reach)
    store(trace[top + stats.SENSITIVE], first, load(sums, SITE_SENSITIVE * LANES))
    store(trace[top + stats.CENTROID_X], first, x)
    store(trace[top + stats.CENTROID_Y], first, y)
    store(trace[top + stats.SPREAD], first, spread)
    store(trace[top + stats.SERVED], first, load(sums, _SERVED * LANES))
    store(trace[top + stats.ENTRY_NOMINAL], first, load(sums, _NOMINAL * LANES))
    store(trace[top + stats.ENTRY_DEFORMED], first, load(sums, _DEFORMED * LANES))
    store(trace[top + stats.STAY_NOMINAL], first, load(sums, _STAY * LANES))
    store(trace[top + stats.PARTITION], first, load(sums, _PARTITION * LANES))


@inlined
def _record(active: Any, visits: Any, ever: Any, frames: Any, t: int, first: int) -> None:
    """Count the visits of active nodes, and note those of the first episode and of any step."""
    active_nodes, active_lanes, _ = active
    for w in range(active_nodes.size):
        frame = NONE
        rest = active_nodes[w]
        while rest != NONE:
            v = (w << 6) + lowest_bit(rest)
            lanes = active_lanes[v]
            visits[v] += bit_count(np.uint64(lanes))
            ever[v] |= lanes
            if lanes & _LANE != _NO_LANE:
                frame |= rest & (~rest + BIT)
            rest &= rest - BIT
        if first == 0:
            frames[t, w] = frame


@inlined
def _withdraw(active: Any, lanes: Any, begins: Any) -> None:
    """Make all nodes inactive in `lanes`; forget which are spent in the lanes `begins`."""
    active_nodes, active_lanes, spent_lanes = active
    if lanes != _NO_LANE:
        for w in range(active_nodes.size):
            rest = active_nodes[w]
            while rest != NONE:
                active_lanes[(w << 6) + lowest_bit(rest)] &= ~lanes
                rest &= rest - BIT
    if begins != _NO_LANE:
        for v in range(spent_lanes.size):
            spent_lanes[v] &= ~begins


@inlined
def _deactivate_lane(active: Any, lane: int) -> None:
    """Make all nodes of one lane inactive."""
    _withdraw(active, _LANE << np.uint32(lane), _NO_LANE)


@inlined
def _run(table: Any, actions: Any, trace: Any, spread: int) -> Any:
    """Run as many steps as `trace` has room for of the blocks of one thread, all in one call.

    Args:
        table: pointers of a `Bundle` of `KINDS`.
        actions: (E,) int64 for all steps, or (steps * E,) with the first step first.
        trace: (steps * len(STATS), E rounded up to 32) float32, filled.
        spread: the spreading law, a constant: each law has a kernel of its own.

    Returns:
        -1, or the index of an action that is not 0, 1 or 2; then no step has been run.
    """
    (ptr, target, prob, site, region, sensitive, inside, harm_region_of, gated_regions, constants,
     seed_nodes, seed_miss, schedule, episode, keys, thread_state, own_harm, active_lanes_of,
     active_nodes_of, spent_lanes_of, m_of, injecting_lanes_of, injected_nodes_of, fields, ring_of,
     nonzero_regions_of, hit_regions_of, sums_of, draw_keys_of, sets_of, visits, ever_of, frames,
    ) = unbundled(table, KINDS)  # fmt: skip
    bad = first_unknown(actions)
    if bad >= 0:
        return bad
    s = constants[PERSISTENCE]
    weights = (constants[W_G], constants[W_H], constants[PSI_MIN])
    delay = ring_of.shape[1] // fields.shape[2]
    steps, episodes = trace.shape[0] // stats.COUNT, thread_state[EPISODES]
    stride = episodes if actions.size > episodes else 0
    seeds = (seed_nodes, seed_miss)
    edges = (ptr, target, prob)
    nodes = (site, region, sensitive)
    harmed = (inside, harm_region_of)
    for b in range(thread_state[FIRST], thread_state[END]):
        first = b * LANES
        G, H, m, draw_keys = fields[0, b], fields[1, b], m_of[b], draw_keys_of[b]
        active_nodes = active_nodes_of[b]
        active = (active_nodes, active_lanes_of[b], spent_lanes_of[b])
        injected_nodes, nonzero_regions = injected_nodes_of[b], nonzero_regions_of[b]
        injected = (injecting_lanes_of[b], injected_nodes)
        memory = (G, H, nonzero_regions, ring_of[b], hit_regions_of[b])
        totals = sums_of[b, : SITE_SIZE * LANES]
        sums = sums_of[b, SITE_SIZE * LANES : (SITE_SIZE + SUMS) * LANES]
        gated = sums_of[b, (SITE_SIZE + SUMS) * LANES : (SITE_SIZE + SUMS + 1) * LANES]
        psi = sums_of[b, (SITE_SIZE + SUMS + 1) * LANES :]
        reached_nodes = sets_of[b, : active_nodes.size]
        deformed_regions = sets_of[b, active_nodes.size :]
        for t in range(steps):
            some_gated = False
            withdrawn, begins = _NO_LANE, _NO_LANE
            for lane in range(LANES):
                e = first + lane
                k0, k1 = words_of(keys[PHASE_KEY, e], episode[CLOCK, e])
                draw_keys[lane], draw_keys[LANES + lane] = k0, k1
                gates = schedule[GATED, episode[PHASE, e]] != 0
                gated[lane] = _ONE if gates else _ZERO
                some_gated |= gates
                if spread != CONTACT and episode[PHASE, e] == DECAY:
                    withdrawn |= _LANE << np.uint32(lane)
                    if episode[CLOCK, e] == 0:
                        begins |= _LANE << np.uint32(lane)
            _update_injections(episode, first, episodes, actions, t * stride, seeds, m, injected)
            for w in range(deformed_regions.size):
                deformed_regions[w] = nonzero_regions[w] & gated_regions[w] if some_gated else NONE
            _set_conductance(deformed_regions, (G, H), weights, load(gated, 0), psi)
            slot = (thread_state[SLOT] + t) % delay
            output = (trace, t * stats.COUNT, first)
            _update_memory(active, memory, slot, harmed, own_harm, constants, output)
            if spread != CONTACT:
                _withdraw(active, withdrawn, begins)
            _gather(active, reached_nodes, m, edges, s, spread)
            _sample(
                active, reached_nodes, injected_nodes, m, nodes, (deformed_regions, psi), draw_keys,
                (totals, sums), s, spread,
            )  # fmt: skip
            _report(totals, sums, trace, t * stats.COUNT, first)
            if thread_state[RECORDING] != 0:
                _record(active, visits, ever_of[b], frames, t, first)
            for lane in range(LANES):
                if advance_clock(episode, keys, schedule, first + lane):
                    _deactivate_lane(active, lane)
    thread_state[SLOT] = (thread_state[SLOT] + steps) % delay
    return -1


@lean_kernel
def _run_outbreak(table: Any, actions: Any, trace: Any) -> Any:
    return _run(table, actions, trace, OUTBREAK)


@lean_kernel
def _run_cascade(table: Any, actions: Any, trace: Any) -> Any:
    return _run(table, actions, trace, CASCADE)


@lean_kernel
def _run_contact(table: Any, actions: Any, trace: Any) -> Any:
    return _run(table, actions, trace, CONTACT)


RUN_LANES = {"outbreak": _run_outbreak, "cascade": _run_cascade, "contact": _run_contact}
"""The kernel of each spreading law, see `_run`. A law is compiled when it is first used."""
