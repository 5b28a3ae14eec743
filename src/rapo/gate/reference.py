"""The fold again, slow and obvious: every tick of every region through `HarmMemory` itself.

Tests compare the kernel with it, bit by bit. `MemoryLog` is a log for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rapo.core.memory import HarmMemory
from rapo.gate.config import GateConfig
from rapo.gate.events import Draft, Event
from rapo.gate.fold import MOST, UNIT, Rows
from rapo.gate.state import Act

Real = npt.NDArray[np.float64]


@dataclass(slots=True)
class Fields:
    """What the reference finds; arrays have an element per region."""

    G: Real
    H: Real
    psi: Real
    sure: npt.NDArray[np.bool_]
    """Whether the region is confirmed."""


def fold(
    rows: Rows, regions: int, start: int, segments: Iterable[tuple[int, GateConfig, Act | None]]
) -> Fields:
    """Step from the tick `start` through segments: until when, with which settings, what then.

    Args:
        rows: the ledger, in any order.
        regions: how many there are.
        start: tick at which nothing had been reported.
        segments: as `State.segments` gives them.
    """
    G, H = np.zeros(regions), np.zeros(regions)
    grown = np.full(regions, start)
    vouched_until = np.full(regions, start)
    forgotten, tick = start - 1, start  # reports up to this tick no longer confirm anything
    config = GateConfig()
    for until, config, act in segments:
        while tick < until:
            tick += 1
            forgotten = max(forgotten, tick - config.confirm_ticks)
            sure = _agreed(rows, regions, forgotten, tick, config) | (tick <= vouched_until)
            scars = sure & (config.params.eta > 0) & (config.params.tau < G)
            G, H = _step(G, H, _harm(rows, regions, tick, config), sure, config)
            grown[scars] = tick
            if config.scar_ticks is not None:
                H = np.where(tick - grown >= config.scar_ticks, 0.0, H)
        forgotten = max(forgotten, until - config.confirm_ticks)
        for region in () if act is None else (*act.confirmed, *(r for _, r in act.vouched)):
            vouched_until[region] = max(vouched_until[region], act.until if act else 0)
    sure = _agreed(rows, regions, forgotten, tick, config) | (tick <= vouched_until)
    return Fields(G, H, _psi(G, H, sure, config), sure)


def _agreed(
    rows: Rows, regions: int, after: int, until: int, config: GateConfig
) -> npt.NDArray[np.bool_]:
    """Regions with enough different reporters and signals among the reports of these ticks."""
    agreed = np.zeros(regions, np.bool_)
    counts = rows["use"] & ~rows["bystander"]
    recent = rows[counts & (rows["tick"] > after) & (rows["tick"] <= until)]
    for region in range(regions):
        mine = recent[recent["region"] == region]
        sources, signals = set(mine["source"].tolist()), set(mine["signal"].tolist())
        agreed[region] = len(sources) >= config.min_sources and len(signals) >= config.min_signals
    return agreed


def _harm(rows: Rows, regions: int, tick: int, config: GateConfig) -> Real:
    """Harm of every region in a tick, after both caps."""
    due = rows[rows["use"] & (rows["tick"] == tick)]
    names = due.dtype.names or ()
    records = [dict(zip(names, row, strict=True)) for row in due.tolist()]
    per_source: dict[int, int] = {}
    for row in records:
        per_source[row["source"]] = per_source.get(row["source"], 0) + row["amount"]
    harm, shown = np.zeros(regions), [0] * regions
    inflow = [0] * regions
    cap = config.cap_source * UNIT
    for row in records:
        total = float(min(per_source[row["source"]], MOST))
        taken = int(row["amount"] * cap / total) if total > cap else row["amount"]
        inflow[row["region"]] += taken
        shown[row["region"]] = max(shown[row["region"]], row["exposure"])
    for region in range(regions):
        value = float(min(inflow[region], MOST)) / UNIT
        if config.normalise:
            value /= shown[region] / UNIT + config.prior_exposures
        harm[region] = min(value, config.cap_region)
    return harm


def _step(
    G: Real, H: Real, harm: Real, sure: npt.NDArray[np.bool_], config: GateConfig
) -> tuple[Real, Real]:
    """One step of the core's memory; where a region is not confirmed, of one that cannot scar."""
    stepped = []
    for params in (config.params, replace(config.params, eta=0.0)):
        memory = HarmMemory(1, params, batch=G.size)
        memory.restore({**memory.snapshot(), "G": G[:, None], "H": H[:, None]})
        memory.step(harm, np.ones((G.size, 1)))
        stepped.append((memory.G[:, 0], memory.H[:, 0]))
    (after, scarred), (_, unscarred) = stepped
    return np.array(after, np.float64), np.where(sure, scarred, unscarred)


def _psi(G: Real, H: Real, sure: npt.NDArray[np.bool_], config: GateConfig) -> Real:
    """Conductance; the trace of an unconfirmed region takes little of it."""
    memory = HarmMemory(1, config.params, batch=G.size)
    memory.restore({**memory.snapshot(), "G": G[:, None], "H": H[:, None]})
    psi = memory.conductance()[:, 0]
    memory.restore({**memory.snapshot(), "G": 0 * G[:, None]})
    least = config.unconfirmed_floor * memory.conductance()[:, 0]
    floored = np.maximum(np.maximum(psi, least), config.params.psi_min)
    return np.where(sure, psi, floored)


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

    def append(self, drafts: Sequence[Draft]) -> list[Event]:
        """Add events; a key that is taken is an error."""
        new = [Event(len(self.events) + 1 + i, *draft) for i, draft in enumerate(drafts)]
        for event in new:
            if event.key is not None and event.key in self._by_key:
                raise ValueError(f"the key {event.key!r} is taken")
            if event.key is not None:
                self._by_key[event.key] = event
        self.events += new
        return new
