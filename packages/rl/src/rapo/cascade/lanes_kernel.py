"""The cascade step for 32 episodes side by side, pushing over the out-edges of active nodes.

For many episodes on one graph: a node that any of the 32 can activate costs a few vector operations
for all of them, every other node nothing. It agrees with `push_kernel`, the other one, bit by bit.

Arrays of a block are flat: element (i, lane) of a table is at `32 i + lane`. Sets are bits of
words, see `rapo_core.bits`; one of nodes or regions holds those that count in any of the 32 lanes.
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
    INJECTING,
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
from rapo_core.bits import BIT, NONE, lowest_bit, mark, marked, unmark
from rapo_core.bundle import kinds_of, unbundled
from rapo_core.fields import harm_of, next_scar, next_trace, psi_of, share_of
from rapo_core.jit import inlined, lean_kernel
from rapo_core.lanes import LANES, add_eight, bits_of, fused, load, ones_of, store, where

_ZERO, _ONE = np.float32(0), np.float32(1)
_LANE, _NO_LANE = np.uint32(1), np.uint32(0)
_NOMINAL, _DEFORMED, _STAY, _PARTITION, _SERVED = range(of.SENSITIVE + 1, 10)
SUMS = 10
"""Rows of the sums of a step: those of the sites of active nodes first."""

_FLOATS, _WORDS, _LONGS = types.float32, types.uint32, types.int64
KINDS = kinds_of(
    types.int32[::1], types.int32[::1], _FLOATS[::1], _FLOATS[::1], _LONGS[::1],
    types.boolean[::1], types.uint64[::1], _LONGS[::1], types.uint64[::1], _FLOATS[::1],
    _LONGS[:, ::1], _FLOATS[:, :, ::1],
    _LONGS[:, ::1], _LONGS[:, ::1], types.uint64[:, ::1], _LONGS[::1],
    _WORDS[:, ::1], types.uint64[:, ::1], _WORDS[:, ::1], _FLOATS[:, ::1],
    _WORDS[:, ::1], types.uint64[:, ::1],
    _FLOATS[:, :, ::1], _FLOATS[:, ::1], types.uint64[:, ::1], types.uint64[:, ::1],
    _FLOATS[:, ::1], _WORDS[:, ::1], types.uint64[:, ::1],
)  # fmt: skip
"""The arrays of the kernel: those of `positions`, and then of B blocks:

- active: (B, n) a bit per lane, 0 where `now`, (B, words) the set of active nodes, lacks a node.
- spent: (B, n) a bit per lane: was active in this phase and tries no neighbours any more.
- m: (B, 2 * n * 32) first 1 - b, 1 where a lane injects nothing; then room for 1 - q.
- holders: (B, n) the lanes that inject there, a bit each.
- laid: (B, words) the nodes where any does, a set.
- fields: (2, B, R * 32) G and H.
- ring: (B, D * R * 32) affected counts of the last D steps.
- awake: (B, region words) a set that holds every region whose fields are not 0.
- stirred: (B, D * region words) for each slot of the ring the same about its rows.
- scratch: (B, ...) numbers, the totals 0 between steps; (B, 64) words; (B, ...) sets.
"""


@inlined
def _lay_injection(code: int, before: int, lane: int, seeds: Any, m: Any, holders: Any,
                   laid: Any) -> None:  # fmt: skip
    """Rewrite one lane's `1 - b` after its stimulus, action or phase changed."""
    nodes, miss = seeds
    own = _LANE << np.uint32(lane)
    z, z_before = (code + 2) // 3, (before + 2) // 3  # stimuli, 0 for none
    if z != z_before:
        if z_before > 0:
            for v in nodes[z_before - 1]:
                m[v * LANES + lane] = _ONE
                holders[v] &= ~own
                if holders[v] == _NO_LANE:
                    unmark(laid, v)
        if z > 0:
            for v in nodes[z - 1]:
                holders[v] |= own
                mark(laid, v)
    if z > 0:
        to, values = nodes[z - 1], miss[z - 1, code - 1 - 3 * (z - 1)]
        for j in range(to.size):  # an unsigned index has no sign to be tested
            m[np.uint64(to[j] * LANES + lane)] = values[j]


