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
from rapo.gate.fold import MOST, ROUNDS, SETTLED, UNIT, Rows
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
    parts: dict[tuple[int, int], tuple[float, int]] = {}  # of traces, by region and reporter
    forgotten, tick = start - 1, start  # reports up to this tick no longer confirm anything
    config = GateConfig()
    for until, config, act in segments:
        while tick < until:
            tick += 1
            forgotten = max(forgotten, tick - config.confirm_ticks)
            sure = _agreed(rows, regions, forgotten, tick, config) | (tick <= vouched_until)
            scars = sure & (config.params.eta > 0) & (config.params.tau < G)
            harm = _harm(rows, G, parts, tick, tick <= vouched_until, config)
            G, H = _step(G, H, harm, sure, config)
            grown[scars] = tick
            if config.scar_ticks is not None:
                H = np.where(tick - grown >= config.scar_ticks, 0.0, H)
        forgotten = max(forgotten, until - config.confirm_ticks)
        for region in () if act is None else (*act.confirmed, *(r for _, r in act.vouched)):
            vouched_until[region] = max(vouched_until[region], act.until if act else 0)
        if act is not None and act.config is not None:
            for pair, (part, then) in parts.items():
                parts[pair] = part * (1 - config.params.lam) ** float(tick - then), tick
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


def _harm(
    rows: Rows,
    G: Real,
    parts: dict[tuple[int, int], tuple[float, int]],
    tick: int,
    vouched: npt.NDArray[np.bool_],
    config: GateConfig,
) -> Real:
    """Harm of every region in a tick, after the caps; `parts` takes what each reporter added."""
    due = rows[rows["use"] & (rows["tick"] == tick) & (rows["amount"] > 0)]
    records = [dict(zip(due.dtype.names or (), row, strict=True)) for row in due.tolist()]
    per_source: dict[int, int] = {}
    for row in records:
        per_source[row["source"]] = per_source.get(row["source"], 0) + row["amount"]
    cap, p = config.cap_source * UNIT, config.params
    voices: dict[int, dict[int, int]] = {}  # what each reporter says on each region
    exposed: dict[int, int] = {}
    for row in records:
        total = float(min(per_source[row["source"]], MOST))
        taken = int(row["amount"] * cap / total) if total > cap else row["amount"]
        voice = voices.setdefault(row["region"], {})
        voice[row["source"]] = min(voice.get(row["source"], 0) + taken, MOST)
        exposed[row["region"]] = max(exposed.get(row["region"], 0), row["exposure"])
    harm = np.zeros(G.size)
    for region, voice in voices.items():
        per = exposed[region] / UNIT + config.prior_exposures if config.normalise else 1.0
        unit = p.alpha / (UNIT * per)
        heard = {source: spoken for source, spoken in voice.items() if spoken}
        for source in heard:
            part, then = parts.get((region, source), (0.0, tick))
            parts[region, source] = part * (1 - p.lam) ** float(tick - then), tick
        k = 1 if vouched[region] else config.min_sources
        for turn in range(ROUNDS + 1 if k > 1 and unit > 0 else 0):
            said = min(sum(heard.values()), MOST)
            fewer: dict[int, int] = {}
            alone: dict[int, int] = {}
            for source, spoken in heard.items():
                part = parts[region, source][0]
                others = max((1 - p.lam) * G[region] - part, 0.0) + unit * float(said - spoken)
                for found, beside in ((fewer, others), (alone, 0.0)):
                    most = max(p.tau / k, beside / (k - 1))
                    fits = part + unit * float(voice[source]) <= most
                    found[source] = voice[source] if fits else int(max(most - part, 0.0) / unit)
            if all(n - fewer[source] <= n >> SETTLED for source, n in heard.items()):
                break
            heard = alone if turn == ROUNDS else fewer
        total = min(sum(heard.values()), MOST)
        harm[region] = min(float(total) / UNIT / per, config.cap_region)
        for source, count in heard.items():
            part, then = parts[region, source]
            added = p.alpha * harm[region] * (count / total) if total else 0.0
            parts[region, source] = part + added, then
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
