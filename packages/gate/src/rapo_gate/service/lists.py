"""Lists of the reviewer's page: how each can be narrowed and sorted, and what it then holds.

The text, time range, choice and order of a list are in the address of its page, so that a reviewer
can send the list to a colleague.
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
from rapo_gate.fold.state import State
from rapo_gate.format import WAIT_WORDS, time_of
from rapo_gate.gate import Gate
from rapo_gate.log.store import Store, events_of

MOST = 500
"""Most rows of one table."""
EVENTS_SEARCHED = 50_000
"""Newest events of a time range that are searched for decisions."""
MOST_SEARCHED = 2000
"""Most waiting reports, and most reporters, that are searched."""
_WINDOW = 5000
"""Positions read at a time."""

Values = dict[str, Any]
Choice = tuple[str, Callable[[Any], Any]]
"""A choice for people, and whether an item fits it (for regions: which of all regions fit)."""


@dataclass(frozen=True, slots=True)
class ListKind:
    """A kind of list: its page, the columns that sort it, the choices that narrow it."""

    path: str
    columns: tuple[str, ...]
    """The list is sorted by the first column unless another one is asked for."""
    choices: Mapping[str, Choice]
    """By the value of `only` in the address; the empty value is all items."""
    rising: frozenset[str] = frozenset()
    """Columns that are sorted upwards unless the address says otherwise."""
    text: Callable[[Values], Sequence[Any]] = tuple
    """The parts of an item that are searched for the text."""
    at: str = "at"
    """Name of an item's time."""


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The text, time range, choice and order that an address asks a list for."""

    text: str = ""
    since: float | None = None
    until: float | None = None
    only: str = ""
    sort: str = ""
    rising: bool = False
    top: int = 50

    def in_time(self, at: float | None) -> bool:
        """Whether a time is in the range; an item without a time needs a range without ends."""
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


REGIONS = ListKind(
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
DECISIONS = ListKind(
    "/decisions",
    ("at", "moved", "candidates"),
    {
        "": ("all", _all),
        "changed": ("changed", lambda d: d["moved"] > 0),
        "applied": ("applied", lambda d: d["applied"]),
    },
    text=lambda d: (d["id"], d["stimulus"] or ""),
)
QUEUE = ListKind(
    "/queue",
    ("report_id", "at", "harm", "source", "signal"),
    {"": ("all", _all), **{why: (label, _waits_for(why)) for why, label in WAIT_WORDS.items()}},
    frozenset({"source", "signal"}),
    text=lambda r: (r["report_id"], r["source"], r["signal"], *r["regions"]),
)
REPORTERS = ListKind(
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


def list_request(kind: ListKind, fields: FormData) -> ListRequest:
    """What an address asks a list for.

    Raises:
        UserError: a field cannot be read.
    """
    sort, only, top = fields.one("sort"), fields.one("only"), fields.one("top", "50")
    if sort and sort not in kind.columns:
        raise UserError(f"sort must be one of {', '.join(kind.columns)}, got {sort!r:.40}")
    if only not in kind.choices:
        raise UserError(f"only must be one of {', '.join(kind.choices)}, got {only!r:.40}")
    if not (top.isascii() and top.isdecimal() and len(top) < 10):
        raise UserError(f"a whole number was expected, got {top!r:.40}")
    sort = sort or kind.columns[0]
    order = fields.one("order")
    return ListRequest(
        text=fields.one("q"),
        since=time_of("from", fields.one("from") or None),
        until=time_of("to", fields.one("to") or None),
        only=only,
        sort=sort,
        rising=order == "up" or (order != "down" and sort in kind.rising),
        top=min(max(int(top), 1), MOST),
    )


class ListLinks:
    """Addresses of the same list in other orders and time ranges."""

    def __init__(self, kind: ListKind, fields: FormData, request: ListRequest) -> None:
        self.kind, self.request = kind, request
        kept = ("q", "from", "to", "only", "top")
        self.kept = {name: fields.one(name) for name in kept if fields.one(name)}

    def to(self, column: str) -> str:
        """The list sorted by a column; in reverse if that column sorts it now."""
        rising = column in self.kind.rising
        if column == self.request.sort:
            rising = not self.request.rising
        order = {"sort": column, "order": "up" if rising else "down"}
        return f"{self.kind.path}?{urlencode({**self.kept, **order})}"

    def within(self, span: str) -> str:
        """The list from some time ago on, such as `1h`, `1d` or `7d`."""
        kept = {k: v for k, v in self.kept.items() if k not in ("from", "to")}
        request = {"sort": self.request.sort, "order": "up" if self.request.rising else "down"}
        return f"{self.kind.path}?{urlencode({**kept, **request, 'from': span})}"

    def state(self, column: str) -> str:
        """The order of a column, for screen readers."""
        if column != self.request.sort:
            return "none"
        return "ascending" if self.request.rising else "descending"


# --- the items of each list; questions that another process may answer (see `audits`)


def _narrowed(kind: ListKind, items: Sequence[Values], request: ListRequest) -> list[Values]:
    """The items that fit a request, in its order."""
    text, fits = request.text.casefold(), kind.choices[request.only][1]
    fitting = [
        item
        for item in items
        if (not text or text in "\n".join(map(str, kind.text(item))).casefold())
        and fits(item)
        and request.in_time(item[kind.at])
    ]
    with_value = [i for i in fitting if i[request.sort] is not None]
    without = [i for i in fitting if i[request.sort] is None]  # last in either order
    with_value.sort(key=lambda item: item[request.sort], reverse=not request.rising)
    return with_value + without


def regions(gate: Gate, request: ListRequest) -> tuple[list[Values], int, int]:
    """Views of the regions that fit, with courses; the number that fit; the number of regions."""

    def look(state: State) -> tuple[list[Values], int, int]:
        count = len(state.regions)
        rows = state.ledger.rows
        last = np.full(count, np.nan)
        np.fmax.at(last, rows["region"], rows["at"])
        hit = _fitting(state, request, last)
        order = np.flatnonzero(hit)
        keys = _keys(state, request.sort, order, last)
        signed = keys if request.rising else [-k for k in keys]
        order = order[np.lexsort((order, *reversed(signed)))]
        views = region_views(state, order[: request.top].tolist())
        for view, at in zip(views, last[order[: request.top]].tolist(), strict=True):
            view["course"] = audit.course(state, view["region"], 60)
            view["last_at"] = None if np.isnan(at) else at
        return views, int(hit.sum()), count

    return gate.read(look)


def _fitting(
    state: State, request: ListRequest, last: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Which regions fit a request; `last` holds the time of each region's newest report."""
    hit = np.ones(len(state.regions), np.bool_)
    hit &= REGIONS.choices[request.only][1](state)
    if request.since is not None:
        hit &= last >= request.since
    if request.until is not None:
        hit &= last < request.until
    if request.text:
        text = request.text.casefold()
        for i in np.flatnonzero(hit).tolist():
            label = state.labels.get(i, {})
            hit[i] = text in "\n".join((str(state.regions.names[i]), *label.values())).casefold()
    return hit


