"""What platforms call: decisions, exposures, reports of harm, and an empty call to compare with."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from pydantic_core import to_json
from starlette.responses import Response

from rapo.gate.events import Region
from rapo.gate.gate import Gate
from rapo.gate.intake import HarmReport, ReportResult, refused
from rapo.gate.service.body import RefusedError, checked_list
from rapo.gate.service.keys import Caller
from rapo.gate.service.metrics import Metrics
from rapo.gate.service.operation import Call, Operation
from rapo.gate.view import Decision

MOST_ITEMS = 1000
"""Reports of one request; more is refused with 413."""
_MANY = 50
"""Reports from which on checking them is left to another thread: decisions must not wait."""

_NUMBERS = frozenset((int, float))


def platform_operations(gate: Gate, metrics: Metrics) -> list[Operation]:
    """Operations of scopes gate and report."""

    async def ping(call: Call) -> Response:
        return Response(b'{"ok":true}', media_type="application/json")

    async def decide(call: Call) -> Response:
        body = call.body
        future = gate.decide_logged(
            _regions(body["regions"]), _law(body["p"]), body.get("request_id"),
            stimulus=body.get("stimulus"),
        )  # fmt: skip
        decision = await asyncio.wrap_future(future)
        metrics.decided(decision.mode)
        return Response(_written(decision), media_type="application/json")

    async def expose(call: Call) -> dict[str, Any]:
        shown = checked_list("shown", call.body["shown"])
        future = gate.expose_logged(call.body["decision_id"], shown)
        return {"in_time": await asyncio.wrap_future(future)}

    async def report(call: Call) -> dict[str, Any]:
        items = checked_list("items", call.body["items"])
        if len(items) > MOST_ITEMS:
            raise RefusedError(413, f"{len(items)} items; send at most {MOST_ITEMS} at a time")
        if len(items) < _MANY:
            results = await _reported(gate, items, call.caller)
        else:
            results = await asyncio.to_thread(_report_waiting, gate, items, call.caller)
        for result in results:
            metrics.reported(result.status)
        return {"results": [_result(r) for r in results]}

    return [
        Operation("GET", "/v1/ping", "gate", ping, "Do nothing, with a key", "Ping"),
        Operation(
            "POST", "/v1/decisions", "gate", decide,
            "Gate a proposed distribution; answered once it is logged", "Decision",
            body="DecisionRequest", needed=("regions", "p"),
            known=("request_id", "regions", "p", "stimulus"), errors=(409,),
        ),
        Operation(
            "POST", "/v1/exposures", "gate", expose,
            "Say which candidates of a decision were really shown", "Exposure",
            body="ExposureRequest", needed=("decision_id", "shown"),
            known=("decision_id", "shown"), errors=(404, 409),
        ),
        Operation(
            "POST", "/v1/reports", "report", report,
            "Report harm: one result per item, bad ones do not hinder good ones", "Reports",
            body="ReportsRequest", needed=("items",), known=("items",),
        ),
    ]  # fmt: skip


def _regions(values: Any) -> Any:
    """Integer regions as an array at once; everything else is for the gate to check."""
    if isinstance(values, list) and set(map(type, values)) == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            return values
    if not isinstance(values, list):
        raise ValueError(f"regions must be a list, got {values!r:.80}")
    return values


def _law(values: Any) -> Any:
    """`p` if it is a list of numbers; NumPy would take true for 1."""
    if not isinstance(values, list) or not _NUMBERS.issuperset(map(type, values)):
        raise ValueError(f"p must be a list of numbers, got {values!r:.80}")
    return values


def _written(decision: Decision) -> bytes:
    """A decision in JSON; the standard library would take longer than the decision did."""
    return to_json(
        {
            "decision_id": decision.decision_id,
            "q": decision.q.tolist(),
            "psi": decision.psi.tolist(),
            "revision": decision.revision,
            "mode": decision.mode,
        }
    )


def _prepared(
    items: list[Any], caller: Caller
) -> tuple[list[ReportResult | None], list[HarmReport]]:
    """Refusals in their places, and the reports that remain."""
    results: list[ReportResult | None] = []
    sound: list[HarmReport] = []
    for item in items:
        try:
            report = HarmReport.from_dict(item)
        except ValueError as error:
            results.append(refused(str(error)))
            continue
        if not caller.may_report_as(report.source):
            words = f"this key may not report as {report.source!r:.80}"
            results.append(refused(words, 403))
            continue
        results.append(None)
        sound.append(report)
    return results, sound


def _filled(results: list[ReportResult | None], found: list[ReportResult]) -> list[ReportResult]:
    following = iter(found)
    return [next(following) if result is None else result for result in results]


async def _reported(gate: Gate, items: list[Any], caller: Caller) -> list[ReportResult]:
    results, sound = _prepared(items, caller)
    return _filled(results, await asyncio.wrap_future(gate.report_logged(sound)))


def _report_waiting(gate: Gate, items: list[Any], caller: Caller) -> list[ReportResult]:
    results, sound = _prepared(items, caller)
    return _filled(results, gate.report(sound))


def _result(result: ReportResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "code": result.code,
        "report_id": result.report_id,
        "duplicate": result.duplicate,
        "error": result.error,
    }


def region_in(known: Any, word: str) -> Region:
    """The region that a word of a path names: a string first, then an integer.

    Raises:
        LookupError: no decision ever had either.
    """
    if word in known:
        return word
    digits = word.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(word) in known:
        return int(word)
    raise LookupError(f"region {word!r:.80} is not known: no decision ever had it")
