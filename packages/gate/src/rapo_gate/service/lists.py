"""Lists of the reviewer's page: what can be asked of each, and what is found.

What is wanted of a list (words, a time range, a choice, an order) is read from the address of a
page, so that it can be sent to a colleague.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_gate import audit
from rapo_gate.chains import region_views
from rapo_gate.declare import ACTIONS, action_of
from rapo_gate.events import Event, unpack_decision
from rapo_gate.fields import FormData
from rapo_gate.format import WAIT_WORDS, time_of
from rapo_gate.gate import Gate
from rapo_gate.state import State
from rapo_gate.store import Store, events_of

MOST = 500
"""Rows of one table."""
EVENTS_SEARCHED = 50_000
"""Newest events in a time range that are searched for decisions."""
MOST_SEARCHED = 2000
"""Reports that wait, and reporters, that are searched."""
_WINDOW = 5000
"""Positions read at a time."""

Values = dict[str, Any]
Choice = tuple[str, Callable[[Any], Any]]
"""What a list is narrowed to: words, and whether an item fits (of regions: which of them do)."""


@dataclass(frozen=True, slots=True)
class Table:
    """A kind of list: where it is, what it can be sorted by, what it can be narrowed to."""

    path: str
    columns: tuple[str, ...]
    """The first is the order that it has by itself."""
    choices: Mapping[str, Choice]
    """By what the address says; an empty word is all of them."""
    rising: frozenset[str] = frozenset()
    """Columns whose small values come first unless asked otherwise."""
    text: Callable[[Values], Sequence[Any]] = tuple
    """What of an item is searched for words."""
    at: str = "at"
    """Its time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked of a list."""

    words: str = ""
    since: float | None = None
    until: float | None = None
    only: str = ""
    sort: str = ""
    rising: bool = False
    top: int = 50

    def in_time(self, at: float | None) -> bool:
        """Whether a time is in the range; no time is in every range that has no ends."""
        if at is None:
            return self.since is None and self.until is None
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


def _all(_: Any) -> bool:
    return True


def _by_hand(state: State) -> npt.NDArray[np.bool_]:
    hit = np.zeros(len(state.regions), np.bool_)
    hit[[*state.overrides, *state.allowed]] = True
    return hit


def _unconfirmed(state: State) -> npt.NDArray[np.bool_]:
    count = len(state.regions)
    return ~state.fold.conductance()[1][:count] & (state.fold.G[:count] > 0)


def _waits_for(why: str) -> Callable[[Values], bool]:
    return lambda report: bool(report["waits_for"] == why)


REGIONS = Table(
    "/regions",
    ("H", "G", "psi", "proposed", "last_at", "region"),
    {
        "": ("all", _all),
        "gated": ("ψ below 1", lambda state: state.psi() < 1),
        "scarred": ("with a scar", lambda state: state.fold.H[: len(state.regions)] > 0),
        "unconfirmed": ("unconfirmed", _unconfirmed),
        "hand": ("set by hand", _by_hand),
    },
    frozenset({"psi", "region"}),
)
DECISIONS = Table(
    "/decisions",
    ("at", "moved", "candidates"),
    {
        "": ("all", _all),
        "changed": ("changed", lambda d: d["moved"] > 0),
        "applied": ("applied", lambda d: d["applied"]),
    },
    text=lambda d: (d["id"], d["stimulus"] or ""),
)
QUEUE = Table(
    "/queue",
    ("report_id", "at", "harm", "source", "signal"),
    {"": ("all", _all), **{why: (words, _waits_for(why)) for why, words in WAIT_WORDS.items()}},
    frozenset({"source", "signal"}),
    text=lambda r: (r["report_id"], r["source"], r["signal"], *r["regions"]),
)
REPORTERS = Table(
    "/reporters",
    (
        "trace",
        "source",
        "reports",
        "waiting",
        "rolled_back",
        "regions",
        "harm",
        "agreed",
        "last_at",
    ),
    {
        "": ("all", _all),
        "waiting": ("with reports that wait", lambda r: r["waiting"] > 0),
        "out": ("rolled back", lambda r: r["rolled_back"] > 0),
        "alone": ("unconfirmed", lambda r: not r["agreed"]),
    },
    frozenset({"source", "agreed"}),
    text=lambda r: (r["source"], *r["signals"]),
    at="last_at",
)


def wanted(table: Table, fields: FormData) -> Wanted:
    """What an address asks of a list.

    Raises:
        ValueError: a field says nothing that can be read.
    """
    sort, only, top = fields.one("sort"), fields.one("only"), fields.one("top", "50")
    if sort and sort not in table.columns:
        raise UserError(f"sort must be one of {', '.join(table.columns)}, got {sort!r:.40}")
    if only not in table.choices:
        raise UserError(f"only must be one of {', '.join(table.choices)}, got {only!r:.40}")
    if not (top.isascii() and top.isdecimal() and len(top) < 10):
        raise UserError(f"a whole number was expected, got {top!r:.40}")
    sort = sort or table.columns[0]
    order = fields.one("order")
    return Wanted(
        words=fields.one("q"),
        since=time_of("from", fields.one("from") or None),
        until=time_of("to", fields.one("to") or None),
        only=only,
        sort=sort,
        rising=order == "up" or (order != "down" and sort in table.rising),
        top=min(max(int(top), 1), MOST),
    )


class Links:
    """Addresses of the same list in other orders, for the heads of its columns."""

    def __init__(self, table: Table, fields: FormData, asked: Wanted) -> None:
        self.table, self.asked = table, asked
        kept = ("q", "from", "to", "only", "top")
        self.kept = {name: fields.one(name) for name in kept if fields.one(name)}

    def to(self, column: str) -> str:
        """The list sorted by a column; the other way round if it is already."""
        rising = column in self.table.rising
        if column == self.asked.sort:
            rising = not self.asked.rising
        order = {"sort": column, "order": "up" if rising else "down"}
        return f"{self.table.path}?{urlencode({**self.kept, **order})}"

    def within(self, span: str) -> str:
        """The list of the last hour, day or week."""
        kept = {k: v for k, v in self.kept.items() if k not in ("from", "to")}
        asked = {"sort": self.asked.sort, "order": "up" if self.asked.rising else "down"}
        return f"{self.table.path}?{urlencode({**kept, **asked, 'from': span})}"

    def state(self, column: str) -> str:
        """What a screen reader is told of a column."""
        if column != self.asked.sort:
            return "none"
        return "ascending" if self.asked.rising else "descending"


# --- what is found; questions that another process may answer (see `audits`)


def _narrowed(table: Table, items: Sequence[Values], asked: Wanted) -> list[Values]:
    """The items that were asked for, in the order that was asked for."""
    words, fits = asked.words.casefold(), table.choices[asked.only][1]
    found = [
        item
        for item in items
        if (not words or words in "\n".join(map(str, table.text(item))).casefold())
        and fits(item)
        and asked.in_time(item[table.at])
    ]
    there = [i for i in found if i[asked.sort] is not None]
    missing = [i for i in found if i[asked.sort] is None]  # last, whichever way
    there.sort(key=lambda item: item[asked.sort], reverse=not asked.rising)
    return there + missing


def regions(gate: Gate, asked: Wanted) -> tuple[list[Values], int, int]:
    """Views of the regions that were asked for, with courses; how many there are; are known."""

    def look(state: State) -> tuple[list[Values], int, int]:
        count = len(state.regions)
        rows = state.ledger.rows
        last = np.full(count, np.nan)
        np.fmax.at(last, rows["region"], rows["at"])
        hit = _fitting(state, asked, last)
        order = np.flatnonzero(hit)
        keys = _keys(state, asked.sort, order, last)
        signed = keys if asked.rising else [-k for k in keys]
        order = order[np.lexsort((order, *reversed(signed)))]
        views = region_views(state, order[: asked.top].tolist())
        for view, at in zip(views, last[order[: asked.top]].tolist(), strict=True):
            view["course"] = audit.course(state, view["region"], 60)
            view["last_at"] = None if np.isnan(at) else at
        return views, int(hit.sum()), count

    return gate.read(look)


def _fitting(state: State, asked: Wanted, last: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which regions are asked for."""
    hit = np.ones(len(state.regions), np.bool_)
    hit &= REGIONS.choices[asked.only][1](state)
    if asked.since is not None:
        hit &= last >= asked.since
    if asked.until is not None:
        hit &= last < asked.until
    if asked.words:
        words = asked.words.casefold()
        for i in np.flatnonzero(hit).tolist():
            label = state.labels.get(i, {})
            hit[i] = words in "\n".join((str(state.regions.names[i]), *label.values())).casefold()
    return hit


