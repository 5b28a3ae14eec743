"""What a reviewer wants of a list: words, a time range, a choice, an order.

Read from the address of a page, so that a list can be sent to a colleague.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from rapo.gate.service.forms import Fields, one
from rapo.gate.words import time_of

Values = dict[str, Any]
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


def narrowed(
    items: Sequence[Values],
    asked: Wanted,
    *,
    text: Callable[[Values], str],
    at: str,
    only: Mapping[str, Callable[[Values], bool]],
) -> list[Values]:
    """The items that were asked for, in the order that was asked for."""
    words, fits = asked.words.casefold(), only.get(asked.only)
    found = [
        item
        for item in items
        if (not words or words in text(item).casefold())
        and (fits is None or fits(item))
        and asked.in_time(item[at])
    ]
    there = [i for i in found if i[asked.sort] is not None]
    missing = [i for i in found if i[asked.sort] is None]  # last, whichever way
    there.sort(key=lambda item: item[asked.sort], reverse=not asked.rising)
    return there + missing
