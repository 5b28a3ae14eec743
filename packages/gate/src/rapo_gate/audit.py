"""What reviewers ask the gate: who reported, what was changed, what an action would change.

Pure functions of a state (and of the log where decisions are needed); they change nothing. All
answers but what is foreseen are plain values that JSON can hold.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo_gate.bias import bias
from rapo_gate.chains import (
    chain,
    course,
    explain,
    region_view,
    region_views,
    traces_by_source,
    waiting_report,
)
from rapo_gate.events import NewEvent, Region
from rapo_gate.fold.attribution import Lookup, Report
from rapo_gate.fold.fold import Fields
from rapo_gate.fold.formula import can_act, net_rate, params_of, rates_of
from rapo_gate.fold.ledger import UNIT
from rapo_gate.fold.state import State

__all__ = [
    "bias", "chain", "course", "explain", "outcomes", "overview", "queue", "region_view",
    "reporters", "top_regions",
]  # fmt: skip

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Changed:
    """A region that an action changes. Each pair holds the value before and after it."""

    region: Region
    psi: tuple[float, float]
    G: tuple[float, float]
    H: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action did, or what it would do."""

    dry_run: bool
    regions: list[Changed]
    """Regions whose G, H or psi changes, the largest change of psi first."""
    reports: int = 0
    """Number of reports that a rollback takes out."""
    revision: int | None = None
    """State revision after the action; None for a dry run."""
    event: int | None = None
    """Position of the action in the log; None for a dry run."""


