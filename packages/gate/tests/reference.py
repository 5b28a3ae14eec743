"""The fold again, slow and obvious: every tick of every region, with dictionaries. And a log.

Written from the law, not from the kernels. Loaded by path: test files cannot import each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams
from rapo_gate.config import GateConfig
from rapo_gate.events import Event, NewEvent, decision_key, unpack_decision
from rapo_gate.fold.fold import UNIT, Change, Confirmation, Rows

Shown = dict[int, dict[int, int]]
"""By the tick in which it counts: exposure of regions in UNITs."""


class Fields(NamedTuple):
    """What the reference finds, one element per region."""

    G: list[float]
    H: list[float]
    psi: list[float]
    sure: list[bool]
    S: list[float]
    harm: list[float]
    """Of the last tick."""


def fold(
    rows: Rows, regions: int, start: int, until: int, changes: Sequence[Change],
    shown: Shown, confirmations: Iterable[Confirmation] = (), allowed: Iterable[int] = (),
    topics: dict[int, str] | None = None,
) -> Fields:  # fmt: skip
    """Step every region from the tick `start` to `until`."""
    counted = _capped(rows, changes)
    found = []
    for region in range(regions):
        mine = [] if region in set(allowed) else [r for r in counted if r["region"] == region]
        words = [v for v in confirmations if v.region == region]
        topic = (topics or {}).get(region, "")
        course = {tick: by[region] for tick, by in shown.items() if by.get(region)}
        found.append(_region(mine, start, until, changes, course, words, topic))
    return Fields(*(list(column) for column in zip(*found, strict=True)))


def in_force(changes: Sequence[Change], tick: int) -> GateConfig:
    """Settings of a tick."""
    return [c.config for c in changes if c.tick < tick][-1]


def _capped(rows: Rows, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Rows that count, with what is taken of each."""
    names = rows.dtype.names or ()
    kept = [dict(zip(names, row, strict=True)) for row in rows[~rows["rolled_back"]].tolist()]
    sums: dict[tuple[int, int], int] = {}
    for row in kept:
        who = row["source"], row["tick"]
        sums[who] = sums.get(who, 0) + row["amount"]
    for row in kept:
        total = float(sums[row["source"], row["tick"]])
        cap = in_force(changes, row["tick"]).cap_source * UNIT
        row["taken"] = int(row["amount"] * cap / total) if total > cap else row["amount"]
    return kept


def _region(
    rows: list[dict[str, Any]], start: int, until: int, changes: Sequence[Change],
    shown: dict[int, int], words: list[Confirmation], topic: str,
) -> tuple[float, float, float, bool, float, float]:  # fmt: skip
    S = E = held = harm = G = H = 0.0
    exposed, sure, grown, forgotten = False, False, start, start
    mass: dict[int, float] = {}
    bound = 0.0
    config = in_force(changes, start + 1)
    for tick in range(start + 1, until + 1):
        before, config = config, in_force(changes, tick)
        p, fade = config.params, 2 ** (-1 / config.half_life)
        E, held, S, bound = E * fade, held * fade, S * fade, bound * fade
        if config is not before:
            bound = 0.0
        mass = {who: m * fade for who, m in mass.items()}
        if (before.half_life, before.shrinkage) != (config.half_life, config.shrinkage):
            held = E
        if shown.get(tick):
            E += shown[tick] / UNIT
            if not exposed or abs(E - held) > 0.02 * (held + config.shrinkage):
                held = E
            exposed = True
        now = [r for r in rows if r["tick"] == tick]
        S += sum(r["taken"] for r in now) / UNIT
        for who in {r["source"] for r in now}:
            mass[who] = (
                mass.get(who, 0.0) + sum(r["taken"] for r in now if r["source"] == who) / UNIT
            )
        vouched = any(v.tick < tick <= v.until for v in words)
        forgotten = max(forgotten, tick - config.confirm_ticks)
        sure = vouched or _agreed(rows, forgotten, tick, config)
        prior = config.base_rates.get(topic, config.base_rate)
        n, K = held + config.shrinkage, config.shrinkage
        harm = _harm(S, n, K * prior, config)
        if harm > 0 and config.min_sources > 1 and not vouched:
            real = _enough(n, K * prior, config) / (config.min_sources - 0.5)
            if not real / 1.01 <= bound <= real:
                bound = real
            harm = _harm(sum(min(m, bound) for m in mass.values()), n, K * prior, config)
        if sure and p.eta > 0 and p.tau < G:
            grown = tick
        G, H = _step(G, H, harm, p if sure else FieldParams(**{**p.to_dict(), "eta": 0.0}))
        if config.scar_ticks is not None and tick - grown >= config.scar_ticks:
            H = 0.0
    last = [c.config for c in changes][-1]  # what is served follows the newest settings at once
    sure = _agreed(rows, forgotten, until, last) or any(v.tick <= until <= v.until for v in words)
    return G, H, _psi(G, H, sure, last), sure, S, harm