@inlined
def _remember(now: Any, active: Any, G: Any, H: Any, awake: Any, ring: Any, stirred: Any,
              slot: int, inside: Any, credit_of: Any, law: Any, trace: Any, top: int,
              first: int) -> None:  # fmt: skip
    """Delayed harm: apply who was affected `D` steps ago, store who is now, report the sums.

    A region that is not awake has G = H = 0 in all lanes; one that is not stirred has no affected
    nodes in this slot of the ring, and its row there is 0.
    """
    keep, alpha, per_node = law[of.KEPT], law[of.ALPHA], law[of.PER_NODE]
    delta, eta, tau = law[of.DELTA], law[of.ETA], law[of.TAU]
    live = G.size // LANES
    base, start = slot * live * LANES, slot * awake.size
    zero = ones_of(_NO_LANE)
    k = zero
    for w in range(awake.size):
        rest = stirred[start + w]
        while rest != NONE:
            k = k + load(ring, base + ((w << 6) + lowest_bit(rest)) * LANES)
            rest &= rest - BIT
    harm = harm_of(k, per_node)
    gain = alpha * harm
    traces, gains, scars = zero, zero, zero
    for w in range(awake.size):
        arriving = stirred[start + w]
        stirred[start + w] = NONE
        awake[w] |= arriving
        rest = awake[w]
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
            store(G, at, next_trace(g, inflow, keep))
            traces, gains, scars = traces + g, gains + (grown - h), scars + grown
    for w in range(now.size):
        rest = now[w] & inside[w]
        while rest != NONE:
            v = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            r = credit_of[v]
            at = base + r * LANES
            store(ring, at, load(ring, at) + ones_of(active[v]))
            stirred[start + (r >> 6)] |= BIT << np.uint64(r & 63)
    store(trace[top + row.HARM], first, harm)
    store(trace[top + row.TRACE], first, traces)
    store(trace[top + row.SCAR_GAIN], first, gains)
    store(trace[top + row.SCAR], first, scars)


@inlined
def _gather(now: Any, active: Any, spent: Any, pushed: Any, m: Any, edges: Any, s: Any,
            spread: int) -> None:  # fmt: skip
    """Collect `m_v = 1 - q_v` of every node that active ones can activate.

    The first half of `m` holds 1 - b, the second the products, for nodes in `pushed`: a node's
    first factor takes it from one to the other, without a branch that could not be predicted.
    """
    ptr, target, prob = edges
    half = m.size >> 1
    for w in range(now.size):
        pushed[w] = now[w] if spread != of.CONTACT or s > _ZERO else NONE
        rest = pushed[w]
        while rest != NONE:
            v = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            at = v * LANES
            rests = load(m, at)
            if spread == of.CONTACT:
                rests = rests * fused(-s, ones_of(active[v]), _ONE)
            store(m, half + at, rests)
    for w in range(now.size):
        rest = now[w]
        while rest != NONE:
            u = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            trying = active[u] & ~spent[u] if spread == of.CASCADE else active[u]
            if spread == of.CASCADE and trying == _NO_LANE:
                continue
            lanes = ones_of(trying)
            for e in range(ptr[u], ptr[u + 1]):
                v = np.int64(target[e])
                at = v * LANES
                have = load(m, at + half * marked(pushed, v))
                store(m, half + at, have * fused(-prob[e], lanes, _ONE))
                mark(pushed, v)


@inlined
def _sample(now: Any, active: Any, spent: Any, pushed: Any, laid: Any, m: Any, nodes: Any,
            bent: Any, psi: Any, words: Any, totals: Any, sums: Any, s: Any,
            spread: int) -> None:  # fmt: skip
    """Sample A_{t+1} in place of A_t and add up the sums of the step."""
    site, region, sensitive = nodes
    k0, k1 = load(words, 0), load(words, LANES)
    half = m.size >> 1
    for w in range(now.size):
        injected = laid[w]
        rest = now[w] & ~(pushed[w] | injected)
        while rest != NONE:
            active[(w << 6) + lowest_bit(rest)] = _NO_LANE
            rest &= rest - BIT
        rest = pushed[w] | injected
        some = NONE
        while rest != NONE:
            v = (w << 6) + lowest_bit(rest)
            own = rest & (~rest + BIT)
            rest ^= own
            at = v * LANES
            missed = load(m, at + half * marked(pushed, v))
            was = active[v]
            closed = _NO_LANE if spread == of.CONTACT else was | spent[v]
            if closed != _NO_LANE:
                missed = where(ones_of(closed) > _ZERO, _ONE, missed)
                if spread == of.OUTBREAK:
                    missed = where(ones_of(was) > _ZERO, _ONE - s, missed)
            q = _ONE - missed
            draws = draw(k0, k1, v)
            r = region[v]
            deformed = r >= 0 and marked(bent, r) != 0
            if deformed:
                passed = q * load(psi, r * LANES)
                born = bits_of(draws * (passed + missed) < passed)
            else:  # psi = 1: the same test, since (1 - m) + m is exactly 1
                passed = q
                born = bits_of(draws < q)
            if spread == of.CASCADE:
                born |= was
                spent[v] = was
            elif spread == of.OUTBREAK:
                spent[v] |= was & ~born
            active[v] = born
            if sensitive[v]:
                if closed != _NO_LANE:  # they cannot be entered and do not count
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
                    add_eight(totals, lowest_bit(lanes) * of.SITE, site, v * of.SITE)
                    lanes &= lanes - BIT
        now[w] = some


