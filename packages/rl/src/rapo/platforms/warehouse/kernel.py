"""Loops over robots: candidates, moves into cells, and the observation.

A robot's way is a row of `Orders`: even rows lead out, odd rows back. `row` and `route` are -1
while the robot is docked. `route` is -1 while the robot has no route yet, and `at` while it is
still behind the door. `wait` counts the steps of picking that are left, `waited` the steps for
which the robot has been stopped.
"""

from __future__ import annotations

from typing import Any

from rapo_core.jit import inlined, lean_kernel

NOBODY = -1
NO_WISH, OPEN, ASKED, GOES, STAYS = range(5)
"""States of a robot's move while moves are decided."""
DOCKED, OUT, PICKING, BACK, STOPPED, WAITED, CLOCK, MEAN_Y, MEAN_X, SPREAD = range(10)
SEEN = SPREAD + 1
"""Entries of `x`."""


@lean_kernel
def give(
    row: Any, route: Any, at: Any, wait: Any, last: Any, on: Any, by_errand: Any, errands: int,
    new_row: Any, new_route: Any, new_at: Any,
) -> None:  # fmt: skip
    """Give errands to docked robots, and the way back to robots that have picked.

    on: (E,) stimulus, 0 for none. by_errand: (E, m) uniform draws.
    """
    for e in range(row.shape[0]):
        for w in range(row.shape[1]):
            r, k, i = row[e, w], route[e, w], at[e, w]
            if r < 0:
                if on[e] > 0:
                    r = 2 * ((on[e] - 1) * errands + int(by_errand[e, w] * errands))
            elif k >= 0 and r % 2 == 0 and i == last[r, k] and wait[e, w] == 0:
                r, k, i = r + 1, NOBODY, 0
            new_row[e, w], new_route[e, w], new_at[e, w] = r, k, i


@lean_kernel
def offer(
    row: Any, route: Any, at: Any, action: Any, rates: Any, by_chance: Any, law: Any, zones: Any,
    enters: Any, p0: Any, where: Any, harmful: Any, moving: Any,
) -> None:  # fmt: skip
    """Routes of robots that are sent from the dock or turn back; others get `P0` 0.

    rates: chance of each action. p0, harmful (E, m, K), where (E, m, K, Z) and moving (E, m) are
    filled.
    """
    for e in range(row.shape[0]):
        rate = rates[action[e]]
        for w in range(row.shape[1]):
            r = row[e, w]
            new = r >= 0 and route[e, w] < 0 and (at[e, w] >= 0 or by_chance[e, w] < rate)
            moving[e, w] = new
            for k in range(p0.shape[2]):
                p0[e, w, k] = 0.0
                harmful[e, w, k] = False
                if new:
                    p0[e, w, k] = law[r, k]
                    harmful[e, w, k] = enters[r, k]
                    for i in range(where.shape[3]):
                        where[e, w, k, i] = zones[r, k, i]


@inlined
def _wish(
    e: int, row: Any, route: Any, at: Any, cells: Any, last: Any, held: Any, holder: Any, fate: Any,
    target: Any,
) -> None:  # fmt: skip
    """Note which robot stands where, and to which cell each robot wants to go."""
    for w in range(row.shape[1]):
        r, k, i = row[e, w], route[e, w], at[e, w]
        fate[w] = NO_WISH
        if r < 0:
            continue
        if i >= 0:
            holder[cells[r, k, i]] = w
        if i < last[r, k]:  # the others pick
            target[w] = cells[r, k, i + 1]
            fate[w] = STAYS if held[e, w] else OPEN


@inlined
def _turn_rings(holder: Any, claim: Any, fate: Any, target: Any, walk: Any) -> None:
    """Let rings turn, in which every robot wants the cell of the next, before any robot joins.

    Otherwise a robot that waits to join would come first for ever, and stop the ring and itself.
    """
    for w in range(fate.size):
        walk[w] = NOBODY
    for w in range(fate.size):
        at = w
        while at >= 0 and fate[at] == OPEN and walk[at] < 0:
            walk[at] = w
            at = holder[target[at]]
        while at >= 0 and fate[at] == OPEN and walk[at] == w:
            fate[at] = GOES
            claim[target[at]] = at
            at = holder[target[at]]


@inlined
def _decide(w: int, holder: Any, claim: Any, fate: Any, target: Any) -> None:
    """Decide whether robot w goes, and the robots ahead on which that depends."""
    at, verdict = w, OPEN
    while verdict == OPEN:
        fate[at] = ASKED
        ahead = holder[target[at]]
        if claim[target[at]] != at:
            verdict = STAYS
        elif ahead < 0 or fate[ahead] == GOES:
            verdict = GOES
        elif fate[ahead] == OPEN:
            at = ahead
        else:
            verdict = STAYS
    at = w
    while at >= 0 and fate[at] == ASKED:
        fate[at] = verdict
        at = holder[target[at]]


