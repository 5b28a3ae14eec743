"""One region, stepped tick by tick: the kernels of the fold.

A cell is stepped through its own rows and breaks alone, with the core's own functions for the
fields. Where nothing can change any more it goes straight to its next row.
"""

from __future__ import annotations

from math import frexp, ldexp
from typing import Any

import numpy as np

from rapo_core.fields import next_scar, next_trace
from rapo_core.jit import inlined, kernel
from rapo_gate.law import enough, harm_of, psi_at
from rapo_gate.ledger import MOST, UNIT

BITS = 59
"""Of the whole numbers in which loud reporters are added up, whatever their order."""
SLACK = 1.01
"""By which factor the bound of reporters may be above the one that is held."""
VANISHED = 1e-30
"""Reports in memory below this are none."""


@inlined
def _after(item: int, slot: int, first: Any, following: Any) -> Any:
    """The item of a slot that follows one, its first item after 0."""
    return first[slot] if item == 0 else following[item - 1]


@inlined
def _due(cell: Any, slot: int, book: Any) -> Any:
    """The next row that counts, 0 if there is none; passes by what was rolled back."""
    item = _after(cell.row, slot, book.first_row, book.next_row)
    while item > 0 and book.taken[item - 1] < 0:
        cell.row = item
        item = book.next_row[item - 1]
    return item


@inlined
def _take_vouches(cell: Any, slot: int, tick: int, book: Any) -> None:
    """Heed the confirmations of ticks before `tick`."""
    item = _after(cell.vouch, slot, book.first_vouch, book.next_vouch)
    while item > 0 and book.vouch_tick[item - 1] < tick:
        cell.confirmed_until = max(cell.confirmed_until, book.vouch_until[item - 1])
        cell.vouch = item
        item = book.next_vouch[item - 1]


@inlined
def _expire(cell: Any, slot: int, until: int, book: Any, f: Any) -> None:
    """Forget the agreement of reports up to the tick `until`."""
    item = _after(cell.trail, slot, book.first_row, book.next_row)
    while item > 0 and book.rows[item - 1].tick <= until:
        row = book.rows[item - 1]
        if book.taken[item - 1] >= 0 and not row.bystander:
            if f.pairs[row.by_source].said == row.tick:
                f.pairs[row.by_source].said = 0
                cell.sources -= 1
            if f.says[row.by_signal] == row.tick:
                f.says[row.by_signal] = 0
                cell.signals -= 1
        cell.trail = item
        item = book.next_row[item - 1]


@inlined
def _expose(cell: Any, slot: int, tick: int, passed: int, book: Any, fade: float) -> None:
    """Exposures in memory in a tick: stepped; after a break or a jump, from the last break."""
    item = _after(cell.brk, slot, book.first_break, book.next_break)
    anew = passed > 1
    while item > 0 and book.break_tick[item - 1] <= tick:
        cell.brk = item
        anew = True
        item = book.next_break[item - 1]
    if not anew:
        cell.E *= fade
    elif cell.brk > 0:
        since = float(tick - book.break_tick[cell.brk - 1])
        cell.E = book.break_E[cell.brk - 1] * fade**since


@inlined
def _take_rows(cell: Any, tick: int, due: int, book: Any, f: Any, p: Any) -> None:
    """Take in the rows of a tick: reports in memory, each reporter's part of them, agreement."""
    total, item = 0, due
    while item > 0 and book.rows[item - 1].tick == tick:
        row, amount = book.rows[item - 1], book.taken[item - 1]
        if amount >= 0:
            total = min(total + amount, MOST)
            f.pairs[row.by_source].now = min(f.pairs[row.by_source].now + amount, MOST)
            if not row.bystander:
                cell.sources += f.pairs[row.by_source].said == 0
                f.pairs[row.by_source].said = tick
                cell.signals += f.says[row.by_signal] == 0
                f.says[row.by_signal] = tick
        cell.row = item
        item = book.next_row[item - 1]
    cell.S += total / UNIT
    cell.heard = True
    grain = _grain(cell.S)
    louder, end, item = np.int64(0), item, due
    while item != end:
        pair = f.pairs[book.rows[item - 1].by_source]
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
        item = book.next_row[item - 1]
    cell.L += louder / grain


@inlined
def _grain(S: float) -> float:
    """A power of two that makes `S`, of which reporters' masses are parts, a large whole number."""
    return ldexp(1.0, BITS - frexp(S)[1])


