"""What the declaration of a human action is made of, and what an action did.

An action is declared once, in `rapo_gate.actions`: its fields, its checks, the scope that may do
it, its event and its words. The method of `Gate`, the HTTP endpoint, the command, the form, the
dry run and the line in the log follow from that.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args, get_type_hints

import numpy as np

from rapo_core.checks import UserError
from rapo_gate.audit import foresee
from rapo_gate.config import GateConfig
from rapo_gate.events import Draft, Event, Region, checked_region, checked_word
from rapo_gate.state import State

if TYPE_CHECKING:
    from rapo_gate.gate import Gate

LONGEST_REASON = 1000
LABELS = {
    "group": "Whose it is.",
    "topic": "What it is about.",
    "sensitive": "yes or no: counts for the outcome metrics.",
    "title": "Its name for people.",
    "url": "Where people can look at it; http or https.",
}
"""What a label may say of a region."""


class Kind(Enum):
    """What a field holds. Every door has one table of how a kind is read there."""

    REGION = "a region"
    REGIONS = "regions"
    REPORTS = "report ids"
    WORD = "a word"
    REAL = "a number"
    SINCE = "a time, usually past"
    UNTIL = "a time to come"
    FLAG = "true or false"
    CHOICE = "one of some words"
    SETTINGS = "settings and their values"
    LABELS = "regions and their labels"


@dataclass(frozen=True, slots=True)
class Given:
    """What is to be known of a field beyond its type."""

    kind: Kind
    about: str
    option: str = ""
    """Its option on the command line, if that is not its name."""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """A field of an action, as the doors see it."""

    name: str
    given: Given
    needed: bool
    default: Any = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """A region that an action changes."""

    region: Region
    psi: tuple[float, float]
    """Before and after."""
    G: tuple[float, float]
    H: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action did, or would do."""

    dry_run: bool
    regions: list[Changed]
    """Regions whose G, H or psi changes, the largest change of psi first."""
    reports: int = 0
    """Reports that a rollback takes out."""
    revision: int | None = None
    """State revision after it; None for a dry run."""
    event: int | None = None
    """Its position in the log; None for a dry run."""


@dataclass(frozen=True)
class Action:
    """Something that a person does to a gate: it has a reason, and can be tried out dry."""

    name: ClassVar[str]
    """Its command, and its form at `/actions/name`."""
    path: ClassVar[str]
    """Its endpoint; the body is its fields and the reason."""
    scope: ClassVar[str]
    """Scope of the keys that may do it."""
    event: ClassVar[str]
    """Kind of its event."""
    part: ClassVar[str]
    """What its event has in it, where several actions share a kind of event; else nothing."""
    verb: ClassVar[str]
    """Words of the button that does it."""

    reason: str = field(default="", kw_only=True)
    by: str = field(default="program", kw_only=True)
    dry_run: bool = field(default=False, kw_only=True)

    def body(self, state: State, now: float) -> dict[str, Any]:
        """What its event says, checked against a state.

        Raises:
            ValueError: it cannot be done; the message says why.
        """
        raise NotImplementedError

    def title(self) -> str:
        """What is proposed, for the page that asks for a reason."""
        raise NotImplementedError

    def meaning(self, config: GateConfig) -> str:
        """What it means, beyond the regions that change."""
        raise NotImplementedError

    @classmethod
    def log_line(cls, data: dict[str, Any], before: dict[str, Any]) -> str:
        """Its event in words, for the log; `before` are the settings until then."""
        raise NotImplementedError

    @classmethod
    def concerns(cls, data: dict[str, Any]) -> list[Region]:
        """Regions that its event names, to be linked beside the words."""
        if "region" in data:
            return [data["region"]]
        return list(data.get("regions") or [region for region, _ in data.get("labels") or []])

    def whole_body(self, state: State, now: float) -> dict[str, Any]:
        """The body with who did it and why; a dry run needs no reason."""
        reason = self.reason or "dry run" if self.dry_run else self.reason
        return {
            **self.body(state, now),
            "reason": checked_reason(reason),
            "by": checked_word("by", self.by),
        }

    @classmethod
    def specs(cls) -> list[Spec]:
        """Its own fields, in order."""
        hints = get_type_hints(cls, include_extras=True)
        found = []
        for one in fields(cls):
            plain, *more = get_args(hints[one.name]) or (None,)
            given = next((m for m in more if isinstance(m, Given)), None)
            if given is not None:
                needed = one.default is MISSING
                nullable = type(None) in get_args(plain)
                found.append(
                    Spec(one.name, given, needed, None if needed else one.default, nullable)
                )
        return found


