"""`State`: what the log amounts to. A pure function of the events, in the order of the log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.gate.config import GateConfig
from rapo.gate.events import (
    DecisionBody,
    Event,
    Region,
    decision_key,
    exposure_key,
    unpack_decision,
)
from rapo.gate.fold import ROW, UNIT, Fold
from rapo.gate.ledger import Ledger
from rapo.gate.registry import UNKNOWN, Registry
from rapo.gate.traffic import Traffic

Fetch = Callable[[Sequence[str]], dict[str, Event]]
"""Events of the log by their unique keys; those that are not there are left out."""


@dataclass(slots=True)
class Report:
    """A report that has not counted: it waits for its tick, or for a reviewer."""

    position: int
    source: str
    signal: str
    harm: float
    at: float
    tick: int
    """Of the exposure."""
    decision_id: str | None
    regions: list[Region] | None
    waits_for: str = ""
    """Why a reviewer must look at it: `late`, `unknown region`; empty for its tick."""
    rolled_back: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """Something that changes the fold from the tick after `tick` on."""

    tick: int
    confirmed: tuple[int, ...] = ()
    until: int = 0
    config: GateConfig | None = None
    vouched: tuple[tuple[int, int], ...] = ()
    """Reports that a reviewer vouched for, each with a region; void once the report is gone."""

    def on(self, fold: Fold, before: GateConfig) -> None:
        """Do it to a fold that has reached its tick under the settings `before`.

        The caller goes on with the new ones.
        """
        fold.confirm((*self.confirmed, *(region for _, region in self.vouched)), self.until)
        if self.config is not None:
            fold.wake(1 - before.params.lam)


class State:
    """Fields, registries, ledger, review queue, human decisions and counts at a log position.

    Args:
        fetch: looks up events by unique key: decisions are not kept in memory.
    """

    def __init__(self, fetch: Fetch) -> None:
        self.fetch = fetch
        self.position = 0
        self.revision = 0
        """Position of the last event that changed what is served."""
        self.created: dict[str, Any] = {}
        self.config = GateConfig()
        self.mode, self.percent = "shadow", 100.0
        self.regions, self.sources, self.signals = Registry(), Registry(), Registry()
        self.ledger = Ledger()
        self.fold = Fold(0)
        self.acts: list[Act] = []
        self.pending: dict[int, list[Report]] = {}
        self.review: dict[int, Report] = {}
        self.allowed: dict[int, dict[str, Any]] = {}
        self.overrides: dict[int, dict[str, Any]] = {}
        self.labels: dict[int, dict[str, str]] = {}
        self.rollbacks: list[dict[str, Any]] = []
        self.escalations: list[dict[str, Any]] = []
        self.bands_left: dict[str, str] = {}
        self.traffic = Traffic()

    @property
    def tick(self) -> int:
        """The last tick that has been folded."""
        return self.fold.tick

    def apply(self, event: Event) -> None:
        """Take in the next event of the log."""
        if event.position <= self.position:
            raise ValueError(f"event {event.position} came after {self.position}")
        if event.kind == "Decision":
            self._decision(event)
        else:
            getattr(self, f"_{event.kind.lower()}")(event, event.data())
        self.position = event.position

    # --- what platforms send

    def _decision(self, event: Event) -> None:
        body = unpack_decision(event.body)
        numbers = self.regions.numbers(body.regions)
        unknown = int((numbers == UNKNOWN).sum())
        if unknown:
            self.regions.add(body.ids())
            self._make_room()
            numbers = self.regions.numbers(body.regions)
            self.traffic.now.unknown += unknown
        self.traffic.decide(
            numbers, body.p, body.psi, body.tick, body.enforced, body.stimulus, self.config
        )

    def _exposure(self, event: Event, data: dict[str, Any]) -> None:
        found = self.fetch([decision_key(data["decision_id"])])
        body = unpack_decision(found[decision_key(data["decision_id"])].body)
        names, weight = _shown(data["shown"])
        served, shown = self.regions.numbers(body.regions), self.regions.numbers(names)
        in_time = body.tick + self.config.D > self.tick  # else its reports have counted
        self.traffic.expose(served, body, shown, weight, in_time)

    def _harmreport(self, event: Event, data: dict[str, Any]) -> None:
        report = Report(
            event.position, data["source"], data["signal"], data["harm"], data["at"],
            data["tick"], data.get("decision_id"), data.get("regions"), data["waits_for"],
        )  # fmt: skip
        if report.waits_for:
            self.review[report.position] = report
        else:
            self.pending.setdefault(report.tick + self.config.D, []).append(report)
        self.traffic.now.reports += 1
        self.traffic.now.lag += max(0.0, event.at - report.at)

    def _tick(self, event: Event, data: dict[str, Any]) -> None:
        closed, until = self.tick, int(data["tick"])
        for tick in sorted(t for t in self.pending if t <= until):
            self._resolve(self.pending.pop(tick), tick, event.position)
        self.fold.run(self.ledger.rows, until, self.config)
        for region in [r for r, o in self.overrides.items() if self._expired(o)]:
            del self.overrides[region]
        psi = self.psi()
        count = len(self.regions)
        sensitive = self.fold.H[:count] > 0
        for region, label in self.labels.items():
            sensitive[region] |= label.get("sensitive") == "yes"
        floored = int((psi <= self.config.params.psi_min).sum())
        self.bands_left = self.traffic.close_tick(
            closed, sensitive, float(self.fold.H.sum()), floored, self.config
        )
        self.revision = event.position

    # --- what people do

    def _confirm(self, event: Event, data: dict[str, Any]) -> None:
        regions = {self.regions.number(r) for r in data.get("regions", [])}
        vouched: set[tuple[int, int]] = set()
        for position in data.get("reports", []):
            report = self.review.pop(position, None)
            if report is None:  # in the ledger or due: its regions are confirmed
                vouched |= {(position, r) for r in self._regions_of(position, event.position)}
                continue
            self.regions.add(report.regions or [])
            self._make_room()
            report.waits_for = "admitted"
            self.pending.setdefault(self.tick + 1, []).append(report)
        if regions or vouched:
            until = self.tick + self.config.confirm_ticks
            act = Act(self.tick, tuple(sorted(regions)), until, None, tuple(sorted(vouched)))
            self.acts.append(act)
            act.on(self.fold, self.config)
            self.revision = event.position

    def _override(self, event: Event, data: dict[str, Any]) -> None:
        region = self.regions.number(data["region"])
        if data["psi"] is None:
            self.overrides.pop(region, None)
        else:
            self.overrides[region] = {**data, "position": event.position}
        self.revision = event.position

    def _allow(self, event: Event, data: dict[str, Any]) -> None:
        region = self.regions.number(data["region"])
        if data["allowed"]:
            self.allowed[region] = {**data, "position": event.position}
        else:
            self.allowed.pop(region, None)
        self.refold()
        self.revision = event.position

    def _rollback(self, event: Event, data: dict[str, Any]) -> None:
        count = self.exclude(data)
        told = {"position": event.position, "at": event.at, "count": count}
        self.rollbacks.append({**data, **told})
        self.refold()
        self.revision = event.position

    def _configchange(self, event: Event, data: dict[str, Any]) -> None:
        if "created" in data:
            self.created = {**data["created"], "config": data["config"]}
            self.config = GateConfig.from_dict(data["config"])
            self.fold = Fold(int(data["created"]["tick"]))
            self.traffic.now.tick = self.fold.tick
        elif "config" in data:
            before, self.config = self.config, GateConfig.from_dict(data["config"])
            self.acts.append(Act(self.tick, config=self.config))
            self.acts[-1].on(self.fold, before)
        if "mode" in data:
            self.mode, self.percent = data["mode"], data["percent"]
        for region, label in data.get("labels", []):
            self.labels[self.regions.number(region)] = label
        self.revision = event.position

    def _escalation(self, event: Event, data: dict[str, Any]) -> None:
        self.escalations.append({**data, "position": event.position, "at": event.at})

    def _erasure(self, event: Event, data: dict[str, Any]) -> None:
        """A name was replaced in events that are there: nothing of it is in the fields."""

    def _compaction(self, event: Event, data: dict[str, Any]) -> None:
        """Bodies that are in the fields already were dropped."""

    # --- attribution

    def attribution(self, report: Report, before: int) -> tuple[list[Region], npt.NDArray[Any]]:
        """Regions that a report names and the weight of each, summing to 1; regions are distinct.

        Args:
            report: what was reported.
            before: only exposures logged before this position count.
        """
        if report.decision_id is None:
            return _named(report)
        keys = [decision_key(report.decision_id), exposure_key(report.decision_id)]
        return _shares(self.fetch(keys), report.decision_id, before)

    def _resolve(self, reports: list[Report], tick: int, before: int) -> None:
        """Put reports that are due into the ledger."""
        wanted = list({r.decision_id for r in reports if r.decision_id is not None})
        found: dict[str, Event] = {}
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            found |= self.fetch([*map(decision_key, part), *map(exposure_key, part)])
        shares = {d: _shares(found, d, before) for d in wanted}
        region: list[npt.NDArray[Any]] = []
        amount: list[npt.NDArray[Any]] = []
        exposure: list[npt.NDArray[Any]] = []
        bystander: list[npt.NDArray[Any]] = []
        for report in reports:
            made = report.decision_id
            names, weight = _named(report) if made is None else shares[made]
            numbers = self.regions.numbers(names)
            shown = self.traffic.exposure.get(report.tick)
            seen = np.zeros(numbers.size, np.int64)
            if shown is not None and report.waits_for != "admitted":
                inside = numbers < shown.size
                seen[inside] = shown[numbers[inside]]
            region.append(numbers)
            amount.append(np.rint(report.harm * weight * UNIT).astype(np.int64))
            exposure.append(seen)
            bystander.append(weight < self.config.agree_share)
        sizes = [a.size for a in amount]
        rows = np.zeros(sum(sizes), ROW)
        for name in sorted({r.source for r in reports}):
            self.sources.add_one(name)
        for name in sorted({r.signal for r in reports}):
            self.signals.add_one(name)
        rows["tick"] = tick
        rows["report"] = np.repeat([r.position for r in reports], sizes)
        rows["at"] = np.repeat([r.at for r in reports], sizes)
        rows["source"] = np.repeat([self.sources.number(r.source) for r in reports], sizes)
        rows["signal"] = np.repeat([self.signals.number(r.signal) for r in reports], sizes)
        rows["rolled_back"] = np.repeat([r.rolled_back for r in reports], sizes)
        rows["region"] = np.concatenate(region)
        rows["amount"] = np.concatenate(amount)
        rows["exposure"] = np.concatenate(exposure)
        rows["bystander"] = np.concatenate(bystander)
        rows["use"] = ~rows["rolled_back"] & ~np.isin(rows["region"], list(self.allowed))
        self.ledger.append(rows[rows["amount"] > 0])
        self._make_room()

    def _regions_of(self, position: int, before: int) -> list[int]:
        """Regions of a report that is in the ledger or due, as known before a log position."""
        rows = self.ledger.rows
        mine = (rows["report"] == position) & ~rows["rolled_back"]
        found: list[int] = rows["region"][mine].tolist()
        for report in self.due():
            if report.position == position and not report.rolled_back:
                names, _ = self.attribution(report, before)
                found += [self.regions.number(n) for n in names]
        return found

    def due(self) -> list[Report]:
        """Reports that wait for their tick."""
        return [report for due in self.pending.values() for report in due]

    # --- the fold

    def exclude(self, what: dict[str, Any]) -> int:
        """Mark the reports that a rollback names; returns how many there are."""
        by_id = what.get("reports") is not None
        wanted = set(what.get("reports") or [])
        source, start, end = what.get("source"), what.get("from"), what.get("to")

        def named(position: int, by: str, at: float) -> bool:
            if by_id:
                return position in wanted
            if source is not None and by != source:
                return False
            return (start is None or at >= start) and (end is None or at < end)

        rows = self.ledger.rows
        hit = np.ones(rows.size, np.bool_)
        if by_id:
            hit = np.isin(rows["report"], list(wanted))
        else:
            if source is not None:
                hit &= rows["source"] == self.sources.number(source)
            if start is not None:
                hit &= rows["at"] >= start
            if end is not None:
                hit &= rows["at"] < end
        hit &= ~rows["rolled_back"]
        rows["rolled_back"] |= hit
        gone = set(np.unique(rows["report"][hit]).tolist())
        for report in (*self.due(), *self.review.values()):
            if not report.rolled_back and named(report.position, report.source, report.at):
                report.rolled_back = True
                gone.add(report.position)
        self.review = {k: r for k, r in self.review.items() if not r.rolled_back}
        for i, act in enumerate(self.acts):
            if any(report in gone for report, _ in act.vouched):
                kept = tuple(pair for pair in act.vouched if pair[0] not in gone)
                self.acts[i] = replace(act, vouched=kept)
        return len(gone)

    def refold(self) -> None:
        """Fold everything again: what no longer counts never did."""
        rows = self.ledger.rows
        rows["use"] = ~rows["rolled_back"] & ~np.isin(rows["region"], list(self.allowed))
        self.ledger.kept = 0
        segments = list(self.segments())
        self.fold = Fold(self.fold.start)
        self._make_room()
        for until, config, act in segments:
            self.fold.run(rows, until, config)
            if act is not None:
                act.on(self.fold, config)

    def segments(self) -> Iterator[tuple[int, GateConfig, Act | None]]:
        """The fold in pieces: up to which tick, under which settings, what happens then."""
        config = GateConfig.from_dict(self.created["config"])
        for act in self.acts:
            yield act.tick, config, act
            config = act.config or config
        yield self.tick, config, None

    def sizes(self) -> tuple[int, int, int, int]:
        """Regions, sources, pairs with sources, pairs with signals."""
        return len(self.regions), len(self.sources), *self.ledger.pairs

    def _make_room(self) -> None:
        self.fold.grow(*self.sizes())
        self.traffic.grow(len(self.regions))

    # --- what is served

    def psi(self) -> npt.NDArray[np.float64]:
        """Conductance of every known region: fields, then allow-list and overrides."""
        psi = self.fold.conductance(self.config)[0][: len(self.regions)]
        for region in self.allowed:
            psi[region] = 1.0
        for region, override in self.overrides.items():
            if not self._expired(override):
                # the bound on what is served is today's psi_min, which may have risen since
                psi[region] = max(override["psi"], self.config.params.psi_min)
        return psi

    def _expired(self, override: dict[str, Any]) -> bool:
        end = override["expires_at"]
        return end is not None and self.tick * self.config.tick_seconds >= end

    def field_hash(self) -> str:
        """SHA-256 of the tick and of every region's G and H, whatever order they came in."""
        sums = hashlib.sha256(f"{self.tick}".encode())
        G, H = self.fold.G, self.fold.H
        known = [(r, i) for i, r in enumerate(self.regions.names) if G[i] != 0 or H[i] != 0]
        for name, i in sorted(known, key=lambda item: (isinstance(item[0], str), item[0])):
            sums.update(json.dumps(name).encode())
            sums.update(G[i].tobytes() + H[i].tobytes())
        return sums.hexdigest()


