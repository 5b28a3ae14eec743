"""The cascade step of one episode at a time, pushing over the out-edges of active nodes.

This kernel serves few episodes, large graphs and the `topk` scope, which needs all q of an episode
at once. Active and reached nodes are bits of a map, so the cost follows the cascade and not the
graph. A scan of the map yields nodes in ascending order, the order in which `lanes_kernel`
multiplies and adds, and so both kernels give the same results, bit by bit.
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
from rapo_core.bits import BIT, NONE, lowest_bit, mark
from rapo_core.bundle import kinds_of, unbundled
from rapo_core.fields import harm_of, next_scar, next_trace, psi_of, share_of
from rapo_core.jit import inlined, lean_kernel
from rapo_core.lanes import LANES, load, ones_of, store, where

_ZERO, _ONE = np.float32(0), np.float32(1)
_HALF = np.uint64(LANES)

_FLOATS, _SETS, _LONGS = types.float32, types.uint64, types.int64
KINDS = kinds_of(
    types.int32[::1], types.int32[::1], _FLOATS[::1], _FLOATS[::1], _LONGS[::1],
    types.boolean[::1], _SETS[::1], _LONGS[::1], _SETS[::1], _FLOATS[::1],
    types.int32[:, ::1], _FLOATS[:, :, ::1],
    _LONGS[:, ::1], _LONGS[:, ::1], _SETS[:, ::1], _LONGS[::1], _FLOATS[::1],
    _SETS[:, ::1], _SETS[:, ::1], _FLOATS[:, :, ::1], _FLOATS[:, ::1], _SETS[:, ::1], _SETS[:, ::1],
    _SETS[::1], _FLOATS[::1], _FLOATS[::1], _LONGS[::1], _SETS[:, ::1], _SETS[:, ::1],
)  # fmt: skip
"""The arrays of the kernel: those of `kernel_arrays`, and then of E episodes:

- active_nodes_of: (E, node words) the active nodes, a set.
- spent_nodes_of: (E, node words) the nodes that were active in this phase and try no neighbours any
  more, a set.
