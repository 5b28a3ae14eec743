"""Reports on their way in: what is refused, what waits for a reviewer, what counts by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite
from typing import Any

from rapo_core.checks import UserError
from rapo_gate.config import GateConfig
from rapo_gate.events import (
    DroppedError,
    Event,
    NewEvent,
    Region,
    checked_region,
    checked_word,
    decision_key,
    digest_of,
    exposure_key,
    packed,
    report_key,
    unpack_decision,
)
from rapo_gate.fold.state import State
from rapo_gate.log.store import Appending

MOST_AHEAD = 60.0
"""Seconds that a report's time may lie in the future: clocks differ."""
MOST_REGIONS = 1000
"""Regions that one report may name."""
_NEEDED = frozenset({"source", "key", "harm", "signal", "at"})
_NAMES = _NEEDED | {"decision_id", "regions"}
"""Names that a report must have, and that it may have."""


@dataclass(frozen=True, slots=True)
class HarmReport:
    """Somebody says that harm was done.

    It names the decision that exposed people to it, the regions themselves, or both: then harm
    goes to those regions alone, which must be among what the decision showed.
    """

    source: str
    """Who reports; different sources are taken to be independent."""
    key: str
    """The reporter's own name of this report: sent twice, it counts once."""
    harm: float
    """In [0, max_harm]."""
    signal: str
    """What kind of evidence it is: `user-report`, `classifier`, …"""
    at: float
    """When the exposure was, Unix seconds."""
    decision_id: str | None = None
    regions: Sequence[Region] | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> HarmReport:
        """From a JSON object; a name too many or too few is an error."""
        if not isinstance(values, Mapping):
            raise UserError(f"a report must be an object, got {values!r:.80}")
        if not _NEEDED <= values.keys() <= _NAMES:
            missing, unknown = sorted(_NEEDED - values.keys()), sorted(values.keys() - _NAMES)
            raise UserError(f"a report lacks {missing}" if missing else f"unknown names {unknown}")
        return cls(**values)


