"""What people do: confirm, override, allow, roll back, change modes. Checked, and tried out dry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from rapo.gate.config import FIXED, GateConfig
from rapo.gate.events import (
    Draft,
    Region,
    action_key,
    checked_region,
    checked_word,
    digest_of,
    packed,
)
from rapo.gate.foresee import foresee
from rapo.gate.state import State

LONGEST_REASON = 1000


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


def checked_reason(reason: Any) -> str:
    """A reason that a reader of the log can use."""
    if not isinstance(reason, str) or not reason.strip() or len(reason) > LONGEST_REASON:
        raise ValueError(
            f"a reason of 1 to {LONGEST_REASON} characters is needed, got {reason!r:.40}"
        )
    return reason.strip()


def rollback(
    state: State, *, reports: list[int] | None, source: str | None, start: float | None,
    end: float | None, reason: str, by: str,
) -> dict[str, Any]:  # fmt: skip
    """The body of a rollback: some reports, or one reporter's, or a time range's, or both."""
    if reports is None and source is None and start is None and end is None:
        raise ValueError("a rollback names reports, a source or a time range; it got none")
    if reports is not None and (source is not None or start is not None or end is not None):
        raise ValueError("a rollback names reports, or a source and a time range, not both")
    if reports is not None:
        if not reports:  # naming none must not come to mean all
            raise ValueError("a rollback names reports, a source or a time range; it got none")
        known = _known_reports(state, reports)
        return {"reports": known, "reason": checked_reason(reason), "by": checked_word("by", by)}
    if source is not None:
        checked_word("source", source)
        waiting = [*state.due(), *state.review.values()]
        if source not in state.sources and all(r.source != source for r in waiting):
            raise ValueError(f"nothing was reported by {source!r}")
    for name, value in (("start", start), ("end", end)):
        if value is not None and (isinstance(value, bool) or not _finite(value)):
            raise ValueError(f"{name} must be Unix seconds, got {value!r}")
    if start is not None and end is not None and not start < end:
        raise ValueError(f"a time range must have start < end, got {start} and {end}")
    return {
        "source": source, "from": start, "to": end, "reason": checked_reason(reason),
        "by": checked_word("by", by),
    }  # fmt: skip


def confirm(
    state: State, *, reports: list[int] | None, regions: list[Region] | None, reason: str, by: str
) -> dict[str, Any]:
    """The body of a confirmation."""
    if not reports and not regions:
        raise ValueError("a confirmation names reports or regions; it got none")
    if isinstance(regions, str | bytes):  # its letters would be taken for regions
        raise ValueError(f"regions must be a list of regions, got {regions!r:.80}")
    return {
        "reports": _known_reports(state, reports or []),
        "regions": [_known_region(state, r) for r in regions or []],
        "reason": checked_reason(reason),
        "by": checked_word("by", by),
    }


def override(
    state: State, region: Region, psi: float | None, *, expires_at: float | None, now: float,
    reason: str, by: str,
) -> dict[str, Any]:  # fmt: skip
    """The body of an override; `psi` None takes one back."""
    _known_region(state, region)
    low = state.config.params.psi_min
    if psi is not None and (isinstance(psi, bool) or not _finite(psi) or not low <= psi <= 1):
        raise ValueError(f"psi must be in [psi_min, 1] = [{low:g}, 1], got {psi!r}")
    if psi is None and state.regions.number(region) not in state.overrides:
        raise ValueError(f"region {region!r} has no override to take back")
    if expires_at is not None and (isinstance(expires_at, bool) or not _finite(expires_at)):
        raise ValueError(f"expires_at must be Unix seconds, got {expires_at!r}")
    if expires_at is not None and expires_at <= now:
        raise ValueError(f"expires_at must be in the future, got {expires_at!r}")
    return {
        "region": region, "psi": None if psi is None else float(psi), "expires_at": expires_at,
        "reason": checked_reason(reason), "by": checked_word("by", by),
    }  # fmt: skip


def allow(state: State, region: Region, *, remove: bool, reason: str, by: str) -> dict[str, Any]:
    """The body of putting a region on the allow-list, or taking it off."""
    _known_region(state, region)
    if remove and state.regions.number(region) not in state.allowed:
        raise ValueError(f"region {region!r} is not on the allow-list")
    return {
        "region": region, "allowed": not remove, "reason": checked_reason(reason),
        "by": checked_word("by", by),
    }  # fmt: skip


def mode(mode: str, percent: float, *, reason: str, by: str) -> dict[str, Any]:
    """The body of a change of mode."""
    if mode not in ("shadow", "enforce"):
        raise ValueError(f"mode must be 'shadow' or 'enforce', got {mode!r}")
    if isinstance(percent, bool) or not _finite(percent) or not 0 <= percent <= 100:
        raise ValueError(f"percent must be in [0, 100], got {percent!r}")
    return {
        "mode": mode, "percent": float(percent), "reason": checked_reason(reason),
        "by": checked_word("by", by),
    }  # fmt: skip


def configure(state: State, changes: dict[str, Any], *, reason: str, by: str) -> dict[str, Any]:
    """The body of a change of settings."""
    if not isinstance(changes, dict) or not changes:
        raise ValueError(f"changes must be settings and their values, got {changes!r:.80}")
    new = {**state.config.to_dict(), **changes}
    if isinstance(changes.get("params"), dict):
        new["params"] = {**state.config.params.to_dict(), **changes["params"]}
    config = GateConfig.from_dict(new)
    for name in FIXED:
        if getattr(config, name) != getattr(state.config, name):
            raise ValueError(
                f"{name} cannot change: ticks in the log would mean something else; "
                "make a new gate, or keep " + f"{getattr(state.config, name)}"
            )
    return {
        "config": config.to_dict(), "reason": checked_reason(reason), "by": checked_word("by", by)
    }  # fmt: skip


def labels(
    state: State, given: dict[Region, dict[str, str]], *, reason: str, by: str
) -> dict[str, Any]:
    """The body of labels for audits: `group`, `topic`, `sensitive` ("yes" or "no")."""
    pairs = []
    if not isinstance(given, dict):
        raise ValueError(f"labels must be regions and their labels, got {given!r:.80}")
    for region, label in given.items():
        _known_region(state, region)
        if not isinstance(label, dict) or set(label) - {"group", "topic", "sensitive"}:
            raise ValueError(f"a label has group, topic and sensitive, got {label!r:.80}")
        for name, value in label.items():
            checked_word(name, value)
        if label.get("sensitive", "no") not in ("yes", "no"):
            raise ValueError(f"sensitive must be 'yes' or 'no', got {label['sensitive']!r}")
        pairs.append([region, dict(label)])
    if not pairs:
        raise ValueError("no labels were given")
    return {"labels": pairs, "reason": checked_reason(reason), "by": checked_word("by", by)}


def draft(kind: str, body: dict[str, Any], now: float, name: str) -> Draft:
    """The event of an action.

    Args:
        kind: of the event.
        body: what one of the functions above made.
        now: Unix seconds.
        name: unique to this call. Done twice, an action is in the log twice; but one whose commit
            was interrupted is looked for by its name before it is done again.
    """
    data = packed(body)
    return Draft(kind, now, action_key(name), digest_of(data), data)


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


def _known_region(state: State, region: Any) -> Region:
    name = checked_region(region)
    if name not in state.regions:
        raise ValueError(f"region {region!r} is not known: no decision ever had it")
    return name


def _known_reports(state: State, reports: Any) -> list[int]:
    if not isinstance(reports, list | tuple) or not all(
        isinstance(r, int) and not isinstance(r, bool) and 0 < r < 2**63 for r in reports
    ):
        raise ValueError(
            f"reports must be a list of report ids, whole numbers, got {reports!r:.80}"
        )
    rows = state.ledger.rows
    waiting = {r.position for r in state.due() if not r.rolled_back} | set(state.review)
    counted = np.isin(np.array(reports, np.int64), rows["report"][~rows["rolled_back"]])
    unknown = [
        r for r, is_in in zip(reports, counted, strict=True) if not is_in and r not in waiting
    ]
    if unknown:
        raise ValueError(f"there is no report {unknown[0]} that counts or waits")
    return sorted(set(reports))


def _finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False
