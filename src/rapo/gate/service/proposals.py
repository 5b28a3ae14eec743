"""What a reviewer proposes to do: read from a form, tried out dry, then done with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rapo.gate.acts import Effect
from rapo.gate.events import Region
from rapo.gate.gate import Gate
from rapo.gate.service.numerals import number, region_query, span
from rapo.gate.service.visit import Visit

EXPIRIES = {
    "3600": "1 hour",
    "86400": "1 day",
    "604800": "7 days",
    "2592000": "30 days",
    "": "never",
}
"""Seconds after which an override ends, as a form sends them."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action that waits for a reviewer's word."""

    title: str
    about: str
    """What it means, beyond the regions that change."""
    verb: str
    """Words of the button that does it."""
    run: Callable[[bool, str, str], Effect]
    """Do it: whether dry, the reason, by whom."""
    fields: list[tuple[str, str]]
    """What the form must send again."""
    back: str
    """Where a reviewer came from, and goes back to."""
    region: Region | None = None


def rollback(gate: Gate, visit: Visit, clock: Clock) -> Proposal:
    """Reports out as if they had never come: a reporter's, or some."""
    source = visit.exact("source")
    if source:
        return Proposal(
            f"Roll back everything from {source}",
            "Every report of this reporter so far is taken out as if it had never come. Reports "
            "that it sends later count again.",
            "Roll back",
            lambda dry, reason, by: gate.rollback(
                source=source, reason=reason, by=by, dry_run=dry
            ),
            [("source", source)],
            "/reporters",
        )  # fmt: skip
    reports = _reports(visit)
    from_region = "name" in visit.fields or "number" in visit.fields
    origin, back, region = _of(visit.region()) if from_region else ([], "/queue", None)
    return Proposal(
        f"Roll back {_these(reports)}",
        "What they reported is taken out as if it had never come.",
        "Roll back",
        lambda dry, reason, by: gate.rollback(reports=reports, reason=reason, by=by, dry_run=dry),
        [*[("reports", str(r)) for r in reports], *origin],
        back,
        region,
    )


def confirm(gate: Gate, visit: Visit, clock: Clock) -> Proposal:
    """Vouch for reports, or for a region."""
    days = span(gate.config.confirm_ticks * gate.config.tick_seconds)
    if "reports" in visit.fields:
        reports = _reports(visit)
        return Proposal(
            f"Confirm {_these(reports)}",
            "Late and quarantined reports count from the next tick on, so they change nothing at "
            f"once. The regions of the others may scar for {days}.",
            "Confirm",
            lambda dry, reason, by: gate.confirm(
                reports=reports, reason=reason, by=by, dry_run=dry
            ),
            [("reports", str(r)) for r in reports],
            "/queue",
        )  # fmt: skip
    region = visit.region()
    return Proposal(
        f"Confirm what was reported on {region}",
        f"You vouch for it: for {days} the region may scar without further agreement.",
        "Confirm",
        lambda dry, reason, by: gate.confirm(regions=[region], reason=reason, by=by, dry_run=dry),
        *_of(region),
    )


def override(gate: Gate, visit: Visit, clock: Clock) -> Proposal:
    """Set a region's psi by hand, or take that back."""
    region = visit.region()
    fields, back, _ = _of(region)
    if visit.one("psi") == "":
        if "expires" in visit.fields:
            raise ValueError("psi must be a number, got nothing")
        return Proposal(
            f"Take the override of {region} back",
            "The region is gated by what was reported again.",
            "Take back",
            lambda dry, reason, by: gate.override(region, None, reason=reason, by=by, dry_run=dry),
            fields, back, region,
        )  # fmt: skip
    psi, expires = _real("psi", visit.one("psi")), visit.one("expires")
    if expires not in EXPIRIES:
        raise ValueError(f"an override ends after one of {list(EXPIRIES.values())}")

    def run(dry: bool, reason: str, by: str) -> Effect:
        end = clock() + float(expires) if expires else None
        return gate.override(region, psi, expires_at=end, reason=reason, by=by, dry_run=dry)

    until = f"for {EXPIRIES[expires]}" if expires else "until somebody takes it back"
    return Proposal(
        f"Set ψ of {region} to {number(psi)}",
        f"It holds {until}, whatever is reported. The trace and the scar go on underneath.",
        "Set ψ", run,
        [*fields, ("psi", visit.one("psi")), ("expires", expires)], back, region,
    )  # fmt: skip


def allow(gate: Gate, visit: Visit, clock: Clock) -> Proposal:
    """Put a region on the allow-list, or take it off."""
    region = visit.region()
    fields, back, _ = _of(region)
    remove = visit.one("remove") == "yes"
    return Proposal(
        f"Take {region} off the allow-list" if remove else f"Put {region} on the allow-list",
        "Every report on it counts again, the old ones too." if remove
        else "No report on it counts, nor ever did: its trace and its scar are gone.",
        "Take off" if remove else "Allow",
        lambda dry, reason, by: gate.allow(
            region, remove=remove, reason=reason, by=by, dry_run=dry
        ),
        [*fields, *([("remove", "yes")] if remove else [])], back, region,
    )  # fmt: skip


def mode(gate: Gate, visit: Visit, clock: Clock) -> Proposal:
    """Shadow, or enforce for a percentage of decisions."""
    wanted, word = visit.one("mode"), visit.one("percent", "100")
    percent = _real("percent", word) if wanted == "enforce" else 100.0
    enforce = f"Enforce for {number(percent)} % of decisions"
    return Proposal(
        enforce if wanted == "enforce" else "Go back to shadow mode",
        "These decisions are answered with the gated law; the others as proposed."
        if wanted == "enforce" else "Decisions are computed and logged, and answered as proposed.",
        "Change the mode",
        lambda dry, reason, by: gate.set_mode(
            wanted, percent, reason="dry run" if dry else reason, by=by, dry_run=dry
        ),
        [("mode", wanted), ("percent", word)],
        "/policy",
    )  # fmt: skip


ACTIONS: dict[str, tuple[str, Callable[[Gate, Visit, Clock], Proposal]]] = {
    "rollback": ("review", rollback),
    "confirm": ("review", confirm),
    "override": ("review", override),
    "allow": ("review", allow),
    "mode": ("admin", mode),
}
"""Scope that each needs, and how it is read."""


def _of(region: Region) -> tuple[list[tuple[str, str]], str, Region]:
    """The fields that name a region, the address of its page, and itself."""
    name = "number" if isinstance(region, int) else "name"
    return [(name, str(region))], f"/region?{region_query(region)}", region


def _reports(visit: Visit) -> list[int]:
    words = visit.fields.get("reports", [])
    if not words:
        raise ValueError("no report was chosen; tick the box of at least one")
    if not all(w.isascii() and w.isdecimal() and len(w) < 19 for w in words):
        raise ValueError(f"report ids must be whole numbers, got {words!r:.80}")
    return sorted({int(w) for w in words})


def _these(reports: list[int]) -> str:
    return f"report {reports[0]}" if len(reports) == 1 else f"{len(reports)} reports"


def _real(name: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {word!r:.40}") from None


def summary(effect: Effect, proposal: Proposal, most: int = 20) -> dict[str, Any]:
    """What was done, for the next page."""
    return {
        "title": f"Done: {proposal.title}",
        "event": effect.event,
        "reports": effect.reports,
        "regions": effect.regions[:most],
        "regions_in_all": len(effect.regions),
    }
