"""Why: from reports to fields to decisions, for one region or one decision.

Pure functions of a state and its log; they change nothing. A report's parts of the trace and the
scar sum to the whole over reports: in tick t the trace gets `alpha harm_t`, which falls to the
reports in memory, `S_t`, by their weight in it: `c_t = alpha harm_t / S_t` for each. A report's
weight decays by `fade` a tick, what it has added by `keep`; so going backwards from now,
`W_t = c_t P_t + fade W_(t+1)` is what a report of tick t has left in the trace per unit of harm,
with `P_t` what is kept until now. The scar grows by parts of the trace, each of which belongs to
reports in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from rapo_core.jit import kernel
from rapo_gate.events import Region, decision_key, unpack_decision
from rapo_gate.fold.attribution import Report, attributed
from rapo_gate.fold.fold import Fold
from rapo_gate.fold.ledger import NOTHING, UNIT
from rapo_gate.fold.names import Names
from rapo_gate.fold.state import State
from rapo_gate.log.store import Store

Real = npt.NDArray[np.float64]


@kernel
def _weights(course: Any, alpha: Any, added: Any, left: Any, scar: Any) -> None:
    """Per tick and unit of harm: trace added so far, trace left now, scar now."""
    kept, scar_kept, onward = 1.0, 1.0, 0.0  # onward: scar now per unit of trace after this tick
    for t in range(course.size - 1, -1, -1):
        at = course[t]
        each = alpha[t] * at.harm / at.S if at.S > 0 else 0.0
        later = t + 1 < course.size
        fade = course[t + 1].fade if later else 0.0
        added[t] = each + (fade * added[t + 1] if later else 0.0)
        left[t] = each * kept + (fade * left[t + 1] if later else 0.0)
        scar[t] = each * onward + (fade * scar[t + 1] if later else 0.0)
        if t > 0:
            before = course[t - 1].G
            grew = at.grew * scar_kept / before if before > 0 else 0.0
            onward = grew + at.keep * onward
        kept *= at.keep
        scar_kept *= at.held


class Parts(NamedTuple):
    """Reports on a region that counted by a tick, in the order of the ledger; one length."""

    rows: npt.NDArray[np.int64]
    """Their places in the ledger, also of those that were rolled back."""
    added: Real
    """Trace that each has added so far."""
    G: Real
    """Its part of the trace."""
    H: Real
    """Its part of the scar."""
    exposure: Real
    """Exposures that the region had in memory when it counted."""


def parts_of(fold: Fold, region: int, until: int) -> Parts:
    """What each report on a region has caused up to a tick."""
    places = fold.ledger.rows_of(region)
    places = places[fold.ledger.rows["tick"][places] <= until]
    first, course = fold.course(region, until)
    sums = np.zeros((3, course.size))
    alpha = np.zeros(course.size)
    for tick, config in fold.changes:
        alpha[max(0, tick + 1 - first) :] = config.params.alpha
    _weights(course, alpha, *sums)
    slot = fold.ledger.slot(region)
    if not places.size or fold.free[slot]:
        none = np.zeros(places.size)
        return Parts(places, none, none, none, none)
    at = fold.ledger.rows["tick"][places] - first
    taken = fold.ledger.taken[places]
    harm = np.where(taken == NOTHING, 0, taken) / UNIT
    added, G, H = (harm * each[at] for each in sums)
    return Parts(places, added, G, H, course["E"][at])


def traces_by_source(fold: Fold, sources: int) -> Real:
    """Of all traces, what falls to each reporter by their share in memory, (sources,)."""
    rows, pair = fold.ledger.rows[fold.ledger.first_rows()], fold.f.pairs[: fold.ledger.pairs]
    source, slot = rows["source"], fold.ledger.slot_of[rows["region"]]
    tick, S, G = (fold.f.cells[name][slot] for name in ("tick", "S", "G"))
    fade = 2.0 ** (-1 / fold.config.half_life)
    mass = pair["mass"] * fade ** (tick - pair["tick"])
    share = np.divide(mass, S, out=np.zeros(mass.size), where=S > 0)
    return np.asarray(np.bincount(source, share * G, sources), np.float64)


T = TypeVar("T")
Values = dict[str, Any]


class Reader(Protocol):
    """Calls a function with the state while nothing changes it, and returns what that returns."""

    def __call__(self, look: Callable[[State], T], /) -> T:
        """What `look` returns for the state."""
        ...


DECISIONS_SEARCHED = 2000
"""Newest decisions that are searched for those that a region changed."""
DUE_SEARCHED = 500
"""Newest reports that have not counted yet that are searched for a region."""


def region_view(state: State, region: Region) -> Values:
    """Everything about one region.

    Raises:
        LookupError: no decision ever had it.
    """
    return region_views(state, [_number(state, region)])[0]


def region_views(state: State, numbers: Sequence[int]) -> list[Values]:
    """Everything about some regions, by their numbers."""
    fold, traffic, config = state.fold, state.traffic, state.config
    chosen = np.array(numbers, np.int32)
    psi = dict(zip(chosen.tolist(), state.served(chosen, fold.psi[chosen]).tolist(), strict=True))
    views = []
    for i in numbers:
        expires, cell = None, fold.cell(i)
        sources, signals = fold.agreement(i)
        confirmed_until = max(int(cell["agreed_until"]), int(cell["confirmed_until"]))
        if config.scar_ticks is not None and fold.H[i] > 0:
            expires = (int(cell["grown"]) + config.scar_ticks) * config.tick_seconds
        views.append({
            "region": state.regions.names[i],
            "G": float(fold.G[i]),
            "H": float(fold.H[i]),
            "psi": psi[i],
            "confirmed": fold.tick <= confirmed_until,
            "sources": sources,
            "signals": signals,
            "scar_expires_at": expires,
            "override": state.overrides.get(i),
            "allowed": state.allowed.get(i),
            "label": state.labels.get(i, {}),
            "proposed": float(traffic.proposed[i]),
            "gated": float(traffic.gated[i]),
            "served": float(traffic.served[i]),
        })  # fmt: skip
    return views


def course(state: State, region: Region, points: int = 300) -> Values:
    """G and H of a region from its first report to now, at up to `points` ticks.

    Returns:
        `at` (Unix seconds), `G`, `H`, lists of one length; empty if nothing was reported.
    """
    first, history = state.fold.course(_number(state, region))
    if not history.size:
        return {"at": [], "G": [], "H": []}
    start = first - 1  # when nothing had been reported
    ticks = np.unique(np.linspace(start, state.tick, points).astype(np.int64))
    G, H = (np.concatenate(([0.0], history[name]))[ticks - start] for name in ("G", "H"))
    seconds = state.config.tick_seconds
    return {"at": [float(t) * seconds for t in ticks], "G": G.tolist(), "H": H.tolist()}


def chain(read: Reader, store: Store, region: Region, limit: int = 50) -> Values:
    """From reports to decisions: report, exposure, weight, dG, dH, and what it changed.

    The state is locked only while it is looked at, and not while the log is read.

    Args:
        read: calls a function with the state while nothing changes it.
        store: the log of that state.
        region: one that a decision had.
        limit: most reports, and most decisions.

    Returns:
        `region` (its view), `reports` (the newest `limit`, with the trace and the scar that each
        caused), `due` (those that have not counted yet), `course`, and `decisions`: the newest
        that the region changed, with its share before and after.
    """

    def look(state: State) -> tuple[Values, list[tuple[float, Report]]]:
        parts = parts_of(state.fold, _number(state, region), state.tick)
        rows = state.ledger.rows[parts.rows]
        newest = np.lexsort((-rows["report"], -rows["tick"]))[:limit]
        values = {
            "region": region_view(state, region),
            "reports": _counted(state, parts, newest),
            "reports_in_all": int(rows.size),
            "course": course(state, region),
        }
        newest_first = (
            (tick * state.config.tick_seconds, report)
            for tick in sorted(state.pending)[::-1] for report in state.pending[tick][::-1]
        )  # fmt: skip
        return values, [p for p in islice(newest_first, DUE_SEARCHED) if not p[1].rolled_back]

    values, pending = read(look)
    _add_sent(store, values["reports"])
    values["due"] = _due(store, pending, region)[:limit]
    values["decisions"] = _decisions_of(store, region, limit)
    return values


def explain(read: Reader, store: Store, decision_id: str, limit: int = 10) -> Values:
    """How much a decision was changed, and by which reports.

    Args:
        read: calls a function with the state while nothing changes it.
        store: the log of that state.
        decision_id: what the gate answered with.
        limit: most regions, and most reports of each.

    Raises:
        LookupError: there is no such decision.
        DroppedError: a compaction dropped what the decision was made of.
    """
    key = decision_key(decision_id)
    event = store.find([key]).get(key)
    if event is None:
        raise LookupError(f"decision_id {decision_id!r} is of no decision of this gate")
    body = unpack_decision(event.body)
    p, q = body.p / body.p.sum(), body.gated
    moved: dict[Region, list[float]] = {}
    for name, before, after, psi in zip(body.ids(), p, q, body.psi, strict=True):
        entry = moved.setdefault(name, [0.0, 0.0, float(psi)])
        entry[0] += float(before)
        entry[1] += float(after)
    gated = sorted((n for n in moved if moved[n][2] < 1), key=lambda n: moved[n][1] - moved[n][0])

    def look(state: State) -> list[Values]:
        regions = []
        for name in gated[:limit]:
            number = state.regions.number(name)
            parts = parts_of(state.fold, number, min(body.tick, state.tick))
            weightiest = np.argsort(-_share(state, parts), kind="stable")[:limit]
            regions.append({
                "region": name,
                "psi": moved[name][2],
                "before": moved[name][0],
                "after": moved[name][1],
                "because_of": _counted(state, parts, weightiest),
                "reports_in_all": int(parts.rows.size),
                "override": state.overrides.get(number),
            })  # fmt: skip
        return regions

    regions = read(look)
    for view in regions:
        _add_sent(store, view["because_of"])
    return {
        "decision_id": decision_id,
        "position": event.position,
        "at": event.at,
        "mode": "enforce" if body.enforced else "shadow",
        "applied": body.enforced,
        "revision": body.revision,
        "candidates": body.p.size,
        "total_variation": float(np.abs(p - q).sum() / 2),
        "passed": body.passed,
        "stimulus": body.stimulus,
        "regions": regions,
        "regions_gated": len(gated),
    }


def _number(state: State, region: Region) -> int:
    number = state.regions.number(region)
    if number < 0:
        raise LookupError(f"region {region!r} is not known: no decision ever had it")
    return number


def _share(state: State, parts: Parts) -> npt.NDArray[np.float64]:
    """Each report's part of what takes psi down, summing to 1."""
    params = state.config.params
    weight = params.w_G * parts.G + params.w_H * parts.H
    return np.asarray(weight / (weight.sum() or 1.0))


