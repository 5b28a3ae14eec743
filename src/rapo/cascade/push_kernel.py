"""The cascade step one episode at a time, pushing over the out-edges of active nodes.

Active and touched nodes are bits of a map, so the cost follows the cascade, not the graph: for a
few episodes, large graphs and the `topk` scope, which needs all of an episode's q at once. Scanning
a map yields nodes in ascending order, the order in which `lanes_kernel` multiplies and adds: the
two agree bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from rapo.cascade import stats as row
from rapo.cascade.clock import CLOCK, GATED, PHASE, PHASE_KEY, advance_clock, injection_code
from rapo.cascade.rng import draw, words_of
from rapo.cascade.stats import centroid_and_spread
from rapo.core.fields import harm_of, next_scar, next_trace, psi_of, share_of
from rapo.core.jit import inlined, intrinsic, lean_kernel

_ZERO, _ONE = np.float32(0), np.float32(1)
_BIT = np.uint64(1)
_NONE = np.uint64(0)


@intrinsic
def _lowest_bit(typingctx: Any, x: Any) -> Any:
    """Index of the lowest set bit of a uint64 that is not 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@inlined
def _mark(bits: Any, v: int) -> None:
    bits[v >> 6] |= _BIT << np.uint64(v & 63)


@inlined
def _gather(now: Any, touched: Any, m: Any, edges: Any, seeds: Any, s: Any) -> None:
    """Collect `m_v = 1 - q_v` of every node that can become active; `m` is 1 elsewhere."""
    ptr, target, prob = edges
    nodes, miss = seeds
    for j in range(nodes.size):
        m[nodes[j]] = miss[j]
        _mark(touched, nodes[j])
    if s > _ZERO:
        for w in range(now.size):
            touched[w] |= now[w]
            bits = now[w]
            while bits != _NONE:
                m[(w << 6) + _lowest_bit(bits)] *= _ONE - s
                bits &= bits - _BIT
    for w in range(now.size):
        bits = now[w]
        while bits != _NONE:
            u = (w << 6) + _lowest_bit(bits)
            bits &= bits - _BIT
            for e in range(ptr[u], ptr[u + 1]):
                v = target[e]
                m[v] *= _ONE - prob[e]
                _mark(touched, v)


