"""What reviewers fill in: forms of actions, and what they want of a list.

What a form asks for, and the action that was filled in, follow from the declarations in
`rapo.gate.actions`. A list (words, a time range, a choice, an order) is read from the address of a
page, so that it can be sent to a colleague.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from rapo.gate.config import Clock
from rapo.gate.declare import ACTIONS, LABELS, Action, Kind, Spec
from rapo.gate.events import Region
from rapo.gate.format import changes_of, real_of, region_query, time_of

EXPIRIES = {
    "3600": "1 hour",
    "86400": "1 day",
    "604800": "7 days",
    "2592000": "30 days",
    "": "never",
}
"""Seconds after which something ends, as a form sends them."""

Fields = dict[str, list[str]]
_PLACES = {Kind.REGION: "region", Kind.REGIONS: "region", Kind.LABELS: "region",
           Kind.REPORTS: "reports", Kind.WORD: "source"}  # fmt: skip
"""What a field makes an action be about, and so on which page its form is."""


@dataclass(frozen=True, slots=True)
class Input:
    """One field of a form."""

    name: str
    words: str
    type: str
    """Of the `<input>`; or `select`, `textarea`."""
    value: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    low: float | None = None
    high: float | None = None
    required: bool = False


_REGION = (Input("name", "Region", "text"), Input("number", "or its number", "text"))
_SENSITIVE = (("", "not said"), ("yes", "yes"), ("no", "no"))


def one(fields: Fields, name: str, default: str = "") -> str:
    """A field's value, without the spaces around it."""
    return fields.get(name, [default])[0].strip()


def exact(fields: Fields, name: str) -> str:
    """A field's value as it is: a region's name may begin with a space."""
    return fields.get(name, [""])[0]


def region_of(fields: Fields) -> Region:
    """The region that `name` (a string) or `number` (an integer) says.

    Raises:
        ValueError: neither says one.
    """
    word = one(fields, "number")
    if word or ("number" in fields and not exact(fields, "name")):
        if not re.fullmatch(r"-?\d{1,19}", word):
            raise ValueError(f"a region's number must be a whole number, got {word!r:.60}")
        return int(word)
    name = exact(fields, "name")
    if not name:
        raise ValueError("no region was named")
    return name


def about(action: type[Action]) -> set[str]:
    """What an action can be about: `region`, `reports`, `source`; empty if the whole gate."""
    return {_PLACES[s.given.kind] for s in action.specs() if s.given.kind in _PLACES}


def inputs(action: type[Action], fields: Fields, *, leave_out: tuple[str, ...] = ()) -> list[Input]:
    """What the form of an action asks for, filled with what was given before.

    Args:
        action: what is to be done.
        fields: what was given.
        leave_out: `region`, `reports`, `source`: said by the page that the form is on.
    """
    found: list[Input] = []
    for spec in action.specs():
        place = _PLACES.get(spec.given.kind, "")
        asked = _inputs(spec)
        if place in leave_out:
            asked = [i for i in asked if i.name in LABELS and spec.given.kind is Kind.LABELS]
        found += asked
    return [
        i if not one(fields, i.name) or i.type == "checkbox"
        else Input(i.name, i.words, i.type, one(fields, i.name), i.choices, i.low, i.high)
        for i in found
    ]  # fmt: skip


def _inputs(spec: Spec) -> list[Input]:
    given, name = spec.given, spec.name
    words = f"{name.replace('_', ' ').capitalize().replace('Psi', 'ψ')}"
    match given.kind:
        case Kind.REGION | Kind.REGIONS:
            return list(_REGION)
        case Kind.REPORTS:
            return [Input(name, "Report ids, with spaces between", "text")]
        case Kind.WORD:
            return [Input(name, words, "text")]
        case Kind.REAL:
            value = "1" if spec.default is None else f"{spec.default:g}"
            return [Input(name, words, "number", value, (), given.low, given.high, True)]
        case Kind.SINCE:
            return [Input(name, f"{words}, UTC", "datetime-local")]
        case Kind.UNTIL:
            return [Input(name, "Ends after", "select", "604800", tuple(EXPIRIES.items()))]
        case Kind.FLAG:
            return [Input(name, given.about.rstrip("."), "checkbox", "yes")]
        case Kind.CHOICE:
            choices = tuple((c, c.capitalize()) for c in given.choices)
            return [Input(name, words, "select", given.choices[0], choices)]
        case Kind.SETTINGS:
            return [Input(name, "One NAME=VALUE a line, as min_sources=5", "textarea")]
        case Kind.LABELS:
            labels = [
                Input(part, part.capitalize(), "select", "", _SENSITIVE)
                if part == "sensitive"
                else Input(part, part.capitalize(), "url" if part == "url" else "text")
                for part in LABELS
            ]  # fmt: skip
            return [
                Input("name", "Region", "text"),
                Input("number", "or its number", "text"),
                *labels,
            ]


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action that waits for a reviewer's word."""

    action: type[Action]
    values: dict[str, Any]
    fields: list[tuple[str, str]]
    """What the form must send again."""
    back: str
    """Where a reviewer came from, and goes back to."""

    def made(self, reason: str, by: str, *, dry_run: bool) -> Action:
        """The action itself."""
        return self.action(**self.values, reason=reason, by=by, dry_run=dry_run)