def _harm(A: float, n: float, known: float, config: GateConfig) -> float:
    excess = _net(A, known, n, config.z) - config.base_rate
    return min(max(excess / config.scale, 0.0), 1.0)


def _enough(n: float, known: float, config: GateConfig) -> float:
    """Reports at which harm reaches the level whose steady trace is tau, by bisection."""
    p = config.params
    goal = config.base_rate + config.scale * min(1.0, p.tau * p.lam / p.alpha if p.alpha else 1.0)
    low, high = 0.0, 1.0
    while _net(high, known, n, config.z) < goal:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _net(middle, known, n, config.z) < goal else (low, middle)
    return low


def _net(A: float, known: float, n: float, z: float) -> float:
    rate = (A + known) / n
    return rate - z * sqrt(rate / n)


def _agreed(rows: list[dict[str, Any]], after: int, until: int, config: GateConfig) -> bool:
    """Whether enough different reporters and signals speak in these ticks."""
    recent = [r for r in rows if after < r["tick"] <= until and not r["bystander"]]
    sources, signals = {r["source"] for r in recent}, {r["signal"] for r in recent}
    return len(sources) >= config.min_sources and len(signals) >= config.min_signals


def _memory(G: float, H: float, params: FieldParams) -> HarmMemory:
    memory = HarmMemory(1, params, batch=1)
    memory.restore({**memory.snapshot(), "G": np.array([[G]]), "H": np.array([[H]])})
    return memory


def _step(G: float, H: float, harm: float, params: FieldParams) -> tuple[float, float]:
    """One step of the core's memory."""
    memory = _memory(G, H, params)
    memory.step(np.array([harm]), np.ones((1, 1)))
    return float(memory.G[0, 0]), float(memory.H[0, 0])


def _psi(G: float, H: float, sure: bool, config: GateConfig) -> float:
    psi = float(_memory(G, H, config.params).conductance()[0, 0])
    least = config.unconfirmed_floor * float(_memory(0.0, H, config.params).conductance()[0, 0])
    return psi if sure else max(psi, least, config.params.psi_min)


def exposures(events: Iterable[Event], number: Any, D: int) -> Shown:
    """What a log's decisions showed, by the tick in which it counts.

    Args:
        events: the whole log.
        number: of a region by its name.
        D: ticks until an exposure counts.
    """
    shown: Shown = {}
    tick, made = 0, {}

    def add(when: int, regions: Iterable[Any], shares: Iterable[float], sign: int) -> None:
        if when + D > tick:
            at = shown.setdefault(when + D, {})
            for region, share in zip(regions, shares, strict=True):
                at[number(region)] = at.get(number(region), 0) + sign * round(share * UNIT)

    for event in events:
        if event.kind == "Decision":
            body = made[event.key] = unpack_decision(event.body)
            add(body.tick, body.ids(), body.served, 1)
            continue
        data = event.data()
        if event.kind == "Exposure":
            body = made[decision_key(data["decision_id"])]
            names = list(dict.fromkeys(data["shown"]))
            add(body.tick, body.ids(), body.served, -1)
            add(body.tick, names, [data["shown"].count(n) / len(data["shown"]) for n in names], 1)
        if event.kind == "Tick":
            tick = data["tick"]
        if "created" in data:
            tick = data["created"]["tick"]
    return shown


class MemoryLog:
    """A log in memory, one open transaction for ever."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._by_key: dict[str, Event] = {}

    def tail(self, after: int) -> Iterator[Event]:
        """Nobody else appends."""
        return iter(self.events[after:])

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key."""
        return {key: self._by_key[key] for key in keys if key in self._by_key}

    def append(self, drafts: Sequence[NewEvent]) -> list[Event]:
        """Add events; a key that is taken is an error."""
        new = [Event(len(self.events) + 1 + i, *draft) for i, draft in enumerate(drafts)]
        for event in new:
            if event.key is not None and event.key in self._by_key:
                raise ValueError(f"the key {event.key!r} is taken")
            if event.key is not None:
                self._by_key[event.key] = event
        self.events += new
        return new