def _named(report: Report) -> tuple[list[Region], npt.NDArray[Any]]:
    """Regions that a report names itself, with equal weights."""
    names: list[Region] = list(dict.fromkeys(report.regions or []))
    return names, np.full(len(names), 1 / len(names))


def _shown(shown: Iterable[Region]) -> tuple[list[Region], npt.NDArray[Any]]:
    """Distinct regions that were shown and the share of each, by how often it occurs."""
    counts: dict[Region, int] = {}
    for region in shown:
        counts[region] = counts.get(region, 0) + 1
    weight = np.array(list(counts.values()), float)
    return list(counts), weight / weight.sum() if weight.size else weight


def _shares(
    found: dict[str, Event], decision_id: str, before: int
) -> tuple[list[Region], npt.NDArray[Any]]:
    """Distinct regions of a decision and their exposure shares: shown, else as served."""
    seen = found.get(exposure_key(decision_id))
    if seen is not None and seen.position < before:
        return _shown(seen.data()["shown"])
    body: DecisionBody = unpack_decision(found[decision_key(decision_id)].body)
    ids = body.ids()
    names: list[Region] = list(dict.fromkeys(ids))
    number = {name: i for i, name in enumerate(names)}
    weight = np.bincount([number[i] for i in ids], body.served, len(names))
    return names, weight / weight.sum()