@dataclass(frozen=True, slots=True)
class ReportResult:
    """What became of one report."""

    status: str
    """`accepted`, `review` (too late to count by itself), `quarantined` (a region that no
    decision ever had), or `refused`."""
    code: int
    """As in HTTP: 200 accepted, 202 waits for a reviewer, 409 key used for another body, 410 a
    compaction dropped what the answer needs, 422."""
    report_id: int | None = None
    """Its position in the log."""
    duplicate: bool = False
    """It was there already; this is the first answer again."""
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, as JSON takes them; `asdict` would copy each value deeply."""
        return {
            "status": self.status, "code": self.code, "report_id": self.report_id,
            "duplicate": self.duplicate, "error": self.error,
        }  # fmt: skip


@dataclass(slots=True)
class Checked:
    """A report with nothing wrong in itself, ready for the log."""

    report: HarmReport
    key: str
    digest: bytes
    values: dict[str, Any]
    body: bytes
    """`values` as the log keeps them."""


def refused(error: str, code: int = 422) -> ReportResult:
    """The answer to a report that changed nothing."""
    return ReportResult("refused", code, error=error)


def check(report: HarmReport, config: GateConfig, now: float) -> Checked:
    """Look at a report by itself.

    Raises:
        ValueError: something is wrong with it; the message says what.
    """
    if not isinstance(report, HarmReport):
        raise UserError(f"a report must be a HarmReport, got {type(report).__name__}")
    source = checked_word("source", report.source)
    key = checked_word("key", report.key)
    signal = checked_word("signal", report.signal, 64)
    harm = _real("harm", report.harm)
    if not 0 <= harm <= config.max_harm:
        raise UserError(f"harm must be in [0, {config.max_harm:g}], got {harm!r}")
    at = _real("at", report.at)
    if at > now + MOST_AHEAD:
        raise UserError(f"at is {at - now:.0f} s in the future; more than {MOST_AHEAD:.0f}")
    oldest = config.D_max * config.tick_seconds
    if now - at > oldest:
        raise UserError(f"at is {now - at:.0f} s ago; D_max allows {oldest:.0f}")
    values: dict[str, Any] = {
        "source": source, "key": key, "harm": harm, "signal": signal, "at": at,
    }  # fmt: skip
    if report.decision_id is None and report.regions is None:
        raise UserError("a report names a decision_id, regions, or both; it got neither")
    if report.decision_id is not None:
        values["decision_id"] = checked_word("decision_id", report.decision_id)
    if report.regions is not None:
        values["regions"] = _regions(report.regions)
    body = packed(values)
    return Checked(report, report_key(source, key), digest_of(body), values, body)


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{name} must be a number, got {value!r:.40}")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise UserError(f"{name} must be finite, got {number}")
    return number


def _regions(values: Any) -> list[Region]:
    if type(values) is not list and (
        isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable)
    ):
        raise UserError(f"regions must be a list, got {values!r:.80}")
    names = list(dict.fromkeys(checked_region(v) for v in values))
    if not 1 <= len(names) <= MOST_REGIONS:
        raise UserError(f"regions must be 1 to {MOST_REGIONS}, got {len(names)}")
    return names


def take_in(
    checked: Sequence[Checked | ReportResult], state: State, log: Appending, now: float
) -> tuple[list[ReportResult], list[Event]]:
    """Append what is new and sound; one result for each, in order.

    Args:
        checked: what `check` gave, or the refusal it led to.
        state: at the end of the log.
        log: the open transaction.
        now: time of arrival.
    """
    sound = [c for c in checked if isinstance(c, Checked)]
    known = log.find(list(dict.fromkeys(c.key for c in sound)))
    named = {c.values["decision_id"] for c in sound if "decision_id" in c.values}
    made = _made(log.find([*map(decision_key, named), *map(exposure_key, named)]), named)
    drafts: dict[str, tuple[NewEvent, str]] = {}
    """By key, what is new, and what it waits for."""
    results: list[ReportResult | str] = []
    """Of each item its result, or the key of a report whose position is not known yet."""
    for item in checked:
        if isinstance(item, ReportResult):
            results.append(item)
        elif item.key in known:
            results.append(_again(known[item.key], item))
        elif item.key in drafts:
            same = drafts[item.key][0].digest == item.digest
            results.append(item.key if same else _conflict(item))
        else:
            try:
                tick = _tick(item.values, made, state.config, now)
            except DroppedError as error:
                results.append(refused(str(error), 410))
                continue
            except ValueError as error:
                results.append(refused(str(error)))
                continue
            why = _waits_for(item.values, tick, state)
            # `packed` of all of it: these two names come last in the alphabet
            body = item.body[:-1] + f',"tick":{tick},"waits_for":"{why}"}}'.encode()
            drafts[item.key] = NewEvent("HarmReport", now, item.key, item.digest, body), why
            results.append(item.key)
    events = log.append([draft for draft, _ in drafts.values()])
    positions = {str(e.key): e.position for e in events}
    first: set[str] = set()
    answers = []
    for result in results:
        if isinstance(result, str):
            repeated = result in first
            first.add(result)
            result = _result(positions[result], drafts[result][1], repeated)
        answers.append(result)
    return answers, events


def _again(event: Event, item: Checked) -> ReportResult:
    """The result of a report whose key is in the log already."""
    if event.digest != item.digest:
        return _conflict(item)
    try:
        return _result(event.position, event.data()["waits_for"], True)
    except DroppedError as error:
        return refused(str(error), 410)


Made = dict[str, tuple[int, set[Region]] | None]
"""By decision, its tick and the regions it showed; None where a compaction dropped them."""


def _made(events: dict[str, Event], named: set[str]) -> Made:
    """The decisions that are in the log: what was shown, or all candidates if nobody told."""
    made: Made = {}
    for name in named:
        event, exposure = events.get(decision_key(name)), events.get(exposure_key(name))
        if event is None:
            continue
        try:
            body = unpack_decision(event.body)
            made[name] = body.tick, set(exposure.data()["shown"] if exposure else body.ids())
        except DroppedError:
            made[name] = None
    return made


def _tick(values: dict[str, Any], made: Made, config: GateConfig, now: float) -> int:
    """Tick of the exposure that a report is about."""
    if "decision_id" not in values:
        return floor(float(values["at"]) / config.tick_seconds)
    name = values["decision_id"]
    if name not in made:
        raise UserError(f"decision_id {name!r} is of no decision of this gate")
    decision = made[name]
    if decision is None:
        raise DroppedError(f"what decision {name!r} showed")
    tick, shown = decision
    age = floor(now / config.tick_seconds) - tick
    if age > config.D_max:
        raise UserError(f"the decision is {age} ticks old; D_max allows {config.D_max}")
    foreign = [region for region in values.get("regions", ()) if region not in shown]
    if foreign:
        raise UserError(f"region {foreign[0]!r} was not shown with decision {name!r}")
    return tick


def _waits_for(values: dict[str, Any], tick: int, state: State) -> str:
    if any(region not in state.regions for region in values.get("regions", ())):
        return "unknown region"
    return "late" if tick + state.config.D <= state.tick else ""


def _conflict(item: Checked) -> ReportResult:
    return refused(f"key {item.report.key!r} of {item.report.source!r} has another body", 409)


def _result(position: int, waits_for: str, duplicate: bool) -> ReportResult:
    status = {"": "accepted", "late": "review"}.get(waits_for, "quarantined")
    return ReportResult(status, 200 if status == "accepted" else 202, position, duplicate)