@inlined
def _report(totals: Any, sums: Any, trace: Any, top: int, first: int) -> None:
    """Turn the sums of a step into its rows of statistics; leave `totals` all 0."""
    for lane in range(LANES):
        for i in range(of.SENSITIVE + 1):
            sums[i * LANES + lane] = totals[lane * of.SITE + i]
            totals[lane * of.SITE + i] = _ZERO
    reach = load(sums, of.REACH * LANES)
    x, y, spread = centroid_and_spread(
        load(sums, of.X * LANES), load(sums, of.Y * LANES), load(sums, of.SQUARES * LANES), reach
    )
    store(trace[top + row.REACH], first, reach)
    store(trace[top + row.SENSITIVE], first, load(sums, of.SENSITIVE * LANES))
    store(trace[top + row.CENTROID_X], first, x)
    store(trace[top + row.CENTROID_Y], first, y)
    store(trace[top + row.SPREAD], first, spread)
    store(trace[top + row.SERVED], first, load(sums, _SERVED * LANES))
    store(trace[top + row.ENTRY_NOMINAL], first, load(sums, _NOMINAL * LANES))
    store(trace[top + row.ENTRY_DEFORMED], first, load(sums, _DEFORMED * LANES))
    store(trace[top + row.STAY_NOMINAL], first, load(sums, _STAY * LANES))
    store(trace[top + row.PARTITION], first, load(sums, _PARTITION * LANES))


@inlined
def _withdraw(now: Any, active: Any, spent: Any, lanes: Any, begins: Any) -> None:
    """Make all nodes inactive in the lanes of a mask; forget in those of another who was active."""
    if lanes != _NO_LANE:
        for w in range(now.size):
            rest = now[w]
            while rest != NONE:
                active[(w << 6) + lowest_bit(rest)] &= ~lanes
                rest &= rest - BIT
    if begins != _NO_LANE:
        for v in range(spent.size):
            spent[v] &= ~begins


@inlined
def _empty(now: Any, active: Any, lane: int) -> None:
    """Make all nodes inactive in one lane."""
    for w in range(now.size):
        rest = now[w]
        while rest != NONE:
            v = (w << 6) + lowest_bit(rest)
            rest &= rest - BIT
            active[v] &= ~(_LANE << np.uint32(lane))


