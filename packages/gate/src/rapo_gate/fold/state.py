"""`State`: what the log amounts to. A pure function of the events, in the order of the log."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_gate.config import GateConfig
from rapo_gate.events import LOG_FORMAT, Event, Region, decision_key, unpack_decision
from rapo_gate.fold.attribution import Lookup, Report, attributed, booked, shown_shares
from rapo_gate.fold.fold import Confirmation, Fold, Plan
from rapo_gate.fold.ledger import UNIT, Ledger
from rapo_gate.fold.registry import UNKNOWN, Numbering, Registry
from rapo_gate.fold.traffic import Traffic, served_units

__all__ = ["Report", "State"]


class State:
    """Fields, registries, ledger, review queue, human decisions and counts at a log position."""

    def __init__(self) -> None:
        self.position = 0
        self.revision = 0
        """Position of the last event that changed what is served."""
        self.created: dict[str, Any] = {}
        self.mode, self.percent = "shadow", 100.0
        self.regions, self.sources, self.signals = Registry(), Numbering(), Numbering()
        self.fold = Fold(0, GateConfig())
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

    @property
    def config(self) -> GateConfig:
        """Settings in force."""
        return self.fold.config

    @property
    def ledger(self) -> Ledger:
        """What has counted."""
        return self.fold.ledger

    def apply(self, event: Event, log: Lookup) -> None:
        """Take in the next event of the log, in which decisions and exposures are looked up."""
        if event.position <= self.position:
            raise UserError(f"event {event.position} came after {self.position}")
        if event.kind == "Decision":
            self._decision(event)
        else:
            _TAKES_IN[event.kind](self, event, event.data(), log)
        self.position = event.position

    # --- what platforms send

    def _decision(self, event: Event) -> None:
        body = unpack_decision(event.body)
        numbers = self.regions.numbers(body.regions)
        unknown = int((numbers == UNKNOWN).sum())
        if unknown:
            self._know(body.ids())
            numbers = self.regions.numbers(body.regions)
            self.traffic.now.unknown += unknown
        self.traffic.decide(numbers, body.p, body.psi, body.enforced, body.stimulus, self.config)
        if body.tick + self.config.D > self.tick:  # else its reports have counted
            units = served_units(body.p, body.psi, body.enforced)
            self.fold.exposure.add(body.tick, numbers, units)

    def _exposure(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        key = decision_key(data["decision_id"])
        body = unpack_decision(log.find([key])[key].body)
        names, weight = shown_shares(data["shown"])
        served, shown = self.regions.numbers(body.regions), self.regions.numbers(names)
        stimulus = body.stimulus if body.tick >= self.tick else None
        self.traffic.expose(served, body.served, shown, weight, stimulus)
        if body.tick + self.config.D > self.tick:
            add = self.fold.exposure.add
            add(body.tick, served, -served_units(body.p, body.psi, body.enforced))
            add(body.tick, shown, np.rint(weight * UNIT).astype(np.int64))

    def _harmreport(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
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

    def _tick(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        closed, until, exposure = self.tick, int(data["tick"]), self.fold.exposure
        shown = exposure.of_tick(closed)  # before it counts
        seen = {t + self.config.D: t for t in exposure.ticks()}
        for tick in sorted(t for t in {*self.pending, *seen} if t <= until):
            if tick in seen:
                self.fold.expose(seen[tick], tick)
            if tick in self.pending:
                self._resolve(self.pending.pop(tick), tick, event.position, log)
            self.fold.run(tick)
        self.fold.run(until)
        for region in [r for r, o in self.overrides.items() if self.expired(o)]:
            del self.overrides[region]
        count = len(self.regions)
        floored = int((self.psi() <= self.config.params.psi_min).sum())
        self.bands_left = self.traffic.close_tick(
            closed, shown, self.fold.H[:count] > 0, float(self.fold.H.sum()), floored, self.config
        )
        self.revision = event.position

    # --- what people do

    def plan(self, kind: str, data: dict[str, Any], position: int, log: Lookup) -> Plan:
        """What a human action changes: its dry run previews the plan, its event carries it out.

        Args:
            kind: of the event.
            data: its body.
            position: of the event in the log.
            log: in which decisions are looked up.
        """
        if kind == "Confirm":
            new = self.confirmations(data, position, log)
            return Plan(np.array([c.region for c in new], np.int32), confirmed=tuple(new))
        if kind == "Rollback":
            rows, reports = self.named(data)
            return self.fold.without(self.ledger.rows["rolled_back"] | rows, reports)
        if kind == "ConfigChange":
            if "config" in data:
                by_hand = np.array(list(self.overrides), np.int32)  # psi_min holds for them too
                return Plan(by_hand, config=GateConfig.from_dict(data["config"]))
            labels = {self.regions.number(r): label for r, label in data.get("labels", [])}
            topics = {region: label.get("topic") for region, label in labels.items()}
            return Plan(np.array(list(topics), np.int32), topics=topics)
        region = self.regions.number(data["region"])
        listed = dict(self.allowed if kind == "Allow" else self.overrides)
        listed.pop(region, None)
        if data["allowed"] if kind == "Allow" else data["psi"] is not None:
            listed[region] = {**data, "position": position}
        regions = np.array([region], np.int32)
        if kind == "Override":
            return Plan(regions, overrides=listed)
        return Plan(regions, free=bool(data["allowed"]), allowed=listed)

    def _confirm(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        plan = self.plan(event.kind, data, event.position, log)
        for report in [self.review.pop(p) for p in data.get("reports", []) if p in self.review]:
            self._know(report.regions or [])
            report.waits_for = "admitted"
            self.pending.setdefault(self.tick + 1, []).append(report)
        if plan.confirmed:
            self.fold.carry_out(plan)
            self.revision = event.position

    def confirmations(self, data: dict[str, Any], before: int, log: Lookup) -> list[Confirmation]:
        """Which regions are confirmed: those that are named, and those of reports that count.

        A report that still waits for a reviewer is admitted, which confirms nothing yet.

        Args:
            data: of the confirmation.
            before: its position in the log.
            log: in which decisions are looked up.
        """
        until = self.tick + self.config.confirm_ticks
        named = {(self.regions.number(r), 0) for r in data.get("regions", [])}
        wanted = [p for p in data.get("reports", []) if p not in self.review]
        rows = self.ledger.rows
        mine = np.isin(rows["report"], wanted) & ~rows["rolled_back"]
        named |= set(zip(rows["region"][mine].tolist(), rows["report"][mine].tolist(), strict=True))
        for report in [r for r in self.due() if r.position in wanted and not r.rolled_back]:
            names, _ = attributed([report], log, before)[0]
            named |= {(self.regions.number(n), report.position) for n in names}
        return [Confirmation(self.tick, region, until, report) for region, report in sorted(named)]

    def _override(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        plan = self.plan(event.kind, data, event.position, log)
        self.overrides = self.overrides if plan.overrides is None else plan.overrides
        self.revision = event.position

    def _allow(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        plan = self.plan(event.kind, data, event.position, log)
        self.allowed = self.allowed if plan.allowed is None else plan.allowed
        self.fold.carry_out(plan)
        self.revision = event.position

    def _rollback(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        plan = self.plan(event.kind, data, event.position, log)
        for report in (*self.due(), *self.review.values()):
            report.rolled_back |= report.position in plan.reports
        self.review = {k: r for k, r in self.review.items() if not r.rolled_back}
        self.fold.carry_out(plan)
        when = {"position": event.position, "at": event.at, "count": len(plan.reports)}
        self.rollbacks.append({**data, **when})
        self.revision = event.position

    def _configchange(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        if "created" in data:
            if data.get("format") != LOG_FORMAT:
                raise UserError(
                    f"this log has format {data.get('format', 1)}, but this version reads format "
                    f"{LOG_FORMAT}; open it with the version of rapo-gate that made it"
                )
            self.created = {**data["created"], "config": data["config"]}
            config = GateConfig.from_dict(data["config"])
            self.fold = Fold(int(data["created"]["tick"]), config)
            self.traffic.now.tick = self.fold.tick
        else:
            self.fold.carry_out(self.plan(event.kind, data, event.position, log))
        if "mode" in data:
            self.mode, self.percent = data["mode"], data["percent"]
        labels = {self.regions.number(region): label for region, label in data.get("labels", [])}
        self.labels |= labels
        self.traffic.mark({r: label.get("sensitive") == "yes" for r, label in labels.items()})
        self.revision = event.position

    def _escalation(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        self.escalations.append({**data, "position": event.position, "at": event.at})

    def _erasure(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        """A name was replaced in events that are there: nothing of it is in the fields."""

    def _compaction(self, event: Event, data: dict[str, Any], log: Lookup) -> None:
        """Bodies that are in the fields already were dropped."""

    # --- reports

    def _resolve(self, reports: list[Report], tick: int, before: int, log: Lookup) -> None:
        """Let reports that are due count."""
        shares = attributed(reports, log, before)
        rows = booked(
            reports, shares, tick, self.config.agree_share, self.regions, self.sources,
            self.signals,
        )  # fmt: skip
        self.fold.count(rows)

    def due(self) -> list[Report]:
        """Reports that wait for their tick."""
        return [report for due in self.pending.values() for report in due]

    def named(self, what: dict[str, Any]) -> tuple[npt.NDArray[np.bool_], set[int]]:
        """Rows and reports that a rollback would take out now; what is out already is neither."""
        by_id = what.get("reports") is not None
        wanted = set(what.get("reports") or [])
        source, start, end = what.get("source"), what.get("from"), what.get("to")

        def means(report: Report) -> bool:
            if by_id:
                return report.position in wanted
            if source is not None and report.source != source:
                return False
            return (start is None or report.at >= start) and (end is None or report.at < end)

        rows = self.ledger.rows
        hit = ~rows["rolled_back"]
        if by_id:
            hit &= np.isin(rows["report"], list(wanted))
        else:
            if source is not None:
                hit &= rows["source"] == self.sources.number(source)
            if start is not None:
                hit &= rows["at"] >= start
            if end is not None:
                hit &= rows["at"] < end
        gone = set(np.unique(rows["report"][hit]).tolist())
        waiting = (*self.due(), *self.review.values())
        gone |= {r.position for r in waiting if not r.rolled_back and means(r)}
        return hit, gone

    def _know(self, names: list[Region]) -> None:
        """Take in regions that are new."""
        self.regions.add(names)
        self.fold.grow(len(self.regions))
        self.traffic.grow(len(self.regions))

    # --- what is served

    def psi(self) -> npt.NDArray[np.float64]:
        """Conductance of every known region: fields, then allow-list and overrides."""
        psi = self.fold.psi[: len(self.regions)].copy()
        by_hand = np.array([*self.allowed, *self.overrides], np.int32)
        psi[by_hand] = self.served(by_hand, psi[by_hand])
        return psi

    def served(
        self, regions: npt.NDArray[Any], psi: npt.NDArray[np.float64], plan: Plan | None = None
    ) -> npt.NDArray[np.float64]:
        """What people make of the psi of some regions, after a plan if one is given."""
        plan = plan or Plan()
        allowed = self.allowed if plan.allowed is None else plan.allowed
        overrides = self.overrides if plan.overrides is None else plan.overrides
        # the bound on what is served is today's psi_min, which may have risen since an override
        least = (plan.config or self.config).params.psi_min
        served = psi.copy()
        by_hand = np.flatnonzero(np.isin(regions, [*allowed, *overrides]))
        for i, region in zip(by_hand.tolist(), regions[by_hand].tolist(), strict=True):
            if region in allowed:
                served[i] = 1.0
            override = overrides.get(region)
            if override is not None and not self.expired(override):
                served[i] = max(override["psi"], least)
        return served

    def expired(self, override: dict[str, Any]) -> bool:
        """Whether an override no longer holds."""
        end = override["expires_at"]
        return end is not None and self.tick * self.config.tick_seconds >= end

    def field_hash(self) -> str:
        """SHA-256 of the tick and of every region's G and H, whatever order they came in."""
        sums = hashlib.sha256(f"{self.tick}".encode())
        G, H, names = self.fold.G, self.fold.H, self.regions.names
        known = [(names[i], i) for i in np.flatnonzero((G != 0) | (H != 0)).tolist()]
        for name, i in sorted(known, key=lambda item: (isinstance(item[0], str), item[0])):
            sums.update(json.dumps(name).encode())
            sums.update(G[i].tobytes() + H[i].tobytes())
        return sums.hexdigest()


_TAKES_IN = {
    "Exposure": State._exposure,
    "HarmReport": State._harmreport,
    "Confirm": State._confirm,
    "Override": State._override,
    "Rollback": State._rollback,
    "Allow": State._allow,
    "ConfigChange": State._configchange,
    "Tick": State._tick,
    "Escalation": State._escalation,
    "Erasure": State._erasure,
    "Compaction": State._compaction,
}
"""What each kind of event but Decision does."""
