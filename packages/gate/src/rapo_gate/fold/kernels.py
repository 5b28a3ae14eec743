"""One region, stepped tick by tick: the kernels of the fold.

A region is stepped through its own rows and exposure points alone, with the core's own functions
for the fields. Where nothing can change any more it goes straight to its next row.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo_core.fields import next_scar, next_trace
from rapo_core.jit import inlined, kernel
from rapo_gate.config import MOST_SOURCES
from rapo_gate.fold.formula import Params, enough, harm_of, psi_at
from rapo_gate.fold.ledger import MOST, UNIT
from rapo_gate.fold.records import AGREEING, Inputs, Records, Stops

BITS = 59
"""Of the whole numbers in which loud reporters are added up, whatever their order."""
SLACK = 1.01
"""By which factor the bound of reporters may be above the one that is held."""
VANISHED = 1e-30
"""Reports in memory below this are none."""


class Work(NamedTuple):
    """What kernels step regions with."""

    f: Records
    """Changed by the kernels."""
    inputs: Inputs
    free: npt.NDArray[np.bool_]
    """Whether a slot is on the allow-list: nothing counts there."""
    rates: npt.NDArray[np.float64]
    """Prior rate by topic."""
    p: Params
    stops: Stops
    """Written."""


@inlined
def _next_row(i: int, inputs: Any) -> Any:
    """Number of the next row that counts, -1 if there is none; skips what was rolled back."""
    span = inputs.row_span
    while span.next[i] < span.end[i]:
        row = inputs.row[span.next[i]]
        if inputs.taken[row] >= 0:
            return row
        span.next[i] += 1
    return -1


@inlined
def _heed_confirmations(cell: Any, i: int, tick: int, inputs: Any) -> None:
    """Heed the confirmations of ticks before `tick`."""
    span = inputs.confirmed_span
    while span.next[i] < span.end[i] and inputs.confirmed_tick[span.next[i]] < tick:
        until = inputs.confirmed_until[span.next[i]]
        cell.confirmed_until = max(cell.confirmed_until, until)
        span.next[i] += 1


@inlined
def _expose(cell: Any, i: int, tick: int, inputs: Any, fade: float) -> None:
    """Exposures in memory in a tick: stepped; after a new point or a jump, from the last point."""
    span = inputs.point_span
    from_point = tick - cell.tick > 1
    while span.next[i] < span.end[i] and inputs.point_tick[span.next[i]] <= tick:
        cell.point_tick = inputs.point_tick[span.next[i]]
        cell.point_E = inputs.point_E[span.next[i]]
        from_point = True
        span.next[i] += 1
    if not from_point:
        cell.E *= fade
    elif cell.point_tick > 0:
        cell.E = cell.point_E * fade ** float(tick - cell.point_tick)


@inlined
def _remember(names: Any, ticks: Any, first: int, end: int, name: int, tick: int) -> None:
    """Move a name to the head of a list, the newest first; the oldest falls out of a full one."""
    at = first
    while at < end - 1 and ticks[at] > 0 and names[at] != name:
        at += 1
    while at > first:
        names[at], ticks[at] = names[at - 1], ticks[at - 1]
        at -= 1
    names[first], ticks[first] = name, tick


@inlined
def _agreeing_since(ticks: Any, p: Any) -> Any:
    """Since which tick enough reporters and kinds of signal have agreed; 0 if they do not."""
    return min(ticks[p.min_sources - 1], ticks[MOST_SOURCES + p.min_signals - 1])


@inlined
def _take_rows(cell: Any, slot: int, i: int, tick: int, work: Any) -> None:
    """Take in the rows of a tick: reports in memory, each reporter's part of them, agreement."""
    f, inputs, p = work.f, work.inputs, work.p
    span, names, ticks = inputs.row_span, f.names[slot], f.ticks[slot]
    begun, total, agrees = span.next[i], 0, False
    while span.next[i] < span.end[i] and inputs.rows[inputs.row[span.next[i]]].tick == tick:
        number = inputs.row[span.next[i]]
        row, amount = inputs.rows[number], inputs.taken[number]
        if amount >= 0:
            total = min(total + amount, MOST)
            f.pairs[row.by_source].now = min(f.pairs[row.by_source].now + amount, MOST)
            if not row.bystander:
                agrees = True
                _remember(names, ticks, 0, MOST_SOURCES, row.source, tick)
                _remember(names, ticks, MOST_SOURCES, AGREEING, row.signal, tick)
        span.next[i] += 1
    if agrees:
        since = _agreeing_since(ticks, p)
        cell.agreed_until = since + p.window - 1 if since > 0 else 0
    cell.S += total / UNIT
    cell.heard = True
    grain = _grain(cell.S)
    louder = np.int64(0)
    for at in range(begun, span.next[i]):
        pair = f.pairs[inputs.rows[inputs.row[at]].by_source]
        if pair.now > 0:
            old = pair.mass * p.fade ** float(tick - pair.tick) if pair.mass > 0 else 0.0
            pair.mass = old + pair.now / UNIT
            pair.tick = tick
            pair.now = 0
            if pair.loud:
                louder += np.int64(np.rint(pair.mass * grain)) - np.int64(np.rint(old * grain))
            elif pair.mass > cell.bound:
                pair.loud = True
                louder += np.int64(np.rint(pair.mass * grain))
                cell.loud += 1
    cell.L += louder / grain