def _keys(
    state: State, column: str, regions: npt.NDArray[np.intp], last: npt.NDArray[np.float64]
) -> list[npt.NDArray[Any]]:
    """Keys that sort regions by a column; the first key matters most."""
    count = len(state.regions)
    G, H = state.fold.G[:count][regions], state.fold.H[:count][regions]
    match column:
        case "G":
            return [G]
        case "psi":
            return [state.psi()[regions]]
        case "proposed":
            return [state.traffic.proposed[:count][regions]]
        case "last_at":
            return [np.nan_to_num(last[regions], nan=-1.0)]
        case "region":
            names = np.array([str(state.regions.names[i]).casefold() for i in regions.tolist()])
            return [np.unique(names, return_inverse=True)[1] if names.size else names]
    return [H, G]


def decisions(gate: Gate, request: ListRequest) -> tuple[list[Values], bool, int]:
    """Decisions that fit a request, of the newest in its time range.

    Returns:
        The decisions; whether the whole time range was searched; and how many decisions could not
        be searched because a compaction dropped what they were made of.
    """
    store, listed, dropped = gate.store, [], 0
    end = store.last() if request.until is None else _position_at(store, request.until)
    begin = 0 if request.since is None else _position_at(store, request.since)
    least = max(begin, end - EVENTS_SEARCHED)
    while end > least:
        start = max(least, end - _WINDOW)
        for event in events_of(store, start, end, ("Decision",)):
            if event.body:
                listed.append(_decision(event))
            else:
                dropped += 1
        end = start
        newest = request.sort == "at" and not (request.rising or request.text or request.only)
        if newest and len(listed) >= request.top:
            break
    return _narrowed(DECISIONS, listed, request)[: request.top], end <= begin, dropped


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


def waiting(gate: Gate, request: ListRequest) -> tuple[list[Values], int]:
    """Waiting reports that fit a request, and the number of waiting reports."""
    reports = gate.queue(MOST_SEARCHED)
    return _narrowed(QUEUE, reports, request)[: request.top], len(reports)


def who_reported(gate: Gate, request: ListRequest) -> tuple[list[Values], int]:
    """Reporters that fit a request, and the number of reporters."""
    reporters = gate.reporters(MOST_SEARCHED)
    return _narrowed(REPORTERS, reporters, request)[: request.top], len(reporters)


def action_log(gate: Gate, limit: int = 100) -> list[dict[str, Any]]:
    """The newest human actions and escalations, each in words, with who did it and why."""
    store = gate.store
    kinds = tuple(dict.fromkeys(a.event for a in ACTIONS.values()))
    events = store.read(0, limit, (*kinds, "Escalation"), newest=True)
    # An event holds all settings; a reader wants those that differ from the settings before it.
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
