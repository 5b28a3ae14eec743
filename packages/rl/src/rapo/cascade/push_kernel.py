"""The cascade step one episode at a time, pushing over the out-edges of active nodes.

Active and touched nodes are bits of a map, so the cost follows the cascade, not the graph: for a
few episodes, large graphs and the `topk` scope, which needs all of an episode's q at once. Scanning
a map yields nodes in ascending order, the order in which `lanes_kernel` multiplies and adds: the
two agree bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from rapo.cascade import kernel_arrays as of
from rapo.cascade import stats as row
from rapo.cascade.clock import (
    CLOCK,
    END,
    EPISODES,
    FIRST,
    GATED,
    PHASE,
    PHASE_KEY,
    SLOT,
    advance_clock,
    first_unknown,
    injection_code,
)
from rapo.cascade.draws import draw, words_of
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
    _LONGS[:, ::1], _LONGS[:, ::1], _SETS[:, ::1], _LONGS[::1],
    _SETS[:, ::1], _SETS[:, ::1], _FLOATS[:, :, ::1], _FLOATS[:, ::1], _SETS[:, ::1],
    _SETS[:, ::1], _SETS[::1], _FLOATS[::1], _FLOATS[::1],
)  # fmt: skip
"""The arrays of the kernel: those of `positions`, and then of E episodes:

- active: (E, words) sets.
- spent: (E, words) sets of nodes that were active in this phase and try no neighbours any more.
- fields: (2, E, R') G and H, R' the words of a set of regions times 64.
- ring: (E, D * R) affected counts of the last D steps.
- awake: (E, region words) a set that holds every region whose fields are not 0.
- stirred: (E, D * region words) for each slot of the ring the same about its counts.
- touched: (words,) a set, empty between calls.
- m: (n,) 1 between calls.
- psi: (R',) 1 between calls.
"""


@inlined
def _gather(now: Any, spent: Any, touched: Any, m: Any, edges: Any, seeds: Any, s: Any,
            spread: int) -> None:  # fmt: skip
    """Collect `m_v = 1 - q_v` of every node that can become active; `m` is 1 elsewhere."""
    ptr, target, prob = edges
    nodes, miss = seeds
    for j in range(nodes.size):
        m[nodes[j]] = miss[j]
        mark(touched, nodes[j])
    if spread == of.CONTACT and s > _ZERO:
        for w in range(now.size):
            touched[w] |= now[w]
            bits = now[w]
            while bits != NONE:
                m[(w << 6) + lowest_bit(bits)] *= _ONE - s
                bits &= bits - BIT
    for w in range(now.size):
        bits = now[w] & ~spent[w] if spread == of.CASCADE else now[w]
        while bits != NONE:
            u = (w << 6) + lowest_bit(bits)
            bits &= bits - BIT
            for e in range(ptr[u], ptr[u + 1]):
                v = target[e]
                m[v] *= _ONE - prob[e]
                mark(touched, v)
    if spread != of.CONTACT:
        _close(now, spent, touched, m, s, spread)


@inlined
def _close(now: Any, spent: Any, touched: Any, m: Any, s: Any, spread: int) -> None:
    """Give nodes that nobody can activate their own `m`: 1 - s where active ones may stay, else 1.

    Active nodes join `touched`, since the step's sums run over them.
    """
    for w in range(now.size):
        bits = touched[w] & (now[w] | spent[w])
        while bits != NONE:
            m[(w << 6) + lowest_bit(bits)] = _ONE
            bits &= bits - BIT
        touched[w] |= now[w]
        bits = now[w] if spread == of.OUTBREAK else NONE
        while bits != NONE:
            m[(w << 6) + lowest_bit(bits)] = _ONE - s
            bits &= bits - BIT


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
def _sample(now: Any, spent: Any, touched: Any, m: Any, ranks: Any, site: Any, region: Any,
            sensitive: Any, gated: Any, psi: Any, seeds: Any, k: int, k0: Any, k1: Any, trace: Any,
            top: int, e: int, spread: int) -> None:  # fmt: skip
    """Sample A_{t+1} in place of A_t, clear `touched` and `m`, report the statistics."""
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
        touched[w] = NONE
        was, born = now[w], NONE
        closed = NONE if spread == of.CONTACT else was | spent[w]
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
            if j < nodes.size and nodes[j] == v:
                b = _ONE - miss[j]
                if conductance != _ONE:  # else the quotient is b itself: (1 - m) + m is exactly 1
                    b *= conductance
                    b /= b + miss[j]
                served += b
                j += 1
            stays = spread == of.CASCADE and own & was != NONE
            if stays or draw(k0, k1, v) * (passed + missed) < passed:
                born |= own
                x += site[v * of.SITE + of.X]
                y += site[v * of.SITE + of.Y]
                squares += site[v * of.SITE + of.SQUARES]
                reach += _ONE
                inside += site[v * of.SITE + of.SENSITIVE]
        if spread == of.OUTBREAK:
            spent[w] |= was & ~born
        elif spread == of.CASCADE:
            spent[w] = was
        now[w] = born
    trace[top + row.REACH, e] = reach
    trace[top + row.SENSITIVE, e] = inside
    centre_x, centre_y, spread = centroid_and_spread(x, y, squares, reach)
    trace[top + row.CENTROID_X, e] = centre_x
    trace[top + row.CENTROID_Y, e] = centre_y
    trace[top + row.SPREAD, e] = spread
    trace[top + row.SERVED, e] = served
    trace[top + row.ENTRY_NOMINAL, e] = nominal
    trace[top + row.ENTRY_DEFORMED, e] = deformed
    trace[top + row.STAY_NOMINAL, e] = stay
    trace[top + row.PARTITION, e] = partition


@inlined
def _remember(now: Any, G: Any, H: Any, awake: Any, ring: Any, stirred: Any, live: int,
              slot: int, inside: Any, credit_of: Any, law: Any, trace: Any, top: int,
              e: int) -> None:  # fmt: skip
    """Delayed harm: apply who was affected `D` steps ago, store who is now, report the sums.

    A region that is not awake has G = H = 0; one that is not stirred has no affected nodes in this
    slot of the ring.
    """
    keep, alpha, per_node = law[of.KEPT], law[of.ALPHA], law[of.PER_NODE]
    delta, eta, tau = law[of.DELTA], law[of.ETA], law[of.TAU]
    base, start = slot * live, slot * awake.size
    k = _ZERO
    for w in range(awake.size):
        rest = stirred[start + w]
        stirred[start + w] = NONE
        awake[w] |= rest
        while rest != NONE:
            k += ring[base + (w << 6) + lowest_bit(rest)]
            rest &= rest - BIT
    harm = harm_of(k, per_node)
    gain = alpha * harm
    traces, gains, scars = _ZERO, _ZERO, _ZERO
    for w in range(awake.size):
        rest = awake[w]
        while rest != NONE:
            r = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            g, h = G[r], H[r]
            grown = next_scar(h, g, delta, eta, tau)
            H[r] = grown
            G[r] = next_trace(g, gain * share_of(ring[base + r], k), keep)
            ring[base + r] = _ZERO
            traces += g
            gains += grown - h
            scars += grown
    for w in range(now.size):
        rest = now[w] & inside[w]
        while rest != NONE:
            r = credit_of[(w << 6) + lowest_bit(rest)]
            rest &= rest - BIT
            ring[base + r] += _ONE
            stirred[start + (r >> 6)] |= BIT << np.uint64(r & 63)
    trace[top + row.HARM, e] = harm
    trace[top + row.TRACE, e] = traces
    trace[top + row.SCAR_GAIN, e] = gains
    trace[top + row.SCAR, e] = scars


@inlined
def _run(table: Any, actions: Any, trace: Any, top_k: int, ranks: Any, spread: int) -> Any:
    """Run as many steps as `trace` has room for of the episodes of one thread, all in one call.

    Args:
        table: of a bundle of `KINDS`.
        actions: (E,) int64 for all steps, or (steps * E,), those of the first step first.
        trace: (steps * len(STATS), E) float32, filled.
        top_k: destinations that a `topk` scope deforms, 0 for all.
        ranks: (n,) float32 to rank q in, None if top_k is 0: then ranking is not even compiled.
        spread: the spreading law, a constant, so that each law has a kernel of its own.

    Returns:
        -1, or the index of an action that is not 0, 1 or 2: then nothing has been run.
    """
    (ptr, target, prob, site, region, sensitive, inside, credit_of, designated, law, seed_nodes,
     seed_miss, schedule, episode, keys, turn, active, spent, fields, ring, awake, stirred, touched,
     m, psi) = unbundled(table, KINDS)  # fmt: skip
    bad = first_unknown(actions)
    if bad >= 0:
        return bad
    s, w_G, w_H, psi_min = law[of.PERSISTENCE], law[of.W_G], law[of.W_H], law[of.PSI_MIN]
    edges = (ptr, target, prob)
    delay = stirred.shape[1] // designated.size
    live = ring.shape[1] // delay
    steps = trace.shape[0] // row.COUNT
    stride = turn[EPISODES] if actions.size > turn[EPISODES] else 0
    for e in range(turn[FIRST], turn[END]):
        G, H, now, ended = fields[0, e], fields[1, e], active[e], spent[e]
        for t in range(steps):
            k0, k1 = words_of(keys[PHASE_KEY, e], episode[CLOCK, e])
            gated = schedule[GATED, episode[PHASE, e]] != 0
            code = injection_code(episode, e, actions[t * stride + e])
            size = seed_nodes.shape[1] if code > 0 else 0
            z, a = ((code - 1) // 3, (code - 1) % 3) if code > 0 else (0, 0)
            laid = (seed_nodes[z, :size], seed_miss[z, a, :size])
            for w in range(designated.size):
                rest = awake[e, w] & designated[w] if gated else NONE
                at = w << 6
                while rest != NONE:
                    some = np.uint32(rest)
                    if some != 0:  # 32 regions cost as much as two one by one
                        value = psi_of(load(G, at), load(H, at), w_G, w_H, psi_min)
                        store(psi, at, where(ones_of(some) > _ZERO, value, _ONE))
                    rest >>= _HALF
                    at += LANES
            _remember(
                now, G, H, awake[e], ring[e], stirred[e], live, (turn[SLOT] + t) % delay, inside,
                credit_of, law, trace, t * row.COUNT, e,
            )  # fmt: skip
            if spread != of.CONTACT and episode[PHASE, e] == DECAY:  # the content is withdrawn
                for w in range(now.size):
                    now[w] = ended[w] = NONE
            _gather(now, ended, touched, m, edges, laid, s, spread)
            _sample(
                now, ended, touched, m, ranks, site, region, sensitive, gated, psi, laid, top_k, k0,
                k1, trace, t * row.COUNT, e, spread,
            )  # fmt: skip
            if advance_clock(episode, keys, schedule, e):
                for w in range(now.size):  # a slice would compile numba's check of shapes
                    now[w] = NONE
        for w in range(designated.size):
            rest = awake[e, w]
            while rest != NONE:
                psi[(w << 6) + lowest_bit(rest)] = _ONE
                rest &= rest - BIT
    turn[SLOT] = (turn[SLOT] + steps) % delay
    return -1


@lean_kernel
def _run_outbreak(table: Any, actions: Any, trace: Any, top_k: int, ranks: Any) -> Any:
    return _run(table, actions, trace, top_k, ranks, of.OUTBREAK)


@lean_kernel
def _run_cascade(table: Any, actions: Any, trace: Any, top_k: int, ranks: Any) -> Any:
    return _run(table, actions, trace, top_k, ranks, of.CASCADE)


@lean_kernel
def _run_contact(table: Any, actions: Any, trace: Any, top_k: int, ranks: Any) -> Any:
    return _run(table, actions, trace, top_k, ranks, of.CONTACT)


RUN_PUSH = {"outbreak": _run_outbreak, "cascade": _run_cascade, "contact": _run_contact}
"""The kernel of each spreading law, see `_run`. A law is compiled when it is first used."""