@inlined
def _tell_apart(cell: Any, slot: int, tick: int, bound: float, book: Any, f: Any, p: Any) -> None:
    """Look at all reporters of a region: who is beyond the bound?"""
    total, loud = np.int64(0), 0
    passed, fade = 0, 1.0  # of the pair before: most were looked at together the last time
    grain = _grain(cell.S)
    item = book.first_pair[slot]
    while item > 0:
        pair = f.pairs[item - 1]
        if pair.mass > 0:
            if tick - pair.tick != passed:
                passed = tick - pair.tick
                fade = p.fade ** float(passed)
            pair.mass *= fade
            pair.tick = tick
        pair.loud = pair.mass > bound
        if pair.loud:
            loud += 1
            total += np.int64(np.rint(pair.mass * grain))
        item = book.next_pair[item - 1]
    cell.L, cell.loud, cell.bound = total / grain, loud, bound


@inlined
def _bounded(cell: Any, slot: int, tick: int, prior: float, book: Any, f: Any, p: Any) -> Any:
    """Reports in memory, each reporter's part bounded.

    With k reporters needed, each counts for at most 1/(k - 1/2) of what holds the trace at its
    threshold: what carries a region over it must come from k of them, however long ago and however
    faintly others agreed. The bound is held a little low: it decays as reports do, so that who is
    beyond it stays so, and is set anew when it has become too low.
    """
    n = cell.E + p.shrinkage
    bound = enough(n, prior, p.shrinkage, p.z, p.goal) * p.part
    if bound > cell.bound * SLACK or bound < cell.bound:
        _tell_apart(cell, slot, tick, bound, book, f, p)
    return max(cell.S - cell.L + cell.loud * cell.bound, 0.0) if cell.loud > 0 else cell.S


@inlined
def _step(
    cell: Any, slot: int, tick: int, due: int, book: Any, f: Any, prior: float, p: Any, stops: Any,
    stop: int, end: int,
) -> Any:  # fmt: skip
    """The region in one tick; `due` is its next row, of this tick or later. The next stop."""
    passed = tick - cell.tick
    fade = p.fade if passed == 1 else p.fade ** float(passed)
    cell.S = cell.S * fade if cell.S * fade > VANISHED else 0.0
    cell.L, cell.bound = cell.L * fade, cell.bound * fade
    _expose(cell, slot, tick, passed, book, p.fade)
    _take_vouches(cell, slot, tick, book)
    _expire(cell, slot, tick - p.window, book, f)
    if due > 0 and book.rows[due - 1].tick == tick:
        _take_rows(cell, tick, due, book, f, p)
    vouched = tick <= cell.confirmed_until
    could = harm_of(cell.S, cell.E, prior, p)
    harm = could
    if could > 0 and p.min_sources > 1 and not vouched:
        A = _bounded(cell, slot, tick, prior, book, f, p)
        if A < cell.S:
            harm = harm_of(A, cell.E, prior, p)
    sure = vouched or (cell.sources >= p.min_sources and cell.signals >= p.min_signals)
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
    while stop < end and stops.ticks[stop] == tick:
        at = stops.course[stop]
        at.G, at.H, at.harm, at.S, at.E = cell.G, cell.H, harm, cell.S, cell.E
        at.grew = 0.0 if expired else grew
        at.held = 0.0 if expired else p.delta
        at.fade, at.keep = p.fade, p.keep
        at.psi = psi_at(cell.G, cell.H, sure, p)
        stop += 1
    return stop


@inlined
def _rest(
    cell: Any, slot: int, until: int, book: Any, f: Any, p: Any, stops: Any, stop: int, end: int
) -> Any:
    """Write down the stops up to `until`, in which nothing happens; returns the next one."""
    while stop < end and stops.ticks[stop] <= until:
        tick = stops.ticks[stop]
        if tick > cell.tick > 0:
            _take_vouches(cell, slot, tick, book)
            _expire(cell, slot, tick - p.window, book, f)
            at, fade = stops.course[stop], p.fade ** float(tick - cell.tick)
            at.G, at.H, at.harm, at.S, at.E = cell.G, cell.H, 0.0, cell.S * fade, cell.E * fade
            at.grew, at.held, at.fade, at.keep = 0.0, 1.0, p.fade, p.keep
            agreed = cell.sources >= p.min_sources and cell.signals >= p.min_signals
            at.psi = psi_at(cell.G, cell.H, agreed or tick <= cell.confirmed_until, p)
        stop += 1
    return stop