@inlined
def _kth_largest(values: Any, k: int) -> Any:
    """The k-th largest of (N,) values, 1 <= k <= N; reorders them (Hoare's selection).

    `np.partition` would do, but numba takes longer to compile it than the rest of this file.
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
def _top_threshold(touched: Any, m: Any, q: Any, k: int) -> Any:
    """The k-th largest q, and how many nodes with exactly that q still belong to the top k.

    q: (n,) float32, room for the values to be ranked in.
    """
    count = 0
    for w in range(touched.size):
        bits = touched[w]
        while bits != _NONE:
            q[count] = _ONE - m[(w << 6) + _lowest_bit(bits)]
            bits &= bits - _BIT
            count += 1
    if count <= k:
        return -_ONE, 0
    threshold = _kth_largest(q[:count], k)
    larger = 0
    for i in range(count):
        larger += q[i] > threshold
    return threshold, k - larger


@inlined
def _sample(touched: Any, after: Any, m: Any, ranks: Any, site: Any, psi: Any, seeds: Any, k: int,
            k0: Any, k1: Any, trace: Any, t: int, e: int) -> None:  # fmt: skip
    """Sample A_{t+1} into `after`, clear `touched` and `m`, report the statistics of the step."""
    where_x, where_y, region, sensitive = site
    nodes, miss = seeds
    threshold, ties = -_ONE, 0
    if ranks is not None:
        threshold, ties = _top_threshold(touched, m, ranks, k)
    reach, inside, served = _ZERO, _ZERO, _ZERO
    x, y, squares = _ZERO, _ZERO, _ZERO
    nominal, deformed, stay, partition = _ZERO, _ZERO, _ONE, _ONE
    j = 0
    for w in range(touched.size):
        bits = touched[w]
        touched[w] = _NONE
        born = _NONE
        while bits != _NONE:
            v = (w << 6) + _lowest_bit(bits)
            bits &= bits - _BIT
            missed = m[v]
            m[v] = _ONE
            q = _ONE - missed
            conductance = psi[region[v]] if region[v] >= 0 else _ONE
            if q < threshold:
                conductance = _ONE
            elif q == threshold:
                conductance = conductance if ties > 0 else _ONE
                ties -= 1
            passed = q * conductance
            if sensitive[v]:
                nominal += q
                deformed += passed
                stay *= missed
                partition *= passed + missed
            if j < nodes.size and nodes[j] == v:
                b = (_ONE - miss[j]) * conductance
                served += b / (b + miss[j])
                j += 1
            u = draw(k0, k1, v)
            if u * (passed + missed) < passed:
                born |= _BIT << np.uint64(v & 63)
                px, py = where_x[v], where_y[v]
                reach += _ONE
                x += px
                y += py
                squares += px * px + py * py
                if sensitive[v]:
                    inside += _ONE
        after[w] = born
    trace[t, row.REACH, e] = reach
    trace[t, row.SENSITIVE, e] = inside
    centre_x, centre_y, spread = centroid_and_spread(x, y, squares, reach)
    trace[t, row.CENTROID_X, e] = centre_x
    trace[t, row.CENTROID_Y, e] = centre_y
    trace[t, row.SPREAD, e] = spread
    trace[t, row.SERVED, e] = served
    trace[t, row.ENTRY_NOMINAL, e] = nominal
    trace[t, row.ENTRY_DEFORMED, e] = deformed
    trace[t, row.STAY_NOMINAL, e] = stay
    trace[t, row.PARTITION, e] = partition


@inlined
def _remember(now: Any, G: Any, H: Any, counts: Any, ring: Any, slot: int, credit_of: Any,
              law: Any, trace: Any, t: int, e: int) -> None:  # fmt: skip
    """Delayed harm: store who is affected now, apply who was `D` steps ago, report the sums."""
    keep, alpha, delta, eta, tau, per_node = law[1], law[2], law[3], law[4], law[5], law[9]
    live = G.size
    for r in range(live):
        counts[r] = _ZERO
    for w in range(now.size):
        bits = now[w]
        while bits != _NONE:
            r = credit_of[(w << 6) + _lowest_bit(bits)]
            bits &= bits - _BIT
            if r >= 0:
                counts[r] += _ONE
    then = ring[slot * live : (slot + 1) * live]
    k = _ZERO
    for r in range(live):
        k += then[r]
    harm = harm_of(k, per_node)
    gain = alpha * harm
    traces, gains, scars = _ZERO, _ZERO, _ZERO
    for r in range(live):
        g, h = G[r], H[r]
        grown = next_scar(h, g, delta, eta, tau)
        H[r] = grown
        G[r] = next_trace(g, gain * share_of(then[r], k), keep)
        then[r] = counts[r]
        traces += g
        gains += grown - h
        scars += grown
    trace[t, row.HARM, e] = harm
    trace[t, row.TRACE, e] = traces
    trace[t, row.SCAR_GAIN, e] = gains
    trace[t, row.SCAR, e] = scars


@lean_kernel
def run_push(
    episodes: Any, steps: int, top_k: int, slot: int, edges: Any, site: Any, credit_of: Any,
    seeds: Any, designated: Any, law: Any, schedule: Any, episode: Any, keys: Any, actions: Any,
    active: Any, fields: Any, ring: Any, touched: Any, scratch: Any, trace: Any,
) -> None:  # fmt: skip
    """Run `steps` steps of the episodes `episodes[0]..episodes[1] - 1`, all in one call.

    Args:
        episodes: (first, end) episode numbers.
        steps: how many, >= 1.
        top_k: destinations that a `topk` scope deforms, 0 for all.
        slot: ring entry that is D steps old.
        edges: out-edges (ptr, target, prob).
        site: positions minus 0.5 (x, y), live region of each node or -1, V_sens membership.
        credit_of: (n,) live region to which a sensitive node's harm is credited, else -1.
        seeds: (Z, k) seed nodes, (Z, 3, k) float32 1 - b.
        designated: (R,) whether a live region may be deformed.
        law: (10,) float32, s, 1 - lambda, alpha, delta, eta, tau, w_G, w_H, psi_min, harm per node.
        schedule: (3, 3), see `clock`.
        episode: (8, E), see `clock`.
        keys: (2, E), see `clock`.
        actions: (E,) int64.
        active: (E, words) uint64 bitmaps.
        fields: (2, E, R) float32, G and H of the live regions.
        ring: (E, D * R) float32, affected counts of the last D steps.
        touched: (2, words) uint64, the first half all 0 between calls.
        scratch: float32, m (n,) all 1 between calls, psi (R,), counts (R,), and (n,) to rank q in,
            None if top_k is 0: then ranking is not even compiled.
        trace: (steps, rows, E) float32, filled.
    """
    s, w_G, w_H, psi_min = law[0], law[6], law[7], law[8]
    nodes_of, miss_of = seeds
    m, psi, counts, ranks = scratch
    live = designated.size
    delay = ring.shape[1] // live
    for e in range(episodes[0], episodes[1]):
        G, H, now, after = fields[0, e], fields[1, e], active[e], touched[1]
        for t in range(steps):
            k0, k1 = words_of(keys[PHASE_KEY, e], episode[CLOCK, e])
            gated = schedule[GATED, episode[PHASE, e]] != 0
            code = injection_code(episode, e, actions[e])
            size = nodes_of.shape[1] if code > 0 else 0
            z, a = ((code - 1) // 3, (code - 1) % 3) if code > 0 else (0, 0)
            laid = (nodes_of[z, :size], miss_of[z, a, :size])
            for r in range(live):
                value = psi_of(G[r], H[r], w_G, w_H, psi_min)
                psi[r] = value if gated and designated[r] else _ONE
            _gather(now, touched[0], m, edges, laid, s)
            _sample(touched[0], after, m, ranks, site, psi, laid, top_k, k0, k1, trace, t, e)
            _remember(now, G, H, counts, ring[e], (slot + t) % delay, credit_of, law, trace, t, e)
            cleared = advance_clock(episode, keys, schedule, e)
            for w in range(now.size):  # a slice would compile numba's check of shapes
                now[w] = _NONE if cleared else after[w]
