"""What reviewers fill in: forms of actions, which follow from the declarations of these."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from rapo_core.checks import UserError
from rapo_gate.config import Clock
from rapo_gate.declare import ACTIONS, LABELS, Action, Kind, Spec
from rapo_gate.events import Region
from rapo_gate.format import changes_of, real_of, region_query, time_of

EXPIRIES = {
    "3600": "1 hour",
    "86400": "1 day",
    "604800": "7 days",
    "2592000": "30 days",
    "": "never",
}
"""Seconds after which something ends, as a form sends them."""


class Fields(dict[str, list[str]]):
    """What a form, or an address, said."""

    def one(self, name: str, default: str = "") -> str:
        """A value, without the spaces around it."""
        return self.get(name, [default])[0].strip()

    def exact(self, name: str) -> str:
        """A value as it is: a region's name may begin with a space."""
        return self.get(name, [""])[0]

    def region(self) -> Region:
        """The region that `name` (a string) or `number` (an integer) says.

        Raises:
            ValueError: neither says one.
        """
        word, name = self.one("number"), self.exact("name")
        if word or ("number" in self and not name):
            if not re.fullmatch(r"-?\d{1,19}", word):
                raise UserError(f"a region's number must be a whole number, got {word!r:.60}")
            return int(word)
        if not name:
            raise UserError("no region was named")
        return name


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
        i if i.type == "checkbox" else replace(i, value=fields.one(i.name) or i.value)
        for i in found
    ]


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
            return [*_REGION, *map(_label_input, LABELS)]


def _label_input(part: str) -> Input:
    if part == "sensitive":
        return Input(part, "Sensitive", "select", "", _SENSITIVE)
    return Input(part, "Link", "url") if part == "url" else Input(part, part.capitalize(), "text")


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
    if fields.one("number") or fields.exact("name"):
        return f"/region?{region_query(fields.region())}"
    if fields.exact("source"):
        return "/reporters"
    return "/queue" if "reports" in fields else "/policy"


def _value(spec: Spec, fields: Fields, clock: Clock) -> Any:
    name, word = spec.name, fields.one(spec.name)
    match spec.given.kind:
        case Kind.REGION:
            return fields.region()
        case Kind.REGIONS:
            named = fields.one("number") or fields.exact("name")
            return [fields.region()] if named and "reports" not in fields else None
        case Kind.REPORTS:
            return _reports(fields.get(name, []))
        case Kind.WORD:
            return fields.exact(name) or None
        case Kind.REAL:
            if name not in fields:
                return spec.default
            return real_of(name, word)
        case Kind.SINCE:
            return time_of(name, word or None)
        case Kind.UNTIL:
            if word not in EXPIRIES:
                raise UserError(
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
            said = {part: fields.one(part) for part in LABELS if fields.one(part)}
            return {fields.region(): said}


def _reports(given: list[str]) -> list[int] | None:
    words = [w for text in given for w in text.split()]
    if not all(w.isascii() and w.isdecimal() and len(w) < 19 for w in words):
        raise UserError(f"report ids must be whole numbers, got {words!r:.80}")
    return sorted({int(w) for w in words}) or None