def _counted(state: State, parts: Parts, chosen: npt.NDArray[np.intp]) -> list[Values]:
    """Some reports with what each has caused."""
    rows, shares = state.ledger.rows[parts.rows[chosen]], _share(state, parts)
    return [
        {
            "report_id": int(row["report"]),
            "source": state.sources.names[row["source"]],
            "signal": state.signals.names[row["signal"]],
            "at": float(row["at"]),
            "tick": int(row["tick"]),
            "harm_here": float(row["amount"] / UNIT),
            "exposure": float(parts.exposure[i]),
            "dG": float(parts.added[i]),
            "dH": float(parts.H[i]),
            "G_left": float(parts.G[i]),
            "share": float(shares[i]),
            "rolled_back": bool(row["rolled_back"]),
            "counts": not row["rolled_back"] and int(row["region"]) not in state.allowed,
        }
        for i, row in zip(chosen.tolist(), rows, strict=True)
    ]


def _add_sent(store: Store, reports: list[Values]) -> None:
    """Add what was sent to reports that counted; None where a compaction dropped it."""
    for report in reports:
        events = store.read(report["report_id"] - 1, 1)
        here = bool(events) and events[0].position == report["report_id"] and bool(events[0].body)
        sent = events[0].data() if here else {}
        report["harm"] = sent.get("harm")
        report["key"] = sent.get("key")
        report["decision_id"] = sent.get("decision_id")
        report["weight"] = report["harm_here"] / sent["harm"] if sent.get("harm") else None