ACTIONS: dict[str, type[Action]] = {}
"""Every action that was declared, by name."""

A = TypeVar("A", bound=type[Action])


def action(
    name: str, path: str, *, scope: str, event: str, verb: str, part: str = ""
) -> Callable[[A], A]:
    """Declare an action; the attributes of `Action` say what each word is."""

    def declare(cls: A) -> A:
        cls.name, cls.path, cls.scope, cls.verb = name, path, scope, verb
        cls.event, cls.part = event, part
        ACTIONS[name] = cls
        return cls

    return declare


def action_of(event: str, data: dict[str, Any]) -> type[Action] | None:
    """The action that an event of the log is of, None if nobody's."""
    for one in ACTIONS.values():
        if one.event == event and (not one.part or one.part in data) and "created" not in data:
            return one
    return None


# --- actions in the log


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


# --- checks that actions share


def checked_reason(reason: Any) -> str:
    """A reason that a reader of the log can use."""
    if not isinstance(reason, str) or not reason.strip() or len(reason) > LONGEST_REASON:
        raise UserError(
            f"a reason of 1 to {LONGEST_REASON} characters is needed, got {reason!r:.40}"
        )
    return reason.strip()


def known_region(state: State, region: Any) -> Region:
    """A region that a decision had."""
    name = checked_region(region)
    if name not in state.regions:
        raise UserError(f"region {region!r} is not known: no decision ever had it")
    return name


def known_reports(state: State, reports: Any) -> list[int]:
    """Report ids of reports that count or wait, sorted."""
    wanted = [reports] if isinstance(reports, int) else reports
    if not isinstance(wanted, list | tuple) or not all(
        isinstance(r, int) and not isinstance(r, bool) and 0 < r < 2**63 for r in wanted
    ):
        raise UserError(f"reports must be a list of report ids, whole numbers, got {reports!r:.80}")
    rows = state.ledger.rows
    waiting = {r.position for r in state.due() if not r.rolled_back} | set(state.review)
    counted = np.isin(np.array(wanted, np.int64), rows["report"][~rows["rolled_back"]])
    unknown = [
        r for r, is_in in zip(wanted, counted, strict=True) if not is_in and r not in waiting
    ]
    if unknown:
        raise UserError(f"there is no report {unknown[0]} that counts or waits")
    return sorted(set(wanted))


def real_in(name: str, value: Any, low: float, high: float, words: str = "") -> float:
    """A finite number within bounds."""
    if _finite(value) and low <= value <= high:
        return float(value)
    raise UserError(f"{name} must be in {words or f'[{low:g}, {high:g}]'}, got {value!r:.80}")


def moment_or_none(name: str, value: Any) -> float | None:
    """Unix seconds, or None."""
    if value is None or _finite(value):
        return None if value is None else float(value)
    raise UserError(f"{name} must be Unix seconds, got {value!r:.80}")


def _finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


# --- what an action would do


def tried(state: State, attempt: Draft) -> Effect:
    """What an action would do: the state itself stays as it is."""
    before, after, reports = foresee(state, attempt.kind, json.loads(attempt.body))
    pairs = [
        list(zip(old.tolist(), new.tolist(), strict=True))
        for old, new in zip(before[1:], after[1:], strict=True)
    ]
    names = [state.regions.names[r] for r in before.regions]
    changed = [Changed(n, psi, G, H) for n, G, H, psi in zip(names, *pairs, strict=True)]
    changed.sort(key=lambda c: -abs(c.psi[1] - c.psi[0]))
    return Effect(True, changed, reports)