- fields: (2, E, R') G and H, with R' the words of a set of regions times 64.
- ring: (E, D * R) affected nodes of each region in the last D steps.
- nonzero_regions_of: (E, region words) a set with every region whose G or H is above 0.
- hit_regions_of: (E, D * region words) a set for each slot of the ring, with every region that had
  affected nodes when the slot was written.
- reached_nodes: (node words,) the nodes that can become active in this step; empty between calls.
- m: (n,) 1 - q; 1 between calls.
- psi: (R',) conductance of each region; 1 between calls.
"""


@inlined
def _gather(active: Any, chances: Any, edges: Any, seeds: Any, s: Any, spread: int) -> None:
    """Collect `m_v = 1 - q_v` of every node that can become active; `m` is 1 elsewhere."""
    active_nodes, spent_nodes = active
    reached_nodes, m = chances
    ptr, target, prob = edges
    nodes, miss = seeds
    for j in range(nodes.size):
        m[nodes[j]] = miss[j]
        mark(reached_nodes, nodes[j])
    if spread == CONTACT and s > _ZERO:
        for w in range(active_nodes.size):
            reached_nodes[w] |= active_nodes[w]
            bits = active_nodes[w]
            while bits != NONE:
                m[(w << 6) + lowest_bit(bits)] *= _ONE - s
                bits &= bits - BIT
    for w in range(active_nodes.size):
        bits = active_nodes[w] & ~spent_nodes[w] if spread == CASCADE else active_nodes[w]
        while bits != NONE:
            u = (w << 6) + lowest_bit(bits)
            bits &= bits - BIT
            for e in range(ptr[u], ptr[u + 1]):
                v = target[e]
                m[v] *= _ONE - prob[e]
                mark(reached_nodes, v)
    if spread != CONTACT:
        _close(active, chances, s, spread)


@inlined
def _close(active: Any, chances: Any, s: Any, spread: int) -> None:
    """Set `m` of nodes that nobody can activate: 1 - s where active nodes may stay, otherwise 1.

    Active nodes join `reached_nodes`, since the sums of the step run over them.
    """
    active_nodes, spent_nodes = active
    reached_nodes, m = chances
    for w in range(active_nodes.size):
        bits = reached_nodes[w] & (active_nodes[w] | spent_nodes[w])
        while bits != NONE:
            m[(w << 6) + lowest_bit(bits)] = _ONE
            bits &= bits - BIT
        reached_nodes[w] |= active_nodes[w]
        bits = active_nodes[w] if spread == OUTBREAK else NONE
        while bits != NONE:
            m[(w << 6) + lowest_bit(bits)] = _ONE - s
            bits &= bits - BIT


@inlined
def _kth_largest(values: Any, k: int) -> Any:
    """Return the k-th largest of (N,) values, 1 <= k <= N, and reorder them (Hoare's selection).

    numba takes longer to compile `np.partition` than to compile the rest of this file.
    """
    wanted = values.size - k
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:  # between the two parts, where all equal the pivot
            low = high
    return values[wanted]


@inlined
def _top_threshold(reached_nodes: Any, m: Any, q: Any, k: int) -> Any:
    """Return the k-th largest q, and how many nodes with exactly this q belong to the top k.

    With at most `k` reached nodes all belong to the top, and the threshold is below every q.
    `q` is room for n float32 values that are ranked.
    """
    count = 0
    for w in range(reached_nodes.size):
        bits = reached_nodes[w]
        while bits != NONE:
            q[count] = _ONE - m[(w << 6) + lowest_bit(bits)]
            bits &= bits - BIT
            count += 1
    if count <= k:
        return -_ONE, 0
    threshold = _kth_largest(q[:count], k)
    larger = 0
    for i in range(count):
        larger += q[i] > threshold
    return threshold, k - larger


@inlined
def _sample(
    active: Any, chances: Any, nodes: Any, gate: Any, ranks: Any, k: int, draw_keys: Any,
    output: Any, spread: int,
) -> None:  # fmt: skip
    """Sample A_{t+1} in place of A_t, clear `reached_nodes` and `m`, report the statistics."""
    active_nodes, spent_nodes = active
    reached_nodes, m = chances
    site, region, sensitive, seeds, miss = nodes
    gated, psi = gate
    k0, k1 = draw_keys
    trace, top, e = output
    threshold, ties = -_ONE, 0
    if ranks is not None:
        threshold, ties = _top_threshold(reached_nodes, m, ranks, k)
    reach, inside, served = _ZERO, _ZERO, _ZERO
    x, y, squares = _ZERO, _ZERO, _ZERO
    nominal, deformed, stay, partition = _ZERO, _ZERO, _ONE, _ONE
    j = 0
    for w in range(reached_nodes.size):
        bits = reached_nodes[w]
        reached_nodes[w] = NONE
        was, born = active_nodes[w], NONE
        closed = NONE if spread == CONTACT else was | spent_nodes[w]
        while bits != NONE:
            v = (w << 6) + lowest_bit(bits)
            own = bits & (~bits + BIT)
            bits ^= own
            missed = m[v]
            m[v] = _ONE
            q = _ONE - missed
            conductance = psi[region[v]] if gated and region[v] >= 0 else _ONE
            if ranks is not None:
                if q < threshold:
                    conductance = _ONE
                elif q == threshold:
                    conductance = conductance if ties > 0 else _ONE
                    ties -= 1
            passed = q * conductance
            if sensitive[v] and own & closed == NONE:
                nominal += q
                deformed += passed
                stay *= missed
                partition *= passed + missed
            if j < seeds.size and seeds[j] == v:
                b = _ONE - miss[j]
                if conductance != _ONE:  # else the quotient is b itself: (1 - m) + m is exactly 1
                    b *= conductance
                    b /= b + miss[j]
                served += b
                j += 1
            stays = spread == CASCADE and own & was != NONE
            if stays or draw(k0, k1, v) * (passed + missed) < passed:
                born |= own
                x += site[v * SITE_SIZE + SITE_X]
                y += site[v * SITE_SIZE + SITE_Y]
                squares += site[v * SITE_SIZE + SITE_SQUARES]
                reach += _ONE
                inside += site[v * SITE_SIZE + SITE_SENSITIVE]
        if spread == OUTBREAK:
            spent_nodes[w] |= was & ~born
        elif spread == CASCADE:
            spent_nodes[w] = was
        active_nodes[w] = born
    trace[top + stats.REACH, e] = reach
    trace[top + stats.SENSITIVE, e] = inside
    centre_x, centre_y, spread = centroid_and_spread(x, y, squares, reach)
    trace[top + stats.CENTROID_X, e] = centre_x
    trace[top + stats.CENTROID_Y, e] = centre_y
    trace[top + stats.SPREAD, e] = spread
    trace[top + stats.SERVED, e] = served
    trace[top + stats.ENTRY_NOMINAL, e] = nominal
    trace[top + stats.ENTRY_DEFORMED, e] = deformed
    trace[top + stats.STAY_NOMINAL, e] = stay
    trace[top + stats.PARTITION, e] = partition


@inlined
def _update_memory(
    active_nodes: Any,
    memory: Any,
    slot: Any,
    harmed: Any,
    own_harm: Any,
    constants: Any,
    output: Any,
) -> None:
    """Apply the harm of `D` steps ago to G and H, store who is affected now, report the sums.

    A region outside `nonzero_regions` has G = H = 0. A region outside the slot's `hit_regions` has
    no affected nodes in this slot of the ring. `slot` holds the first entry of the present slot in
    `ring` and in `hit_regions`.
    """
    G, H, nonzero_regions, ring, hit_regions = memory
    base, start = slot
    inside, harm_region_of = harmed
    trace, top, e = output
    retained, alpha, per_node = constants[KEPT], constants[ALPHA], constants[PER_NODE]
    delta, eta, tau = constants[DELTA], constants[ETA], constants[TAU]
    k = _ZERO
    for w in range(nonzero_regions.size):
        rest = hit_regions[start + w]
        hit_regions[start + w] = NONE
        nonzero_regions[w] |= rest
        while rest != NONE:
            k += ring[base + (w << 6) + lowest_bit(rest)]
            rest &= rest - BIT
    harm = own_harm[e] if own_harm[e] >= _ZERO else harm_of(k, per_node)
    gain = alpha * harm
    traces, gains, scars = _ZERO, _ZERO, _ZERO
    for w in range(nonzero_regions.size):
        rest = nonzero_regions[w]
        while rest != NONE:
            r = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            g, h = G[r], H[r]
            grown = next_scar(h, g, delta, eta, tau)
            H[r] = grown
            G[r] = next_trace(g, gain * share_of(ring[base + r], k), retained)
            ring[base + r] = _ZERO
            traces += g
            gains += grown - h
            scars += grown
    for w in range(active_nodes.size):
        rest = active_nodes[w] & inside[w]
        while rest != NONE:
            r = harm_region_of[(w << 6) + lowest_bit(rest)]
            rest &= rest - BIT
            ring[base + r] += _ONE
            hit_regions[start + (r >> 6)] |= BIT << np.uint64(r & 63)
    trace[top + stats.HARM, e] = harm
    trace[top + stats.TRACE, e] = traces
    trace[top + stats.SCAR_GAIN, e] = gains
    trace[top + stats.SCAR, e] = scars


@inlined
def _record(active_nodes: Any, visits: Any, ever: Any, frames: Any, t: int, e: int) -> None:
    """Count the visits of active nodes, and note those of the first episode and of any step."""
    for w in range(active_nodes.size):
        rest = active_nodes[w]
        ever[w] |= rest
        if e == 0:
            frames[t, w] = rest
        while rest != NONE:
            visits[(w << 6) + lowest_bit(rest)] += 1
            rest &= rest - BIT


@inlined
def _run(table: Any, actions: Any, trace: Any, top_k: int, ranks: Any, spread: int) -> Any:
    """Run as many steps as `trace` has room for of the episodes of one thread, all in one call.

    Args:
        table: pointers of a `Bundle` of `KINDS`.
        actions: (E,) int64 for all steps, or (steps * E,) with the first step first.
        trace: (steps * len(STATS), E) float32, filled.
        top_k: destinations that a `topk` scope deforms, 0 for all.
        ranks: (n,) float32, room to rank q in; None, with top_k = 0, compiles without ranking.
        spread: the spreading law; it is a constant, so that each law has a kernel of its own.

    Returns:
        -1, or the index of an action that is not 0, 1 or 2; then no step has been run.
    """
    (ptr, target, prob, site, region, sensitive, inside, harm_region_of, gated_regions, constants,
     seed_nodes, seed_miss, schedule, episode, keys, thread_state, own_harm, active_nodes_of,
     spent_nodes_of, fields, ring_of, nonzero_regions_of, hit_regions_of, reached_nodes, m, psi,
     visits, ever_of, frames,
    ) = unbundled(table, KINDS)  # fmt: skip
    bad = first_unknown(actions)
    if bad >= 0:
        return bad
    s, psi_min = constants[PERSISTENCE], constants[PSI_MIN]
    w_G, w_H = constants[W_G], constants[W_H]
    edges = (ptr, target, prob)
    harmed = (inside, harm_region_of)
    region_words = gated_regions.size
    delay = hit_regions_of.shape[1] // region_words
    regions = ring_of.shape[1] // delay
    steps = trace.shape[0] // stats.COUNT
    stride = thread_state[EPISODES] if actions.size > thread_state[EPISODES] else 0
    for e in range(thread_state[FIRST], thread_state[END]):
        G, H = fields[0, e], fields[1, e]
        active_nodes, spent_nodes = active_nodes_of[e], spent_nodes_of[e]
        active = (active_nodes, spent_nodes)
        nonzero_regions = nonzero_regions_of[e]
        memory = (G, H, nonzero_regions, ring_of[e], hit_regions_of[e])
        for t in range(steps):
            draw_keys = words_of(keys[PHASE_KEY, e], episode[CLOCK, e])
            gated = schedule[GATED, episode[PHASE, e]] != 0
            code = injection_code(episode, e, actions[t * stride + e])
            size = seed_nodes.shape[1] if code > 0 else 0
            z, a = ((code - 1) // 3, (code - 1) % 3) if code > 0 else (0, 0)
            seeds, miss = seed_nodes[z, :size], seed_miss[z, a, :size]
            for w in range(region_words):
                rest = nonzero_regions[w] & gated_regions[w] if gated else NONE
                at = w << 6
                while rest != NONE:
                    some = np.uint32(rest)
                    if some != 0:  # 32 regions cost as much as two one by one
                        value = psi_of(load(G, at), load(H, at), w_G, w_H, psi_min)
                        store(psi, at, where(ones_of(some) > _ZERO, value, _ONE))
                    rest >>= _HALF
                    at += LANES
            slot = (thread_state[SLOT] + t) % delay
            slot_starts = (slot * regions, slot * region_words)
            output = (trace, t * stats.COUNT, e)
            _update_memory(active_nodes, memory, slot_starts, harmed, own_harm, constants, output)
            if spread != CONTACT and episode[PHASE, e] == DECAY:  # the content is withdrawn
                for w in range(active_nodes.size):
                    active_nodes[w] = spent_nodes[w] = NONE
            _gather(active, (reached_nodes, m), edges, (seeds, miss), s, spread)
            _sample(
                active, (reached_nodes, m), (site, region, sensitive, seeds, miss), (gated, psi),
                ranks, top_k, draw_keys, output, spread,
            )  # fmt: skip
            if thread_state[RECORDING] != 0:
                _record(active_nodes, visits, ever_of[e], frames, t, e)
            if advance_clock(episode, keys, schedule, e):
                for w in range(active_nodes.size):  # a slice would compile numba's check of shapes
                    active_nodes[w] = NONE
        for w in range(region_words):
            rest = nonzero_regions[w]
            while rest != NONE:
                psi[(w << 6) + lowest_bit(rest)] = _ONE
                rest &= rest - BIT
    thread_state[SLOT] = (thread_state[SLOT] + steps) % delay
    return -1


@lean_kernel
def _run_outbreak(table: Any, actions: Any, trace: Any, top_k: int, ranks: Any) -> Any:
    return _run(table, actions, trace, top_k, ranks, OUTBREAK)


@lean_kernel
def _run_cascade(table: Any, actions: Any, trace: Any, top_k: int, ranks: Any) -> Any:
    return _run(table, actions, trace, top_k, ranks, CASCADE)


@lean_kernel
def _run_contact(table: Any, actions: Any, trace: Any, top_k: int, ranks: Any) -> Any:
    return _run(table, actions, trace, top_k, ranks, CONTACT)


RUN_PUSH = {"outbreak": _run_outbreak, "cascade": _run_cascade, "contact": _run_contact}
"""The kernel of each spreading law, see `_run`. A law is compiled when it is first used."""