def _keys(
    state: State, column: str, chosen: npt.NDArray[np.intp], last: npt.NDArray[np.float64]
) -> list[npt.NDArray[Any]]:
    """What regions are sorted by; the first key matters most."""
    count = len(state.regions)
    G, H = state.fold.G[:count][chosen], state.fold.H[:count][chosen]
    match column:
        case "G":
            return [G]
        case "psi":
            return [state.psi()[chosen]]
        case "proposed":
            return [state.traffic.proposed[:count][chosen]]
        case "last_at":
            return [np.nan_to_num(last[chosen], nan=-1.0)]
        case "region":
            names = np.array([str(state.regions.names[i]).casefold() for i in chosen.tolist()])
            return [np.unique(names, return_inverse=True)[1] if names.size else names]
    return [H, G]


def decisions(gate: Gate, asked: Wanted) -> tuple[list[Values], bool, int]:
    """Decisions that were asked for, of the newest in their time range.

    Returns:
        The decisions; whether the whole time range was searched; and how many decisions could not
        be searched because a compaction dropped what they were made of.
    """
    store, listed, dropped = gate.store, [], 0
    end = store.last() if asked.until is None else _position_at(store, asked.until)
    begin = 0 if asked.since is None else _position_at(store, asked.since)
    least = max(begin, end - EVENTS_SEARCHED)
    while end > least:
        start = max(least, end - _WINDOW)
        for event in events_of(store, start, end, ("Decision",)):
            if event.body:
                listed.append(_decision(event))
            else:
                dropped += 1
        end = start
        newest = asked.sort == "at" and not (asked.rising or asked.words or asked.only)
        if newest and len(listed) >= asked.top:
            break
    return _narrowed(DECISIONS, listed, asked)[: asked.top], end <= begin, dropped