def _decisions_of(store: Store, region: Region, limit: int) -> list[Values]:
    """The newest decisions that a region's psi changed, of those that a compaction left."""
    changed: list[Values] = []
    for event in store.read(0, DECISIONS_SEARCHED, ("Decision",), newest=True):
        if not event.body:
            continue
        body = unpack_decision(event.body)
        if body.passed == 1.0 or isinstance(body.regions, Names) != isinstance(region, str):
            continue
        here = np.array([name == region for name in body.ids()])
        if not here.any():
            continue
        before, after = body.p[here].sum() / body.p.sum(), body.gated[here].sum()
        changed.append({
            "decision_id": (event.key or "").partition("\x1f")[2],
            "at": event.at,
            "psi": float(body.psi[here][0]),
            "before": float(before),
            "after": float(after),
            "applied": body.enforced,
        })  # fmt: skip
        if len(changed) == limit:
            break
    return changed


def _due(store: Store, pending: list[tuple[float, Report]], region: Region) -> list[Values]:
    """The reports on a region among some that will count at a time, in Unix seconds."""
    shares = attributed([report for _, report in pending], store, 2**62)
    return [
        {**waiting_report(report, "its tick"), "counts_at": counts_at}
        for (counts_at, report), (names, _) in zip(pending, shares, strict=True)
        if region in names
    ]


def waiting_report(report: Report, why: str) -> Values:
    """A report that has not counted."""
    return {
        "report_id": report.position,
        "waits_for": why,
        "source": report.source,
        "signal": report.signal,
        "at": report.at,
        "harm": report.harm,
        "decision_id": report.decision_id,
        "regions": report.regions or [],
    }