@inlined
def _grain(S: float) -> float:
    """A power of two that makes `S`, of which reporters' masses are parts, a large whole number."""
    return ldexp(1.0, BITS - frexp(S)[1])


@inlined
def _tell_apart(cell: Any, i: int, tick: int, bound: float, work: Any) -> None:
    """Look at all reporters of a region: who is beyond the bound?"""
    total, loud = np.int64(0), 0
    passed, fade = 0, 1.0  # of the pair before: most were looked at together the last time
    grain = _grain(cell.S)
    span = work.inputs.pair_span
    for at in range(span.next[i], span.end[i]):
        pair = work.f.pairs[work.inputs.pair[at]]
        if pair.mass > 0:
            if tick - pair.tick != passed:
                passed = tick - pair.tick
                fade = work.p.fade ** float(passed)
            pair.mass *= fade
            pair.tick = tick
        pair.loud = pair.mass > bound
        if pair.loud:
            loud += 1
            total += np.int64(np.rint(pair.mass * grain))
    cell.L, cell.loud, cell.bound = total / grain, loud, bound


@inlined
def _bounded(cell: Any, i: int, tick: int, prior: float, work: Any) -> Any:
    """Reports in memory, each reporter's part bounded.

    With k reporters needed, each counts for at most 1/(k - 1/2) of what holds the trace at its
    threshold: what carries a region over it must come from k of them, however long ago and however
    faintly others agreed. The bound is held a little low: it decays as reports do, so that who is
    beyond it stays so, and is set anew when it has become too low.
    """
    p = work.p
    n = cell.E + p.shrinkage
    bound = enough(n, prior, p.shrinkage, p.z, p.goal) * p.part
    if bound > cell.bound * SLACK or bound < cell.bound:
        _tell_apart(cell, i, tick, bound, work)
    return max(cell.S - cell.L + cell.loud * cell.bound, 0.0) if cell.loud > 0 else cell.S


@inlined
def _step(cell: Any, slot: int, i: int, tick: int, due: int, stop: int, work: Any) -> Any:
    """The region in one tick; `due` is its next row, of this tick or later. The next stop."""
    p, inputs = work.p, work.inputs
    prior, passed = work.rates[cell.topic], tick - cell.tick
    fade = p.fade if passed == 1 else p.fade ** float(passed)
    cell.S = cell.S * fade if cell.S * fade > VANISHED else 0.0
    cell.L, cell.bound = cell.L * fade, cell.bound * fade
    _expose(cell, i, tick, inputs, p.fade)
    _heed_confirmations(cell, i, tick, inputs)
    if due >= 0 and inputs.rows[due].tick == tick:
        _take_rows(cell, slot, i, tick, work)
    confirmed = tick <= cell.confirmed_until
    could = harm_of(cell.S, cell.E, prior, p)
    harm = could
    if could > 0 and p.min_sources > 1 and not confirmed:
        A = _bounded(cell, i, tick, prior, work)
        if A < cell.S:
            harm = harm_of(A, cell.E, prior, p)
    sure = confirmed or tick <= cell.agreed_until
    eta = p.eta if sure else 0.0
    grew = eta * max(0.0, cell.G - p.tau)
    cell.H = next_scar(cell.H, cell.G, p.delta, eta, p.tau)
    if grew > 0:
        cell.grown = tick
    expired = p.lifetime > 0 and cell.H > 0 and tick - cell.grown >= p.lifetime
    if expired:
        cell.H = 0.0
    cell.G = next_trace(cell.G, p.alpha * harm, p.keep)
    ages = cell.H > 0 and (p.delta < 1 or p.lifetime > 0)
    cell.live = could > 0 or cell.G > 0 or ages
    cell.tick = tick
    while stop < work.stops.first[i + 1] and work.stops.ticks[stop] == tick:
        at = work.stops.course[stop]
        at.G, at.H, at.harm, at.S, at.E = cell.G, cell.H, harm, cell.S, cell.E
        at.grew = 0.0 if expired else grew
        at.held = 0.0 if expired else p.delta
        at.fade, at.keep = p.fade, p.keep
        at.psi = psi_at(cell.G, cell.H, sure, p)
        stop += 1
    return stop


