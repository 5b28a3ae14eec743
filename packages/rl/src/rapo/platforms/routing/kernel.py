"""Loops over flows: candidates of new flows, and how fast all flows get through."""

from __future__ import annotations

from typing import Any

from rapo_core.jit import lean_kernel

NOBODY = -1
IN_FLIGHT, DETOUR, CLOCK, FULLEST, MEAN_LOAD = range(5)
PLAIN = MEAN_LOAD + 1
"""Entries of `x`; after these come the shares of flows by pair and by path."""


@lean_kernel
def come(
    pair: Any, path: Any, done: Any, on: Any, arrivals: Any, by_chance: Any, by_pair: Any,
    arrival: float, new_pair: Any, new_path: Any,
) -> None:  # fmt: skip
    """Finished flows leave; free slots of episodes with a stimulus `on` (E,) get flows by chance.

    by_chance, by_pair: (E, m) uniform draws; new_pair, new_path (E, m) are filled.
    """
    pairs = arrivals.shape[1]
    for e in range(pair.shape[0]):
        for w in range(pair.shape[1]):
            new_pair[e, w], new_path[e, w] = pair[e, w], path[e, w]
            if done[e, w]:
                new_pair[e, w] = new_path[e, w] = NOBODY
            if new_pair[e, w] == NOBODY and on[e] > 0 and by_chance[e, w] < arrival:
                kind = 0
                for j in range(pairs - 1):
                    kind += by_pair[e, w] >= arrivals[on[e] - 1, j]
                new_pair[e, w] = (on[e] - 1) * pairs + kind


@lean_kernel
def offer(
    pair: Any, path: Any, action: Any, law: Any, links: Any, crossings: Any, p0: Any, where: Any,
    harmful: Any, moving: Any,
) -> None:  # fmt: skip
    """Candidates of the flows that have a pair (E, m) and no path yet; others get `P0` 0.

    Tables as in `Demand`; p0, harmful (E, m, K), where (E, m, K, L) and moving (E, m) are filled.
    """
    for e in range(pair.shape[0]):
        for w in range(pair.shape[1]):
            row = pair[e, w]
            moving[e, w] = row >= 0 and path[e, w] < 0
            if not moving[e, w]:
                p0[e, w] = 0.0
                harmful[e, w] = False
                continue
            for k in range(p0.shape[2]):
                p0[e, w, k] = law[action[e], row, k]
                harmful[e, w, k] = crossings[row, k] > 0
                for i in range(where.shape[3]):
                    where[e, w, k, i] = links[row, k, i]


@lean_kernel
def carry(
    pair: Any, path: Any, links: Any, stretch: Any, kept: Any, by_chance: Any, capacity: float,
    size: float, load: Any, rate: Any, done: Any,
) -> None:  # fmt: skip
    """Fill load (E, R), flows on a link, rate (E, m), goodput in [0, 1], and done (E, m).

    A flow gets its share of the path's fullest link (1 up to the capacity), divided by its stretch,
    since the round trip bounds the rate, and reduced by the losses of grey links. by_chance: (E, m)
    uniform draws; size: expected steps at full rate.
    """
    for e in range(pair.shape[0]):
        load[e] = 0.0
        for w in range(pair.shape[1]):
            if pair[e, w] >= 0:
                for i in range(links.shape[2]):
                    r = links[pair[e, w], path[e, w], i]
                    if r < 0:
                        break
                    load[e, r] += 1
        for w in range(pair.shape[1]):
            rate[e, w] = 0.0
            done[e, w] = False
            if pair[e, w] >= 0:
                row, k, fullest = pair[e, w], path[e, w], capacity
                for i in range(links.shape[2]):
                    if links[row, k, i] < 0:
                        break
                    fullest = max(fullest, load[e, links[row, k, i]])
                rate[e, w] = capacity / fullest / stretch[row, k] * kept[row, k]
                done[e, w] = by_chance[e, w] < rate[e, w] / size


@lean_kernel
def expose(pair: Any, path: Any, crossings: Any, blamed: Any, harmed: Any, where: Any) -> None:
    """Fill harmed (E, m), flows on a grey link, and where (E, m, B), the links that they blame."""
    for e in range(pair.shape[0]):
        for w in range(pair.shape[1]):
            harmed[e, w] = pair[e, w] >= 0 and crossings[pair[e, w], path[e, w]] > 0
            for i in range(where.shape[2]):
                where[e, w, i] = blamed[pair[e, w], path[e, w], i] if harmed[e, w] else NOBODY


@lean_kernel
def count_exposed(pair: Any, path: Any, crossings: Any, inside: Any) -> None:
    """Fill inside (E,), how many flows are on a grey link."""
    for e in range(pair.shape[0]):
        inside[e] = 0
        for w in range(pair.shape[1]):
            inside[e] += pair[e, w] >= 0 and crossings[pair[e, w], path[e, w]] > 0


@lean_kernel
def observe_flows(pair: Any, path: Any, stretch: Any, load: Any, pairs: int, x: Any) -> None:
    """Fill the observation x (E, d), but for the clock; loads (E, R) count flows."""
    share = 1 / pair.shape[1]
    for e in range(pair.shape[0]):
        flows = used = 0
        for j in range(x.shape[1]):
            x[e, j] = 0.0
        for w in range(pair.shape[1]):
            if pair[e, w] >= 0:
                flows += 1
                x[e, DETOUR] += stretch[pair[e, w], path[e, w]] - 1
                x[e, PLAIN + pair[e, w] % pairs] += share
                x[e, PLAIN + pairs + path[e, w]] += share
        for r in range(load.shape[1]):
            used += load[e, r] > 0
            x[e, FULLEST] = max(x[e, FULLEST], load[e, r])
            x[e, MEAN_LOAD] += load[e, r]
        x[e, IN_FLIGHT] = flows * share
        x[e, DETOUR] /= max(flows, 1)
        x[e, MEAN_LOAD] /= max(used, 1)