@lean_kernel
def drive(
    row: Any, route: Any, at: Any, wait: Any, waited: Any, choice: Any, held: Any, cells: Any,
    last: Any, pick: int, holder: Any, claim: Any, fate: Any, target: Any, walk: Any,
    new_row: Any, new_route: Any, new_at: Any, new_wait: Any, new_waited: Any, delivered: Any,
) -> None:  # fmt: skip
    """One step of all robots of all episodes; a cell holds one.

    The state (E, m) is as `give` left it, `choice` (E, m) the routes of those who chose, `held`
    bool (E, m) who cannot move in this step; cells and last as in `Orders`; pick: steps of a pick.
    Room: holder and claim (cells,), -1 before and after, and fate, target, walk (m,). The new state
    (E, m) and `delivered` (E,) float64 are filled.
    """
    for e in range(row.shape[0]):
        delivered[e] = 0.0
        for w in range(row.shape[1]):
            new_row[e, w], new_route[e, w], new_at[e, w] = row[e, w], route[e, w], at[e, w]
            if row[e, w] >= 0 and route[e, w] < 0:
                new_route[e, w] = choice[e, w]
                if choice[e, w] < 0:  # not sent
                    new_row[e, w] = NOBODY
        _wish(e, new_row, new_route, new_at, cells, last, held, holder, fate, target)
        _turn_rings(holder, claim, fate, target, walk)
        for w in range(row.shape[1]):  # the longest stopped comes first, but for rings
            if fate[w] == OPEN:
                first = claim[target[w]]
                if first < 0 or (fate[first] == OPEN and waited[e, w] > waited[e, first]):
                    claim[target[w]] = w
        for w in range(row.shape[1]):
            if fate[w] == OPEN:
                _decide(w, holder, claim, fate, target)
        for w in range(row.shape[1]):
            r, k, i = new_row[e, w], new_route[e, w], new_at[e, w]
            new_wait[e, w] = new_waited[e, w] = 0
            if r < 0:
                continue
            if i >= 0:
                holder[cells[r, k, i]] = NOBODY
            if fate[w] == NO_WISH:
                new_wait[e, w] = wait[e, w] - 1
            else:
                claim[target[w]] = NOBODY
            if fate[w] == STAYS:
                new_waited[e, w] = waited[e, w] + 1
            elif fate[w] == GOES:
                new_at[e, w] = i + 1
                if i + 1 == last[r, k]:
                    if r % 2 == 0:
                        new_wait[e, w] = pick
                    else:
                        delivered[e] += 1
                        new_row[e, w] = new_route[e, w] = new_at[e, w] = NOBODY


@lean_kernel
def expose(
    row: Any, route: Any, at: Any, cells: Any, zone_of: Any, hazard: Any, inside: Any, where: Any
) -> None:
    """Fill inside (E, m), robots in a hazard, and where (E, m), the region of each, or -1."""
    for e in range(row.shape[0]):
        for w in range(row.shape[1]):
            where[e, w] = NOBODY
            inside[e, w] = False
            if at[e, w] >= 0:
                k = max(route[e, w], 0)  # all routes of a robot that turns back begin where it is
                where[e, w] = zone_of[cells[row[e, w], k, at[e, w]]]
                inside[e, w] = hazard[where[e, w]]


@lean_kernel
def observe_robots(
    row: Any, route: Any, at: Any, waited: Any, cells: Any, last: Any, columns: int, x: Any
) -> None:
    """Fill the observation x (E, SEEN), but for the clock; positions are in cells."""
    share = 1 / row.shape[1]
    for e in range(row.shape[0]):
        for j in range(SEEN):
            x[e, j] = 0.0
        on_floor, squares = 0, 0.0
        for w in range(row.shape[1]):
            r, k, i = row[e, w], route[e, w], at[e, w]
            x[e, STOPPED] += share * (waited[e, w] > 0)
            x[e, WAITED] += share * waited[e, w]
            if i < 0:
                x[e, DOCKED] += share
                continue
            if r % 2 == 1:
                x[e, BACK] += share
            elif i == last[r, k]:
                x[e, PICKING] += share
            else:
                x[e, OUT] += share
            here = cells[r, max(k, 0), i]
            on_floor += 1
            x[e, MEAN_Y] += here // columns
            x[e, MEAN_X] += here % columns
            squares += (here // columns) ** 2 + (here % columns) ** 2
        if on_floor > 0:
            y, along = x[e, MEAN_Y] / on_floor, x[e, MEAN_X] / on_floor
            x[e, MEAN_Y], x[e, MEAN_X] = y, along
            x[e, SPREAD] = max(squares / on_floor - y * y - along * along, 0.0) ** 0.5