@inlined
def _run(table: Any, actions: Any, trace: Any, spread: int) -> Any:
    """Run as many steps as `trace` has room for of the blocks of one thread, all in one call.

    Args:
        table: of a bundle of `KINDS`.
        actions: (E,) int64 for all steps, or (steps * E,), those of the first step first.
        trace: (steps * len(STATS), E rounded up to 32) float32, filled.
        spread: the spreading law, a constant, so that each law has a kernel of its own.

    Returns:
        -1, or the index of an action that is not 0, 1 or 2: then nothing has been run.
    """
    (ptr, target, prob, site, region, sensitive, inside, credit_of, designated, law,
     seed_nodes, seed_miss, schedule, episode, keys, turn, active_of, now_of, spent_of,
     m_of, holders_of, laid_of, fields, ring_of, awake_of, stirred_of, numbers_of, draws_of,
     sets_of) = unbundled(table, KINDS)  # fmt: skip
    bad = first_unknown(actions)
    if bad >= 0:
        return bad
    s, w_G, w_H, psi_min = law[of.PERSISTENCE], law[of.W_G], law[of.W_H], law[of.PSI_MIN]
    live = fields.shape[2] // LANES
    delay = ring_of.shape[1] // (live * LANES)
    steps = trace.shape[0] // row.COUNT
    episodes = turn[EPISODES]
    stride = episodes if actions.size > episodes else 0
    seeds = (seed_nodes, seed_miss)
    edges = (ptr, target, prob)
    nodes = (site, region, sensitive)
    for b in range(turn[FIRST], turn[END]):
        first = b * LANES
        G, H, now, active, m = fields[0, b], fields[1, b], now_of[b], active_of[b], m_of[b]
        words, awake, laid, spent = draws_of[b], awake_of[b], laid_of[b], spent_of[b]
        totals = numbers_of[b, : of.SITE * LANES]
        sums = numbers_of[b, of.SITE * LANES : (of.SITE + SUMS) * LANES]
        gated = numbers_of[b, (of.SITE + SUMS) * LANES : (of.SITE + SUMS + 1) * LANES]
        psi = numbers_of[b, (of.SITE + SUMS + 1) * LANES :]
        pushed, bent = sets_of[b, : now.size], sets_of[b, now.size :]
        for t in range(steps):
            some_gated, changed = False, NONE
            withdrawn, begins = _NO_LANE, _NO_LANE
            chosen = t * stride
            for lane in range(LANES):
                e = first + lane
                words[lane], words[LANES + lane] = words_of(keys[PHASE_KEY, e], episode[CLOCK, e])
                gates = schedule[GATED, episode[PHASE, e]] != 0
                gated[lane] = _ONE if gates else _ZERO
                some_gated |= gates
                if spread != of.CONTACT and episode[PHASE, e] == DECAY:
                    withdrawn |= _LANE << np.uint32(lane)
                    if episode[CLOCK, e] == 0:
                        begins |= _LANE << np.uint32(lane)
                code = injection_code(episode, e, actions[chosen + min(e, episodes - 1)])
                changed |= np.uint64(code != episode[INJECTING, e]) << np.uint64(lane)
            while changed != NONE:  # a set, as no processor can foresee where an agent changes
                lane = lowest_bit(changed)
                changed &= changed - BIT
                e = first + lane
                code = injection_code(episode, e, actions[chosen + min(e, episodes - 1)])
                _lay_injection(code, episode[INJECTING, e], lane, seeds, m, holders_of[b], laid)
                episode[INJECTING, e] = code
            for w in range(bent.size):
                bent[w] = awake[w] & designated[w] if some_gated else NONE
                rest = bent[w]
                while rest != NONE:
                    at = ((w << 6) + lowest_bit(rest)) * LANES
                    rest &= rest - BIT
                    value = psi_of(load(G, at), load(H, at), w_G, w_H, psi_min)
                    store(psi, at, where(load(gated, 0) > _ZERO, value, _ONE))
            _remember(
                now, active, G, H, awake, ring_of[b], stirred_of[b], (turn[SLOT] + t) % delay,
                inside, credit_of, law, trace, t * row.COUNT, first,
            )  # fmt: skip
            if spread != of.CONTACT:
                _withdraw(now, active, spent, withdrawn, begins)
            zero = ones_of(_NO_LANE)
            for i in range(_NOMINAL, SUMS):
                start = _ONE if i in (_STAY, _PARTITION) else _ZERO
                store(sums, i * LANES, zero + start)
            _gather(now, active, spent, pushed, m, edges, s, spread)
            _sample(
                now, active, spent, pushed, laid, m, nodes, bent, psi, words, totals, sums, s,
                spread,
            )  # fmt: skip
            _report(totals, sums, trace, t * row.COUNT, first)
            for lane in range(LANES):
                if advance_clock(episode, keys, schedule, first + lane):
                    _empty(now, active, lane)
    turn[SLOT] = (turn[SLOT] + steps) % delay
    return -1


@lean_kernel
def _run_outbreak(table: Any, actions: Any, trace: Any) -> Any:
    return _run(table, actions, trace, of.OUTBREAK)


@lean_kernel
def _run_cascade(table: Any, actions: Any, trace: Any) -> Any:
    return _run(table, actions, trace, of.CASCADE)


@lean_kernel
def _run_contact(table: Any, actions: Any, trace: Any) -> Any:
    return _run(table, actions, trace, of.CONTACT)


RUN_LANES = {"outbreak": _run_outbreak, "cascade": _run_cascade, "contact": _run_contact}
"""The kernel of each spreading law, see `_run`. A law is compiled when it is first used."""