@inlined
def _clear(cell: Any, slot: int, book: Any, f: Any) -> None:
    """Let a cell begin again, with its topic."""
    item = book.first_row[slot]
    while item > 0:
        f.says[book.rows[item - 1].by_signal] = 0
        item = book.next_row[item - 1]
    item = book.first_pair[slot]
    while item > 0:
        pair = f.pairs[item - 1]
        pair.mass, pair.tick, pair.now, pair.said, pair.loud = 0.0, 0, 0, 0, False
        item = book.next_pair[item - 1]
    cell.tick, cell.row, cell.trail, cell.brk, cell.vouch, cell.loud = 0, 0, 0, 0, 0, 0
    cell.S, cell.E, cell.G, cell.H = 0.0, 0.0, 0.0, 0.0
    cell.L, cell.bound = 0.0, 0.0
    cell.grown, cell.confirmed_until, cell.sources, cell.signals = 0, 0, 0, 0
    cell.live = False
    cell.heard = False


@kernel
def advance(
    slots: Any, until: int, f: Any, book: Any, free: Any, rates: Any, p: Any, stops: Any,
    anew: bool,
) -> None:  # fmt: skip
    """Step cells up to the tick `until`.

    Args:
        slots: which.
        until: last tick.
        f: `Cells`, changed.
        book: `Book`.
        free: whether a slot is on the allow-list: nothing counts there.
        rates: prior rate by topic.
        p: `Params`.
        stops: `Stops` of the cells in `slots`, written.
        anew: from their beginning; each is cleared when its turn comes, while its rows, which lie
            all over the ledger, are on their way into the cache anyway.
    """
    for i in range(slots.size):
        slot = slots[i]
        cell = f.cells[slot]
        if anew:
            _clear(cell, slot, book, f)
        if free[slot]:
            continue
        prior = rates[cell.topic]
        stop, end = stops.first[i], stops.first[i + 1]
        while stop < end and stops.ticks[stop] <= cell.tick:
            stop += 1
        while cell.tick < until:
            due = _due(cell, slot, book)
            tick = cell.tick + 1
            if not cell.live:
                if due == 0 or book.rows[due - 1].tick > until:
                    break
                tick = book.rows[due - 1].tick
                stop = _rest(cell, slot, tick - 1, book, f, p, stops, stop, end)
            stop = _step(cell, slot, tick, due, book, f, prior, p, stops, stop, end)
        _rest(cell, slot, until, book, f, p, stops, stop, end)
        _take_vouches(cell, slot, until + 1, book)
        _expire(cell, slot, until - p.window, book, f)


@kernel
def forgets(slots: Any, f: Any, book: Any, window: int, ticks: Any) -> None:
    """When agreement on cells that time does not change otherwise expires next; 0 for never."""
    for i in range(slots.size):
        cell = f.cells[slots[i]]
        ticks[i] = 0
        if cell.sources > 0 and not cell.live:
            item = _after(cell.trail, slots[i], book.first_row, book.next_row)
            ticks[i] = book.rows[item - 1].tick + window


@kernel
def wake(slots: Any, tick: int, f: Any, book: Any, before: Any) -> None:
    """Get cells ready for new settings from the tick after `tick` on.

    What lies still may move under them; memory decays with the old ones up to here.
    """
    for i in range(slots.size):
        slot = slots[i]
        cell = f.cells[slot]
        if not cell.heard:
            continue
        if cell.tick < tick:
            cell.S *= before.fade ** float(tick - cell.tick)
            _expose(cell, slot, tick, tick - cell.tick, book, before.fade)
            cell.tick = tick
        cell.live = True
        _tell_apart(cell, slot, tick, 0.0, book, f, before)


@kernel
def serve(slots: Any, tick: int, f: Any, p: Any, psi: Any, sure: Any) -> None:
    """Psi of cells, and whether they are confirmed; (slots,) each."""
    for i in range(slots.size):
        cell = f.cells[slots[i]]
        agreed = cell.sources >= p.min_sources and cell.signals >= p.min_signals
        sure[i] = agreed or tick <= cell.confirmed_until
        psi[i] = psi_at(cell.G, cell.H, sure[i], p)
