"""The routes of the HTTP API: platforms' calls, people's actions, and questions of both."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Query, Security
from fastapi.security import HTTPBearer
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from rapo_core.checks import UserError
from rapo_gate import audit
from rapo_gate.audit import Effect
from rapo_gate.declare import ACTIONS, Action, checked_reason
from rapo_gate.events import plain_event
from rapo_gate.gate import Gate
from rapo_gate.reports import HarmReport, ReportResult, refused
from rapo_gate.service import models
from rapo_gate.service.audits import Audits, chain_at, of_state, region_at, top_regions
from rapo_gate.service.auth import Caller, Keys
from rapo_gate.service.guard import LARGEST_BODY, RefusedError, key_route
from rapo_gate.service.models import (
    MOST_ITEMS,
    DecisionRequest,
    ExposureRequest,
    Flag,
    ReportsRequest,
    Whole,
    body_of,
)

if TYPE_CHECKING:
    from rapo_gate.service.app import Metrics

_MANY = 50
"""From so many reports on, another thread checks them: decisions must not wait for that."""
_MOST_BYTES = 4 << 20
"""Most bytes of events in one answer: a thousand decisions of a thousand candidates exceed it."""
_BEARER = HTTPBearer(scheme_name="key", auto_error=False)
_STATUSES = {
    400: "The body is not JSON.",
    401: "No key, or one that is not known.",
    403: "The key has another scope.",
    404: "There is no such thing.",
    408: "The body did not arrive in time.",
    409: "The same name was used for something else before.",
    410: "A compaction dropped what the answer needs.",
    413: f"More than {LARGEST_BODY} bytes, or too many items.",
    415: "The body is not declared as application/json.",
    422: "Something in the request is wrong; the message says what. Nothing was changed.",
    500: "A fault of the gate.",
    503: "The log is out of reach, or no answer came in time; nothing was acknowledged.",
}
_HEADERS = {401: "WWW-Authenticate", 503: "Retry-After"}
_BODY = (400, 408, 413, 415, 422)
"""Statuses with which a request with a body may be refused."""

Top = Annotated[Whole, Query(ge=1, le=1000, description="Most regions to return.")]
Limit = Annotated[Whole, Query(ge=1, le=500, description="Most reports and decisions to return.")]
After = Annotated[Whole, Query(ge=0, le=2**53, description="Only events after this position.")]
MostEvents = Annotated[
    Whole, Query(ge=1, le=1000, description="Most events; fewer come when they are large.")
]
DryRun = Annotated[Flag, Query(description="Only show what would change; needs no reason.")]


async def _caller(request: Request) -> Caller:  # async: FastAPI would give it a thread
    caller: Caller = request.state.caller
    return caller


Who = Annotated[Caller, Depends(_caller)]


def _needs(scope: str | None, answer: type[Any] | None, *codes: int) -> dict[str, Any]:
    """Arguments of a route: the key that it needs, and every status that it may answer with."""
    content: dict[str, Any] = {} if answer is None else {"model": answer}
    if answer is None:
        content = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    responses: dict[int | str, dict[str, Any]] = {200: {"description": "Done.", **content}}
    for code in sorted({*codes, 500, 503, *((401, 403) if scope else ())}):
        responses[code] = {"description": _STATUSES[code], "model": models.Error}
        if code in _HEADERS:
            responses[code]["headers"] = {_HEADERS[code]: {"schema": {"type": "string"}}}
    keys = [Security(_BEARER, scopes=[scope])] if scope else []
    about = f"Needs a key of scope `{scope}`. An error changes nothing." if scope else None
    return {
        "dependencies": keys, "responses": responses, "response_model": None, "description": about,
    }  # fmt: skip


def make_api(
    gate: Gate, keys: Keys, metrics: Metrics, audits: Audits, *, metrics_need_key: bool
) -> APIRouter:
    """All routes of the API."""
    router = APIRouter(route_class=key_route(keys))
    _add_platform(router, gate, metrics)
    for action in ACTIONS.values():
        _add_action(router, gate, audits, action)
    _add_questions(router, audits)
    _add_operations(router, gate, metrics, audits, "review" if metrics_need_key else None)
    return router


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Response(text.encode(), status, headers, "application/json")


# --- what platforms call


def _add_platform(router: APIRouter, gate: Gate, metrics: Metrics) -> None:
    @router.get("/v1/ping", summary="Do nothing, with a key", **_needs("gate", models.Ping))
    async def ping() -> Response:
        return Response(b'{"ok":true}', media_type="application/json")

    @router.post(
        "/v1/decisions",
        summary="Gate a proposed distribution; answered once it is logged",
        **_needs("gate", models.DecisionAnswer, 409, 410, *_BODY),
    )
    async def decide(body: DecisionRequest) -> Response:
        regions: Any = body.regions
        if isinstance(regions[0], int):
            regions = np.array(regions, np.int64)
        future = gate.decide_logged(regions, body.p, body.request_id, stimulus=body.stimulus)
        decision = await asyncio.wrap_future(future)
        metrics.decided(decision.mode)
        answer = {
            "decision_id": decision.decision_id,
            "q": decision.q.tolist(),
            "psi": decision.psi.tolist(),
            "revision": decision.revision,
            "mode": decision.mode,
        }
        return Response(to_json(answer), media_type="application/json")

    @router.post(
        "/v1/exposures",
        summary="Say which candidates of a decision were really shown",
        **_needs("gate", models.ExposureAnswer, 404, 409, 410, *_BODY),
    )
    async def expose(body: ExposureRequest) -> Response:
        future = gate.expose_logged(body.decision_id, body.shown)
        return as_json({"in_time": await asyncio.wrap_future(future)})

    @router.post(
        "/v1/reports",
        summary="Report harm: one result per item, bad ones do not hinder good ones",
        **_needs("report", models.ReportsAnswer, *_BODY),
    )
    async def report(body: ReportsRequest, caller: Who) -> Response:
        items = body.items
        if len(items) > MOST_ITEMS:
            raise RefusedError(413, f"{len(items)} items; send at most {MOST_ITEMS} at a time")
        if len(items) < _MANY:
            results, sound = _prepared(items, caller)
            taken = await asyncio.wrap_future(gate.report_logged(sound))
        else:
            results, sound = await asyncio.to_thread(_prepared, items, caller)
            taken = await asyncio.to_thread(gate.report, sound)
        in_order = iter(taken)
        answers = [next(in_order) if result is None else result for result in results]
        for status, count in Counter(result.status for result in answers).items():
            metrics.reported(status, count)
        return Response(
            to_json({"results": [result.to_dict() for result in answers]}),
            media_type="application/json",
        )


def _prepared(
    items: list[Any], caller: Caller
) -> tuple[list[ReportResult | None], list[HarmReport]]:
    """The refusals in their places with None for the other items, and the reports to take in."""
    results: list[ReportResult | None] = []
    sound: list[HarmReport] = []
    for item in items:
        try:
            report = HarmReport.from_dict(item)
        except ValueError as error:
            results.append(refused(str(error)))
            continue
        if not caller.may_report_as(report.source):
            results.append(refused(f"this key may not report as {report.source!r:.80}", 403))
            continue
        results.append(None)
        sound.append(report)
    return results, sound


# --- what people do


def _add_action(router: APIRouter, gate: Gate, audits: Audits, action: type[Action]) -> None:
    """The endpoint of an action, from its declaration."""

    async def act(body: Any, caller: Who, dry_run: DryRun = False) -> Response:
        if body.reason is None and not dry_run:
            raise UserError("an action needs a reason, for those who read the log")
        reason = "" if body.reason is None else checked_reason(body.reason)
        values = {field.name: getattr(body, field.name) for field in action.fields}
        made = action(**values, reason=reason, by=caller.name, dry_run=dry_run)
        if dry_run:
            effect = await audits.ask(Gate.act, made)
        else:
            effect = await asyncio.to_thread(gate.act, made)
        return as_json(asdict(effect))

    act.__annotations__["body"] = body_of(action)
    summary = (action.__doc__ or "").partition("\n")[0].rstrip(".")
    router.post(
        action.path,
        name=action.name,
        summary=summary,
        **_needs(action.scope, Effect, *_BODY),
    )(act)


# --- questions of both


def _add_questions(router: APIRouter, audits: Audits) -> None:
    @router.get(
        "/v1/regions",
        summary="Regions with the largest scars",
        **_needs("review", models.RegionsAnswer, 422),
    )
    async def regions(top: Top = 50) -> Response:
        return as_json(await audits.ask(of_state, top_regions, top))

    @router.get(
        "/v1/regions/{region:path}/chain",
        summary="Reports on a region, what each added, and the decisions it changed",
        **_needs("review", models.ChainAnswer, 404, 422),
    )
    async def chain(region: str, limit: Limit = 50) -> Response:
        return as_json(await audits.ask(chain_at, region, limit))

    @router.get(
        "/v1/regions/{region:path}",
        summary="One region",
        **_needs("review", models.RegionAnswer, 404, 422),
    )
    async def region(region: str) -> Response:
        return as_json(await audits.ask(of_state, region_at, region))

    @router.get(
        "/v1/decisions/{decision_id}",
        summary="How much a decision was changed, and by which reports",
        **_needs("review", models.ExplanationAnswer, 404, 410, 422),
    )
    async def explain(decision_id: str) -> Response:
        return as_json(await audits.ask(Gate.explain, decision_id))

    def ask(name: str, summary: str, answer: Any, question: Callable[..., Any], *args: Any) -> None:
        """Add a route without parameters. A list is answered under the name in its model."""

        async def handle() -> Response:
            value = await audits.ask(question, *args)
            return as_json(
                {next(iter(answer.model_fields)): value} if isinstance(value, list) else value
            )

        router.get(f"/v1/{name}", name=name, summary=summary, **_needs("review", answer, 422))(
            handle
        )

    ask("queue", "Reports that wait", models.QueueAnswer, Gate.queue)
    ask("reporters", "Who reported", models.ReportersAnswer, Gate.reporters)
    ask("bias", "Rates by group and topic", models.BiasAnswer, Gate.bias)
    ask("outcomes", "What came back", models.OutcomesAnswer, of_state, audit.outcomes)
    ask("overview", "The gate at a glance", models.OverviewAnswer, of_state, audit.overview)


def _add_operations(
    router: APIRouter, gate: Gate, metrics: Metrics, audits: Audits, metrics_scope: str | None
) -> None:
    @router.get("/v1/events", summary="The log", **_needs("review", models.EventsAnswer, 422))
    async def events(after: After = 0, limit: MostEvents = 1000) -> Response:
        return await asyncio.to_thread(_page, gate, after, limit)

    @router.get(
        "/v1/verify",
        summary="Fold the whole log afresh and compare; slow",
        **_needs("admin", models.VerificationAnswer, 422),
    )
    async def verify() -> Response:
        return as_json(await audits.verify())

    open_to_all = _needs(None, models.HealthAnswer)
    open_to_all["responses"][503]["model"] = models.HealthAnswer
    del open_to_all["responses"][503]["headers"]

    @router.get("/healthz", summary="Whether answers are fresh", **open_to_all)
    async def health() -> Response:
        health = await asyncio.to_thread(gate.health)
        if health["why"] is not None:  # anyone may read this, but not where the log lives
            health["why"] = str(health["why"]).replace(gate.store.address, "the store")
        # All replicas share a clock that ran ahead: taking one out of rotation would help nobody.
        return as_json(health, 200 if health["status"] in ("ok", "ahead") else 503)

    @router.get("/metrics", summary="Prometheus metrics", **_needs(metrics_scope, None))
    async def figures() -> Response:
        return Response(await asyncio.to_thread(metrics.page), media_type=CONTENT_TYPE_LATEST)


def _page(gate: Gate, after: int, limit: int) -> Response:
    """The events after a position that one answer can hold; `next` is where to go on."""
    listed: list[dict[str, Any]] = []
    size, last = 0, after
    for event in gate.events(after, limit):
        size += len(event.body)
        if listed and size > _MOST_BYTES:
            break
        listed.append(plain_event(event))
        last = event.position
    return as_json({"events": listed, "next": last})