@inlined
def _rest(cell: Any, i: int, until: int, stop: int, work: Any) -> Any:
    """Write down the stops up to `until`, in which nothing happens; returns the next one."""
    p, stops = work.p, work.stops
    while stop < stops.first[i + 1] and stops.ticks[stop] <= until:
        tick = stops.ticks[stop]
        if tick > cell.tick > 0:
            _heed_confirmations(cell, i, tick, work.inputs)
            at, fade = stops.course[stop], p.fade ** float(tick - cell.tick)
            at.G, at.H, at.harm, at.S, at.E = cell.G, cell.H, 0.0, cell.S * fade, cell.E * fade
            at.grew, at.held, at.fade, at.keep = 0.0, 1.0, p.fade, p.keep
            sure = tick <= max(cell.agreed_until, cell.confirmed_until)
            at.psi = psi_at(cell.G, cell.H, sure, p)
        stop += 1
    return stop


@inlined
def _clear(cell: Any, slot: int, i: int, work: Any) -> None:
    """Let a region begin again, with its topic."""
    f, span = work.f, work.inputs.pair_span
    for at in range(f.ticks.shape[1]):
        f.names[slot, at], f.ticks[slot, at] = 0, 0
    for at in range(span.next[i], span.end[i]):
        pair = f.pairs[work.inputs.pair[at]]
        pair.mass, pair.tick, pair.now, pair.loud = 0.0, 0, 0, False
    cell.tick, cell.point_tick, cell.point_E, cell.loud = 0, 0, 0.0, 0
    cell.S, cell.E, cell.G, cell.H = 0.0, 0.0, 0.0, 0.0
    cell.L, cell.bound = 0.0, 0.0
    cell.grown, cell.confirmed_until, cell.agreed_until = 0, 0, 0
    cell.live = False
    cell.heard = False


@kernel
def advance(slots: Any, until: int, anew: bool, work: Any) -> None:
    """Step regions up to the tick `until`.

    Args:
        slots: which.
        until: last tick.
        anew: from their beginning; each is cleared when its turn comes, while what it is stepped
            through is on its way into the cache anyway.
        work: `Work`.
    """
    for i in range(slots.size):
        slot = slots[i]
        cell = work.f.cells[slot]
        if anew:
            _clear(cell, slot, i, work)
        if work.free[slot]:
            continue
        stop = work.stops.first[i]
        while stop < work.stops.first[i + 1] and work.stops.ticks[stop] <= cell.tick:
            stop += 1
        while cell.tick < until:
            due = _next_row(i, work.inputs)
            tick = cell.tick + 1
            if not cell.live:
                if due < 0 or work.inputs.rows[due].tick > until:
                    break
                tick = work.inputs.rows[due].tick
                stop = _rest(cell, i, tick - 1, stop, work)
            stop = _step(cell, slot, i, tick, due, stop, work)
        _rest(cell, i, until, stop, work)
        _heed_confirmations(cell, i, until + 1, work.inputs)


@kernel
def apply_settings(slots: Any, tick: int, forget: int, after: Any, work: Any) -> None:
    """Get regions ready for new settings from the tick after `tick` on.

    What lies still may move under them; memory decays with the old ones up to here.

    Args:
        slots: which.
        tick: in which the settings change.
        forget: what agreed in this tick or before no longer agrees.
        after: `Params` that come into force.
        work: `Work` with the params that were in force.
    """
    for i in range(slots.size):
        slot = slots[i]
        cell = work.f.cells[slot]
        if not cell.heard:
            continue
        if cell.tick < tick:
            cell.S *= work.p.fade ** float(tick - cell.tick)
            _expose(cell, i, tick, work.inputs, work.p.fade)
            cell.tick = tick
        cell.live = True
        _tell_apart(cell, i, tick, 0.0, work)
        ticks = work.f.ticks[slot]
        for at in range(ticks.size):
            if ticks[at] <= forget:
                ticks[at] = 0
        since = _agreeing_since(ticks, after)
        cell.agreed_until = max(since + after.window - 1, tick) if since > 0 else 0


@kernel
def serve(slots: Any, tick: int, f: Any, p: Any, psi: Any, sure: Any) -> None:
    """Psi of regions, and whether they are confirmed; (slots,) each."""
    for i in range(slots.size):
        cell = f.cells[slots[i]]
        sure[i] = tick <= max(cell.agreed_until, cell.confirmed_until)
        psi[i] = psi_at(cell.G, cell.H, sure[i], p)
