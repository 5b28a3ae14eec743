"""What every human action has, and the register of them.

From the dataclass of an action and its fields (`rapo_gate.fields`) follow the method of `Gate`, the
endpoint and its body, the command, the form, the dry run and the line in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, replace
from math import isfinite
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

import numpy as np

from rapo_core.checks import UserError
from rapo_gate.config import GateConfig
from rapo_gate.events import Region, checked_region, checked_word
from rapo_gate.fields import REQUIRED, ActionField
from rapo_gate.fold.state import State

LONGEST_REASON = 1000
Values = dict[str, Any]


@dataclass(frozen=True)
class Action:
    """Something that a person does to a gate. It has a reason, and can be tried out dry."""

    name: ClassVar[str]
    """The action's command, and its form at `/actions/name`."""
    path: ClassVar[str]
    """The action's endpoint; the body holds the fields and the reason."""
    scope: ClassVar[str]
    """Scope of the keys that may do the action."""
    event: ClassVar[str]
    """Kind of the action's event."""
    part: ClassVar[str]
    """A name in the event's body, where several actions share a kind of event; else empty."""
    verb: ClassVar[str]
    """Text of the button that does the action."""
    fields: ClassVar[tuple[ActionField, ...]]
    """The action's own fields, in order."""

    reason: str = field(default="", kw_only=True)
    by: str = field(default="program", kw_only=True)
    dry_run: bool = field(default=False, kw_only=True)

    def body(self, state: State, now: float) -> Values:
        """The content of the action's event, checked against a state.

        Raises:
            UserError: the action cannot be done; the message says why.
        """
        raise NotImplementedError

    def title(self) -> str:
        """What is proposed, for the page that asks for a reason."""
        raise NotImplementedError

    def meaning(self, config: GateConfig) -> str:
        """What the action means, beyond the regions that change."""
        raise NotImplementedError

    @classmethod
    def log_line(cls, data: Values, before: Values) -> str:
        """The action's event in words, for the log; `before` are the settings until then."""
        raise NotImplementedError

    @classmethod
    def concerns(cls, data: Values) -> list[Region]:
        """Regions that the action's event names, to be linked beside the format."""
        if "region" in data:
            return [data["region"]]
        return list(data.get("regions") or [region for region, _ in data.get("labels") or []])

    @classmethod
    def subjects(cls) -> set[str]:
        """What the action can be about: `region`, `reports`, `source`; empty for the whole gate."""
        return {f.subject for f in cls.fields if f.subject}

    def whole_body(self, state: State, now: float) -> Values:
        """The content of the event with who did it and why; a dry run needs no reason."""
        reason = self.reason or "dry run" if self.dry_run else self.reason
        return {
            **self.body(state, now),
            "reason": checked_reason(reason),
            "by": checked_word("by", self.by),
        }


ACTIONS: dict[str, type[Action]] = {}
"""Every declared action, by name."""

A = TypeVar("A", bound=type[Action])


def action(
    name: str, path: str, *, scope: str, event: str, verb: str, part: str = ""
) -> Callable[[A], A]:
    """Declare an action; the attributes of `Action` say what each argument is."""

    def declare(cls: A) -> A:
        cls.name, cls.path, cls.scope, cls.verb = name, path, scope, verb
        cls.event, cls.part = event, part
        cls.fields = _fields_of(cls)
        ACTIONS[name] = cls
        return cls

    return declare


def _fields_of(cls: type[Action]) -> tuple[ActionField, ...]:
    """The `ActionField` in each annotation, with its name and default."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(
        replace(kind, name=own.name, default=REQUIRED if own.default is MISSING else own.default)
        for own in fields(cls)
        for kind in get_args(hints[own.name])
        if isinstance(kind, ActionField)
    )


def action_of(event: str, data: Values) -> type[Action] | None:
    """The action that an event of the log belongs to; None if it belongs to none."""
    for one in ACTIONS.values():
        if one.event == event and (not one.part or one.part in data) and "created" not in data:
            return one
    return None


# --- checks that actions share


def checked_reason(reason: Any) -> str:
    """A reason that a reader of the log can use, without spaces around it."""
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
    """Ids of reports that count or wait, sorted."""
    ids = [reports] if isinstance(reports, int) else reports
    if not isinstance(ids, list | tuple) or not all(
        isinstance(r, int) and not isinstance(r, bool) and 0 < r < 2**63 for r in ids
    ):
        raise UserError(f"reports must be a list of report ids, whole numbers, got {reports!r:.80}")
    rows = state.ledger.rows
    waiting = {r.position for r in state.due() if not r.rolled_back} | set(state.review)
    counted = np.isin(np.array(ids, np.int64), rows["report"][~rows["rolled_back"]])
    unknown = [r for r, counts in zip(ids, counted, strict=True) if not (counts or r in waiting)]
    if unknown:
        raise UserError(f"there is no report {unknown[0]} that counts or waits")
    return sorted(set(ids))


def real_in(name: str, value: Any, low: float, high: float, bounds: str = "") -> float:
    """A finite number from `low` to `high`."""
    if _finite(value) and low <= value <= high:
        return float(value)
    raise UserError(f"{name} must be in {bounds or f'[{low:g}, {high:g}]'}, got {value!r:.80}")


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