HISTOGRAM = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Lower ends of the bins of the scar histogram; 0 itself is left out."""


def top_regions(state: State, most: int = 50) -> list[Values]:
    """The regions with the largest scars, then the largest traces."""
    count = len(state.regions)
    order = np.lexsort((np.arange(count), -state.fold.G[:count], -state.fold.H[:count]))
    return region_views(state, order[:most].tolist())


def queue(state: State, limit: int = 200) -> list[Values]:
    """Reports that wait for a reviewer: late ones, unknown regions, regions not yet confirmed."""
    waiting = sorted(state.review.values(), key=lambda r: -r.position)
    items = [waiting_report(r, r.waits_for) for r in waiting[:limit]]
    rows, ticks = state.ledger.rows, state.ledger.rows["tick"]
    sure = state.fold.conductance()[1]
    start = int(np.searchsorted(ticks, state.tick - state.config.confirm_ticks, "right"))
    recent = rows[start:]
    waits = ~recent["rolled_back"] & ~sure[recent["region"]]
    waits &= ~np.isin(recent["region"], list(state.allowed))
    unsure = recent[waits]
    unsure = unsure[np.argsort(-unsure["report"], kind="stable")]
    starts = np.flatnonzero(np.diff(unsure["report"], prepend=-1))
    ends = np.append(starts, unsure.size)[1:]
    room = max(0, limit - len(items))
    for start, end in zip(starts[:room].tolist(), ends[:room].tolist(), strict=True):
        part = unsure[start:end]
        items.append({
            "report_id": int(part["report"][0]),
            "waits_for": "agreement",
            "source": state.sources.names[part["source"][0]],
            "signal": state.signals.names[part["signal"][0]],
            "at": float(part["at"][0]),
            "harm": float(part["amount"].sum() / UNIT),
            "decision_id": None,
            "regions": [state.regions.names[r] for r in part["region"][:20]],
        })  # fmt: skip
    return items


def reporters(state: State, limit: int = 200) -> list[Values]:
    """Who reported, how much of it agreed with others, how much was rolled back.

    Those with the largest part of today's traces come first; `reports` have counted, `waiting`
    wait for their tick or for a reviewer. A trace falls to reporters by their share of the reports
    that the region has in memory.
    """
    rows, count = state.ledger.rows, len(state.sources)
    source = rows["source"]
    once = rows[np.diff(rows["report"], prepend=-1) != 0]  # rows of a report lie together
    trace = traces_by_source(state.fold, count)
    reports = np.bincount(once["source"], minlength=count)
    rolled_back = np.bincount(once["source"], once["rolled_back"], count)
    regions = np.bincount(source[state.ledger.first_rows()], minlength=count)
    harm = np.bincount(source, rows["amount"] / UNIT, count)
    sure = state.fold.conductance()[1]
    agreed = np.bincount(source, sure[rows["region"]], count)
    size = np.bincount(source, minlength=count)
    last_at = np.full(count, -np.inf)
    np.maximum.at(last_at, source, rows["at"])
    said = np.zeros((count, len(state.signals)), np.bool_)
    said[source, rows["signal"]] = True
    due: dict[str, list[Report]] = {}
    for report in (*state.due(), *state.review.values()):
        if not report.rolled_back:
            due.setdefault(report.source, []).append(report)
    signals = state.signals.names
    listed: list[Values] = []
    for i in np.lexsort((np.arange(count), -trace))[:limit].tolist():
        if size[i] == 0:
            continue
        listed.append({
            "waiting": len(due.pop(str(state.sources.names[i]), [])),
            "source": state.sources.names[i],
            "reports": int(reports[i]),
            "rolled_back": int(rolled_back[i]),
            "regions": int(regions[i]),
            "signals": sorted(str(signals[s]) for s in np.flatnonzero(said[i])),
            "harm": float(harm[i]),
            "trace": float(trace[i]),
            "agreed": float(agreed[i] / size[i]),
            "last_at": float(last_at[i]),
        })  # fmt: skip
    for name in sorted(due, key=lambda name: (-len(due[name]), name))[: limit - len(listed)]:
        if name not in state.sources:  # nothing of theirs has counted yet
            mine = due[name]
            listed.append({
                "waiting": len(mine), "source": name, "reports": 0, "rolled_back": 0,
                "regions": 0, "signals": sorted({r.signal for r in mine}), "harm": 0.0,
                "trace": 0.0, "agreed": None, "last_at": max(r.at for r in mine),
            })  # fmt: skip
    return listed


def _can_scar(state: State) -> Values:
    """The number of regions that would scar in the long run at their present rates.

    `idle` is true if there were reports and no region could scar: the settings do not fit.
    """
    fold, config = state.fold, state.config
    cells = fold.f.cells[: fold.ledger.slots]
    prior = rates_of(config, fold.topics)[cells["topic"]]
    rates = np.zeros(len(state.regions))  # as they are where nothing was reported
    rates[: cells.size] = net_rate(cells["S"], cells["E"], prior, params_of(config))
    ability = can_act(config, rates)
    idle = len(cells) > 0 and not ability.able
    return {"can_scar": ability.able, "acting": str(ability), "idle": idle}


def overview(state: State) -> Values:
    """The gate at a glance."""
    count = len(state.regions)
    psi, H = state.psi(), state.fold.H[:count]
    scars, _ = np.histogram(H[H > 0], [*HISTOGRAM, np.inf])
    traffic = list(state.traffic.course)[-200:]
    now = state.traffic.now
    decisions = sum(c.decisions for c in traffic) + now.decisions
    reports = sum(c.reports for c in traffic) + now.reports
    return {
        "mode": state.mode,
        "percent": state.percent,
        "tick": state.tick,
        "revision": state.revision,
        "position": state.position,
        "regions": count,
        "regions_gated": int((psi < 1).sum()),
        **_can_scar(state),
        "floor_share": float((psi <= state.config.params.psi_min).mean()) if count else 0.0,
        "scar_mass": float(H.sum()),
        "scars": {"from": list(HISTOGRAM), "regions": scars.tolist()},
        "gating": _over(sum(c.tv for c in traffic) + now.tv, decisions),
        "saturated": _over(sum(c.saturated for c in traffic) + now.saturated, decisions),
        "enforced": _over(sum(c.enforced for c in traffic) + now.enforced, decisions),
        "unknown": sum(c.unknown for c in traffic) + now.unknown,
        "decisions": decisions,
        "reports": reports,
        "report_lag": _over(sum(c.lag for c in traffic) + now.lag, reports),
        "waiting_for_review": len(state.review),
        "due": sum(len(due) for due in state.pending.values()),
        "alarms": state.bands_left,
        "escalations": state.escalations[-20:],
        "course": {
            "at": [c.tick * state.config.tick_seconds for c in traffic],
            "decisions": [c.decisions for c in traffic],
            "tv": [_over(c.tv, c.decisions) for c in traffic],
            "reports": [c.reports for c in traffic],
            "scar_mass": [c.scar_mass for c in traffic],
            "reach": [c.reach for c in traffic],
            "sensitive": [c.sensitive for c in traffic],
        },
    }


def outcomes(state: State) -> Values:
    """Reach and sensitive mass per tick, and how much of a stimulus comes back.

    A stimulus that returns after D ticks of absence is a replay: `RAG`, `AUC_R` and `SM_R` compare
    its last stay with its first, in peak reach, total reach and impressions of sensitive regions;
    None until it has returned.
    """
    stimuli = []
    for name, stays in state.traffic.appearances.items():
        first, last, back = stays.first, stays.newest, stays.count > 1
        stimuli.append({
            "stimulus": name,
            "stays": stays.count,
            "first_at": first.first * state.config.tick_seconds,
            "last_at": last.last * state.config.tick_seconds,
            "RAG": _ratio(last.peak_reach, first.peak_reach) if back else None,
            "AUC_R": _ratio(last.total_reach, first.total_reach) if back else None,
            "SM_R": _ratio(last.sensitive, first.sensitive) if back else None,
        })  # fmt: skip
    ticks = list(state.traffic.course)[-200:]
    return {
        "stimuli": stimuli,
        "reach": [c.reach for c in ticks],
        "sensitive": [c.sensitive for c in ticks],
        "at": [c.tick * state.config.tick_seconds for c in ticks],
    }


def _over(total: float, count: float) -> float:
    return total / count if count else 0.0


def _ratio(later: float, earlier: float) -> float | None:
    return later / earlier if earlier else None


# --- what an event would change: only the regions concerned are folded again


class Foreseen(NamedTuple):
    """Regions that an event concerns, before and after it."""

    before: Fields
    after: Fields
    reports: int = 0
    """Reports that a rollback takes out."""


def foresee(state: State, kind: str, data: dict[str, Any], log: Lookup) -> Foreseen:
    """What the next event would change: `kind`, with `data` in its body."""
    plan = state.plan(kind, data, state.position + 1, log)
    folded = state.fold.preview(plan)
    others = state.fold.now(np.setdiff1d(plan.regions, folded.regions))
    pairs: Any = zip(folded, others, strict=True)
    after = Fields(*(np.concatenate(pair) for pair in pairs))
    now = state.fold.now(after.regions)
    before = now._replace(psi=state.served(now.regions, now.psi))
    after = after._replace(psi=state.served(after.regions, after.psi, plan))
    moved = np.zeros(now.regions.size, np.bool_)
    for old, new in zip(before[1:], after[1:], strict=True):
        moved |= np.asarray(old != new)
    return Foreseen(_some(before, moved), _some(after, moved), len(plan.reports))


def _some(fields: Fields, which: npt.NDArray[np.bool_]) -> Fields:
    return Fields(*(column[which] for column in fields))  # type: ignore[arg-type]


def preview(state: State, draft: NewEvent, log: Lookup) -> Effect:
    """What an action's event would do; the state stays as it is."""
    before, after, reports = foresee(state, draft.kind, json.loads(draft.body), log)
    pairs = [
        list(zip(old.tolist(), new.tolist(), strict=True))
        for old, new in zip(before[1:], after[1:], strict=True)
    ]
    names = [state.regions.names[r] for r in before.regions]
    changed = [Changed(n, psi, G, H) for n, G, H, psi in zip(names, *pairs, strict=True)]
    changed.sort(key=lambda c: -abs(c.psi[1] - c.psi[0]))
    return Effect(True, changed, reports)