def _decision(event: Event) -> Values:
    body = unpack_decision(event.body)
    return {
        "id": (event.key or "").partition("\x1f")[2],
        "at": event.at,
        "candidates": body.p.size,
        "moved": float(np.abs(body.p / body.p.sum() - body.gated).sum() / 2),
        "applied": body.enforced,
        "stimulus": body.stimulus,
    }


def _position_at(store: Store, moment: float) -> int:
    """Position of the last event before a moment; the log is in the order of time."""
    low, high = 0, store.last()
    while low < high:
        middle = (low + high + 1) // 2
        event = store.read(middle - 1, 1)
        if event and event[0].at < moment:
            low = middle
        else:
            high = middle - 1
    return low


def waiting(gate: Gate, asked: Wanted) -> tuple[list[Values], int]:
    """Reports that wait and were asked for, and how many wait in all."""
    every = gate.queue(MOST_SEARCHED)
    return _narrowed(QUEUE, every, asked)[: asked.top], len(every)


def who_reported(gate: Gate, asked: Wanted) -> tuple[list[Values], int]:
    """Reporters that were asked for, and how many there are in all."""
    every = gate.reporters(MOST_SEARCHED)
    return _narrowed(REPORTERS, every, asked)[: asked.top], len(every)


def action_log(gate: Gate, limit: int = 100) -> list[dict[str, Any]]:
    """The newest actions: position, time, kind, who, what in words, the regions, and the reason."""
    store = gate.store
    kinds = tuple(dict.fromkeys(a.event for a in ACTIONS.values()))
    events = store.read(0, limit, (*kinds, "Escalation"), newest=True)
    # A change of settings is logged whole; only what differs from the one before is worth reading.
    changes = [e for e in events if e.kind == "ConfigChange"]
    if changes:
        before = changes[-1].position - 1
        older = store.read(0, 500, ("ConfigChange",), newest=True)
        changes += [e for e in older if e.position <= before]
    configs = [(e.position, e.data()["config"]) for e in changes if "config" in e.data()]
    return [_in_words(event, configs) for event in events]


def _in_words(event: Event, configs: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    data = event.data()
    before = next((c for p, c in configs if p < event.position), {})
    action = action_of(event.kind, data)
    if action is not None:
        what, regions = action.log_line(data, before), action.concerns(data)
    elif event.kind == "Escalation":
        what, regions = f"Escalated {data['band']}: {data['seen']}", []
    else:
        what, regions = "Created the gate in shadow mode", []
    return {
        "position": event.position,
        "at": event.at,
        "kind": event.kind,
        "by": data.get("by", "the gate"),
        "what": what,
        "regions": regions,
        "reason": data.get("reason", ""),
    }
