"""What people and programs ask: regions, decisions, the queue, the log, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from rapo.gate import audit
from rapo.gate.events import plain_event
from rapo.gate.gate import Gate
from rapo.gate.service.metrics import CONTENT_TYPE, Metrics
from rapo.gate.service.operation import Call, Operation, Query, as_json
from rapo.gate.service.platform import region_in
from rapo.gate.state import State

_MOST_BYTES = 4 << 20
"""Bytes of events in one answer: a thousand decisions of a thousand candidates are too many."""

TOP = Query("top", 50, "Most regions to return.", 1, 1000)
LIMIT = Query("limit", 50, "Most reports and decisions to return.", 1, 500)
AFTER = Query("after", 0, "Only events after this position.")
MOST_EVENTS = Query(
    "limit", 1000, "Most events to return; fewer come when they are large.", 1, 1000
)


def read_operations(gate: Gate, metrics: Metrics, metrics_scope: str | None) -> list[Operation]:
    """Operations that change nothing.

    Args:
        gate: what is read.
        metrics: what `/metrics` shows.
        metrics_scope: scope that `/metrics` needs, None for no key.
    """

    def of_state(look: Callable[[State], Any], name: str) -> Callable[[Call], Any]:
        """A handler that shows what `look` finds, under a name if it is a list."""

        async def handle(call: Call) -> dict[str, Any]:
            found = await asyncio.to_thread(gate.read, look)
            return found if isinstance(found, dict) else {name: found}

        return handle

    async def top(call: Call) -> dict[str, Any]:
        most = call.query["top"]
        return await asyncio.to_thread(gate.read, lambda state: {
            "regions": audit.top_regions(state, most), "known": len(state.regions),
            "revision": state.revision,
        })  # fmt: skip

    async def region(call: Call) -> dict[str, Any]:
        word = call.path("region")
        return await asyncio.to_thread(
            gate.read, lambda state: audit.region_view(state, region_in(state.regions, word))
        )

    async def chain(call: Call) -> dict[str, Any]:
        word, limit = call.path("region"), call.query["limit"]
        return await asyncio.to_thread(
            gate.read,
            lambda state: audit.chain(state, gate.store, region_in(state.regions, word), limit),
        )

    async def explain(call: Call) -> dict[str, Any]:
        word = call.path("decision_id")
        return await asyncio.to_thread(
            gate.read, lambda state: audit.explain(state, gate.store, word)
        )

    async def events(call: Call) -> Response:
        page = _page(gate, call.query["after"], call.query["limit"])
        return await asyncio.to_thread(page)

    async def verify(call: Call) -> dict[str, Any]:
        return await asyncio.to_thread(gate.verify)

    async def health(call: Call) -> Response:
        found = await asyncio.to_thread(gate.health)
        if found["why"] is not None:  # anyone may read this; where the log lives is not for them
            found["why"] = str(found["why"]).replace(gate.store.address, "the store")
        return as_json(found, 200 if found["status"] == "ok" else 503)

    async def figures(call: Call) -> Response:
        page = await asyncio.to_thread(metrics.page)
        return Response(page, media_type=CONTENT_TYPE)

    def reads(path: str, handler: Any, summary: str, answer: str, **more: Any) -> Operation:
        return Operation("GET", path, more.pop("scope", "review"), handler, summary, answer, **more)

    return [
        reads("/v1/regions", top, "Regions with the largest scars", "Regions", query=(TOP,)),
        reads(
            "/v1/regions/{region:path}/chain", chain,
            "Reports on a region, what each added, and the decisions it changed", "Chain",
            query=(LIMIT,), errors=(404,),
        ),
        reads("/v1/regions/{region:path}", region, "One region", "Region", errors=(404,)),
        reads(
            "/v1/decisions/{decision_id}", explain,
            "How much a decision was changed, and by which reports", "Explanation", errors=(404,),
        ),
        reads("/v1/queue", of_state(audit.queue, "reports"), "Reports that wait", "Queue"),
        reads("/v1/reporters", of_state(audit.reporters, "reporters"), "Who reported", "Reporters"),
        reads("/v1/bias", of_state(audit.bias, "bias"), "Rates by group and topic", "Bias"),
        reads(
            "/v1/outcomes", of_state(audit.outcomes, "outcomes"), "What came of it", "Outcomes"
        ),
        reads(
            "/v1/overview", of_state(audit.overview, "overview"), "The gate at a glance", "Overview"
        ),
        reads("/v1/events", events, "The log", "Events", query=(AFTER, MOST_EVENTS)),
        reads(
            "/v1/verify", verify, "Fold the whole log afresh and compare; slow", "Verification",
            scope="admin",
        ),
        reads("/healthz", health, "Whether answers are fresh", "Health", scope=None),
        reads("/metrics", figures, "Prometheus metrics", "text", scope=metrics_scope),
    ]  # fmt: skip


def _page(gate: Gate, after: int, limit: int) -> Callable[[], Response]:
    """Events after a position, as many as an answer holds; `next` is where to go on."""

    def page() -> Response:
        found: list[dict[str, Any]] = []
        size, last = 0, after
        for event in gate.events(after, limit):
            size += len(event.body)
            if found and size > _MOST_BYTES:
                break
            found.append(plain_event(event))
            last = event.position
        return as_json({"events": found, "next": last})

    return page
