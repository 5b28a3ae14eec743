"""From a report to the regions that it is about: who gets which part of the harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rapo_gate.events import Event, Region, decision_key, exposure_key, unpack_decision
from rapo_gate.fold.ledger import ROW, UNIT, Rows
from rapo_gate.fold.registry import Numbering, Registry


class Lookup(Protocol):
    """A log, or an open transaction of one, in which decisions are looked up."""

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by their unique keys; those that are not there are left out."""
        ...


Shares = tuple[list[Region], npt.NDArray[Any]]
"""Distinct regions and the weight of each, summing to 1."""


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


def attributed(reports: Sequence[Report], log: Lookup, before: int) -> list[Shares]:
    """Regions of reports and their weights.

    A report that names regions is about them in equal parts (they were checked against its
    decision, if it has one); one that names a decision only, about what that showed.

    Args:
        reports: what was reported.
        log: in which decisions are looked up.
        before: only exposures logged before this position count.
    """
    wanted = list({str(r.decision_id) for r in reports if r.regions is None})
    events: dict[str, Event] = {}
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        events |= log.find([*map(decision_key, part), *map(exposure_key, part)])
    by_decision = {d: _of_decision(events, d, before) for d in wanted}
    return [
        shown_shares(dict.fromkeys(r.regions))
        if r.regions is not None
        else by_decision[str(r.decision_id)]
        for r in reports
    ]


def booked(
    reports: Sequence[Report], shares: Sequence[Shares], tick: int, agree_share: float,
    regions: Registry, sources: Numbering, signals: Numbering,
) -> Rows:  # fmt: skip
    """Rows of the ledger for reports that count in a tick; new names are given numbers."""
    sources.add(sorted({r.source for r in reports}))
    signals.add(sorted({r.signal for r in reports}))
    sizes = [weight.size for _, weight in shares]
    weight = np.concatenate([w for _, w in shares])
    rows = np.zeros(weight.size, ROW)
    rows["tick"] = tick
    rows["report"] = np.repeat([r.position for r in reports], sizes)
    rows["at"] = np.repeat([r.at for r in reports], sizes)
    rows["source"] = np.repeat([sources.number(r.source) for r in reports], sizes)
    rows["signal"] = np.repeat([signals.number(r.signal) for r in reports], sizes)
    rows["rolled_back"] = np.repeat([r.rolled_back for r in reports], sizes)
    rows["region"] = np.concatenate([regions.numbers(names) for names, _ in shares])
    rows["amount"] = np.rint(np.repeat([r.harm for r in reports], sizes) * weight * UNIT)
    rows["bystander"] = weight < agree_share
    return rows[rows["amount"] > 0]


def shown_shares(shown: Iterable[Region]) -> Shares:
    """Distinct regions that were shown and the share of each, by how often it occurs."""
    counts: dict[Region, int] = {}
    for region in shown:
        counts[region] = counts.get(region, 0) + 1
    weight = np.array(list(counts.values()), float)
    return list(counts), weight / weight.sum() if weight.size else weight


def _of_decision(events: dict[str, Event], decision_id: str, before: int) -> Shares:
    """Regions of a decision and their exposure shares: shown, else as served."""
    seen = events.get(exposure_key(decision_id))
    if seen is not None and seen.position < before:
        return shown_shares(seen.data()["shown"])
    body = unpack_decision(events[decision_key(decision_id)].body)
    ids = body.ids()
    names: list[Region] = list(dict.fromkeys(ids))
    number = {name: i for i, name in enumerate(names)}
    weight = np.bincount([number[i] for i in ids], body.served, len(names))
    return names, weight / weight.sum()