def proposal(name: str, fields: Fields, clock: Clock) -> Proposal:
    """What was filled in.

    Raises:
        LookupError: there is no such action.
        ValueError: a field says nothing that can be read.
    """
    action = action_named(name)
    values = {spec.name: _value(spec, fields, clock) for spec in action.specs()}
    sent = [
        (key, value) for key, found in fields.items() if key not in ("csrf", "reason")
        for value in found
    ]  # fmt: skip
    return Proposal(action, values, sent, _back(fields))


def action_named(name: str) -> type[Action]:
    """The action of a path."""
    if name not in ACTIONS:
        raise LookupError(f"there is no action {name!r:.40}")
    return ACTIONS[name]


def _back(fields: Fields) -> str:
    if one(fields, "number") or exact(fields, "name"):
        return f"/region?{region_query(region_of(fields))}"
    if exact(fields, "source"):
        return "/reporters"
    return "/queue" if "reports" in fields else "/policy"


def _value(spec: Spec, fields: Fields, clock: Clock) -> Any:
    name, word = spec.name, one(fields, spec.name)
    match spec.given.kind:
        case Kind.REGION:
            return region_of(fields)
        case Kind.REGIONS:
            named = one(fields, "number") or exact(fields, "name")
            return [region_of(fields)] if named and "reports" not in fields else None
        case Kind.REPORTS:
            return _reports(fields.get(name, []))
        case Kind.WORD:
            return exact(fields, name) or None
        case Kind.REAL:
            if name not in fields:
                return spec.default
            return real_of(name, word)
        case Kind.SINCE:
            return time_of(name, word or None)
        case Kind.UNTIL:
            if word not in EXPIRIES:
                raise ValueError(
                    f"{name} must be one of {list(EXPIRIES.values())}, got {word!r:.40}"
                )
            return clock() + float(word) if word else None
        case Kind.FLAG:
            return word == "yes"
        case Kind.CHOICE:
            return word
        case Kind.SETTINGS:
            return changes_of([line.strip() for line in word.splitlines() if line.strip()])
        case Kind.LABELS:
            said = {part: one(fields, part) for part in LABELS if one(fields, part)}
            return {region_of(fields): said}


def _reports(given: list[str]) -> list[int] | None:
    words = [w for text in given for w in text.split()]
    if not all(w.isascii() and w.isdecimal() and len(w) < 19 for w in words):
        raise ValueError(f"report ids must be whole numbers, got {words!r:.80}")
    return sorted({int(w) for w in words}) or None


# --- lists

MOST = 500
"""Rows of one table."""


@dataclass(frozen=True, slots=True)
class Table:
    """A kind of list: where it is, what it can be sorted by, what it can be narrowed to."""

    path: str
    columns: tuple[str, ...]
    """The first is the order that it has by itself."""
    choices: Mapping[str, str]
    """Value of the choice and words for it."""
    rising: frozenset[str] = frozenset()
    """Columns whose small values come first unless asked otherwise."""


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


REGIONS = Table(
    "/regions", ("H", "G", "psi", "proposed", "last_at", "region"),
    {"": "all", "gated": "ψ below 1", "scarred": "with a scar", "unconfirmed": "unconfirmed",
     "hand": "set by hand"},
    frozenset({"psi", "region"}),
)  # fmt: skip
DECISIONS = Table(
    "/decisions", ("at", "moved", "candidates"),
    {"": "all", "changed": "changed", "applied": "applied"},
)  # fmt: skip
QUEUE = Table(
    "/queue", ("report_id", "at", "harm", "source", "signal"),
    {"": "all", "late": "late", "unknown region": "unknown region", "agreement": "no agreement"},
    frozenset({"source", "signal"}),
)  # fmt: skip
REPORTERS = Table(
    "/reporters",
    ("trace", "source", "reports", "waiting", "rolled_back", "regions", "harm", "agreed",
     "last_at"),
    {"": "all", "waiting": "with reports that wait", "out": "rolled back", "alone": "unconfirmed"},
    frozenset({"source", "agreed"}),
)  # fmt: skip


def wanted(table: Table, fields: Fields) -> Wanted:
    """What an address asks of a list.

    Raises:
        ValueError: a field says nothing that can be read.
    """
    sort, only, top = one(fields, "sort"), one(fields, "only"), one(fields, "top", "50")
    if sort and sort not in table.columns:
        raise ValueError(f"sort must be one of {', '.join(table.columns)}, got {sort!r:.40}")
    if only not in table.choices:
        raise ValueError(f"only must be one of {', '.join(table.choices)}, got {only!r:.40}")
    if not (top.isascii() and top.isdecimal() and len(top) < 10):
        raise ValueError(f"a whole number was expected, got {top!r:.40}")
    sort = sort or table.columns[0]
    order = one(fields, "order")
    return Wanted(
        words=one(fields, "q"),
        since=time_of("from", one(fields, "from") or None),
        until=time_of("to", one(fields, "to") or None),
        only=only,
        sort=sort,
        rising=order == "up" or (order != "down" and sort in table.rising),
        top=min(max(int(top), 1), MOST),
    )


class Links:
    """Addresses of the same list in other orders, for the heads of its columns."""

    def __init__(self, table: Table, fields: Fields, asked: Wanted) -> None:
        self.table, self.asked = table, asked
        kept = ("q", "from", "to", "only", "top")
        self.kept = {name: one(fields, name) for name in kept if one(fields, name)}

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
