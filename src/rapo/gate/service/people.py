"""What people do over HTTP. Each needs a reason, acts under its key's name, and can be tried."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rapo.gate.acts import Effect, checked_reason
from rapo.gate.events import Region, checked_region
from rapo.gate.gate import Gate
from rapo.gate.service.body import (
    checked_list,
    checked_object,
    checked_real,
    checked_truth,
    checked_wholes,
)
from rapo.gate.service.operation import Call, Operation, Query

DRY_RUN = Query("dry_run", False, "Only show what would change; needs no reason.")

Act = Callable[[dict[str, Any], dict[str, Any]], Effect]
"""Does an action: the body, and what all actions have (`reason`, `by`, `dry_run`)."""


def people_operations(gate: Gate) -> list[Operation]:
    """Operations that change the state by hand, of scopes review and admin."""

    def confirm(body: dict[str, Any], how: dict[str, Any]) -> Effect:
        reports, regions = body.get("reports"), body.get("regions")
        return gate.confirm(
            None if reports is None else checked_wholes("reports", reports),
            None if regions is None else checked_list("regions", regions),
            **how,
        )

    def override(body: dict[str, Any], how: dict[str, Any]) -> Effect:
        return gate.override(
            body["region"], _real("psi", body), expires_at=_real("expires_at", body), **how
        )

    def allow(body: dict[str, Any], how: dict[str, Any]) -> Effect:
        remove = checked_truth("remove", body.get("remove", False))
        return gate.allow(body["region"], remove=remove, **how)

    def rollback(body: dict[str, Any], how: dict[str, Any]) -> Effect:
        reports = body.get("reports")
        return gate.rollback(
            None if reports is None else checked_wholes("reports", reports),
            body.get("source"), _real("start", body), _real("end", body), **how,
        )  # fmt: skip

    def mode(body: dict[str, Any], how: dict[str, Any]) -> Effect:
        percent = checked_real("percent", body.get("percent", 100.0))
        return gate.set_mode(body["mode"], percent, **_with_reason(how))

    def label(body: dict[str, Any], how: dict[str, Any]) -> Effect:
        return gate.label(_labels(body["labels"]), **how)

    return [
        _operation(
            "/v1/confirmations", "review", confirm, "Vouch for reports or regions",
            "Confirmation", (), ("reports", "regions"),
        ),
        _operation(
            "/v1/overrides", "review", override, "Set a region's psi by hand, or take that back",
            "Override", ("region", "psi"), ("region", "psi", "expires_at"),
        ),
        _operation(
            "/v1/allow", "review", allow, "Put a region on the allow-list, or take it off",
            "Allowance", ("region",), ("region", "remove"),
        ),
        _operation(
            "/v1/rollbacks", "review", rollback, "Take reports out as if they had never come",
            "Rollback", (), ("reports", "source", "start", "end"),
        ),
        _operation(
            "/v1/mode", "admin", mode, "Compute and log only (shadow), or serve what is gated",
            "Mode", ("mode",), ("mode", "percent"),
        ),
        _operation(
            "/v1/labels", "admin", label, "Label regions for audits and outcomes",
            "Labels", ("labels",), ("labels",),
        ),
    ]  # fmt: skip


def _operation(
    path: str, scope: str, act: Act, summary: str, body: str, needed: tuple[str, ...],
    known: tuple[str, ...],
) -> Operation:  # fmt: skip
    async def handle(call: Call) -> dict[str, Any]:
        dry_run = bool(call.query["dry_run"])
        reason = call.body.get("reason")
        if reason is None and not dry_run:
            raise ValueError("this needs a reason, for those who read the log")
        how = {"reason": "" if reason is None else checked_reason(reason), "by": call.caller.name}
        # Trying an action copies the state: another thread, so that decisions go on.
        return asdict(await asyncio.to_thread(act, call.body, {**how, "dry_run": dry_run}))

    return Operation(
        "POST", path, scope, handle, summary, "Effect", body=f"{body}Request", needed=needed,
        known=(*known, "reason"), query=(DRY_RUN,),
    )  # fmt: skip


def _with_reason(how: dict[str, Any]) -> dict[str, Any]:
    """A change of mode wants a reason even when it is only tried."""
    return {**how, "reason": how["reason"] or "dry run"} if how["dry_run"] else how


def _real(name: str, body: dict[str, Any]) -> float | None:
    value = body.get(name)
    return None if value is None else checked_real(name, value)


def _labels(value: Any) -> dict[Region, dict[str, str]]:
    found: dict[Region, dict[str, str]] = {}
    for item in checked_list("labels", value):
        label = dict(checked_object(item, ("region",), ("region", "group", "topic", "sensitive")))
        region = checked_region(label.pop("region"))
        if region in found:
            raise ValueError(f"region {region!r} is labelled twice")
        found[region] = {name: word for name, word in label.items() if word is not None}
    return found
