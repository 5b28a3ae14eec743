"""`make_app`: a gate as a web application, its middleware, its log and its metrics.

Every answer carries a request id and headers for browsers, and becomes a line in the log: JSON with
route and client, never with a key. No metric has a region as a label, because the number of regions
is unbounded; `GET /v1/regions?top=N` serves the regions with the largest scars instead.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
from collections.abc import Iterator
from typing import Any, TextIO

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rapo_core.version import VERSION
from rapo_gate.fold.state import State
from rapo_gate.gate import Gate
from rapo_gate.service.api import as_json, make_api
from rapo_gate.service.audits import Audits
from rapo_gate.service.auth import Keys
from rapo_gate.service.guard import CALLER, LOGGER, ROUTE, RefusedError, refusal_of
from rapo_gate.service.pages import make_pages


def make_app(
    gate: Gate,
    keys: Keys,
    *,
    audits: Audits | None = None,
    metrics_need_key: bool = False,
    pages: bool = True,
) -> FastAPI:
    """The service of a gate; it closes neither the gate nor the audits.

    Args:
        gate: the gate to serve.
        keys: keys and their scopes.
        audits: what answers reviewers' questions; by default this process.
        metrics_need_key: ask for a key of scope review at `/metrics`. By default it is open, as
            scrapers expect: its figures name no region, reporter or key.
        pages: serve the reviewer's pages at `/`.
    """
    app = FastAPI(
        title="rapo gate",
        version=VERSION,
        summary="Harm memory in front of a platform.",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere, which our headers forbid
        redoc_url=None,
        redirect_slashes=False,
    )
    metrics = Metrics(gate)
    audits = audits or Audits(gate)
    app.include_router(make_api(gate, keys, metrics, audits, metrics_need_key=metrics_need_key))
    if pages:
        app.include_router(make_pages(gate, keys, audits), include_in_schema=False)
    for kind in (HTTPException, RequestValidationError, ValueError, LookupError, OSError):
        app.add_exception_handler(kind, _failed)
    app.add_middleware(Frame, metrics=metrics)
    return app


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and not isinstance(error, RefusedError):  # the router's
        reason = {
            404: "there is nothing at this path; /openapi.json lists what there is",
            405: f"this path does not take {request.method}; see the Allow header",
        }.get(error.status_code, str(error.detail))
        error = RefusedError(error.status_code, reason, dict(error.headers or {}))
    refusal = refusal_of(error)
    reason = str(refusal.detail).encode("utf-8", "replace").decode()
    return as_json({"error": reason}, refusal.status_code, dict(refusal.headers or {}))


# --- what every request passes through


_SAFE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,100}\Z")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer that does not set them itself. They forbid what no page of ours needs."""
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


_FAULT = Response(
    b'{"error":"a fault of the gate; its log says more"}', 500, media_type="application/json"
)


class Frame:
    """ASGI middleware around the whole service: headers, metrics, log, an answer to any fault."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        request_id = _request_id(scope)
        status = 0

        async def framed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                own = {name.lower() for name, _ in headers}
                headers += [pair for pair in _HEADERS if pair[0] not in own]
                headers.append((b"x-request-id", request_id))
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._app(scope, receive, framed)
        except Exception as error:
            LOGGER.error("fault", exc_info=error)
            if not status:
                await _FAULT(scope, receive, framed)
        finally:
            seconds = time.perf_counter() - begun
            path = _template(scope)
            self._metrics.answered(path, status, seconds)
            level = logging.ERROR if status >= 500 else logging.INFO
            if LOGGER.isEnabledFor(level):
                _log(level, scope, path, status, seconds, request_id)


def _request_id(scope: Scope) -> bytes:
    """The caller's id of a request if it is safe to log, else a new id."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SAFE_ID.match(value):
            return bytes(value)
    return secrets.token_hex(8).encode()


def _template(scope: Scope) -> str:
    """The route of a request; the path could name a region."""
    route: Any = scope.get("route")
    return str(scope.get(ROUTE) or getattr(route, "path_format", "unmatched"))


def _log(
    level: int, scope: Scope, path: str, status: int, seconds: float, request_id: bytes
) -> None:
    fields = {
        "method": scope["method"],
        "route": path,
        "client": client[0] if (client := scope.get("client")) else None,
        "status": status,
        "ms": round(1000 * seconds, 3),
        "key": scope.get(CALLER),
        "request_id": request_id.decode(),
    }
    LOGGER.log(level, "request", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """A log record as one line of JSON: time, level, event, and the fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "at": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to(stream: TextIO | None = None, level: int = logging.INFO) -> logging.Handler:
    """Send the service's log to a stream, stderr by default; return the handler."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
    return handler


# --- metrics


_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Counts of one service, in a registry of its own: a process may hold several services."""

    def __init__(self, gate: Gate) -> None:
        self.registry = CollectorRegistry()
        self._decisions = Counter(
            "rapo_gate_decisions", "Decisions answered, by mode.", ["mode"], registry=self.registry
        )
        self._reports = Counter(
            "rapo_gate_reports", "Reports answered, by status.", ["status"], registry=self.registry
        )
        self._refused = Counter(
            "rapo_gate_refused", "Requests refused or failed, by status code.", ["code"],
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "rapo_gate_request_seconds", "Time from a request's head to its answer.", ["path"],
            registry=self.registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._by_path: dict[str, Histogram] = {}
        self.registry.register(_Gauges(gate))

    def decided(self, mode: str) -> None:
        """Count a decision."""
        self._decisions.labels(mode).inc()

    def reported(self, status: str, count: int) -> None:
        """Count reports."""
        self._reports.labels(status).inc(count)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request; `path` is its route."""
        timer = self._by_path.get(path)
        if timer is None:
            timer = self._by_path[path] = self._seconds.labels(path)
        timer.observe(seconds)
        if status >= 400:
            self._refused.labels(str(status)).inc()

    def page(self) -> bytes:
        """The text for a scraper; takes the gate's lock for a moment."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    """Figures of the gate, which are read when a scraper asks."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def describe(self) -> list[Metric]:
        """No metrics: Prometheus then does not read the gate to learn their names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Each figure as a gauge."""
        health = self._gate.health()
        values = {
            "up": ("1 while answers are fresh.", float(health["status"] in ("ok", "ahead"))),
            "clock_ahead_seconds": (
                "How far the last tick is in the future.",
                health["seconds_ahead"],
            ),
            "revision": ("State that decisions are made from.", health["revision"]),
            "position": ("Events that the state holds.", health["position"]),
            "lag_events": ("Events of the log that the state lacks.", health["behind"]),
            "tick": ("Last tick that was folded.", health["tick"]),
            "writer_queue": ("Jobs that wait for the next commit.", health["waiting"]),
            **self._gate.read(_figures),
        }
        for name, (about, value) in values.items():
            yield GaugeMetricFamily(f"rapo_gate_{name}", about, value=float(value))


def _figures(state: State) -> dict[str, tuple[str, float]]:
    """Name, meaning and value of figures of the last tick that closed."""
    course = state.traffic.course
    last = course[-1] if course else state.traffic.now
    decisions, regions = max(last.decisions, 1), max(len(state.regions), 1)
    return {
        "regions": ("Regions that decisions have had.", len(state.regions)),
        "scar_mass": ("Sum of H over regions.", float(state.fold.H.sum())),
        "gating_tv": ("Mean total variation of a decision, last tick.", last.tv / decisions),
        "floor_share": ("Share of regions at psi_min, last tick.", last.floored / regions),
        "saturated_share": ("Share of decisions without a way out.", last.saturated / decisions),
        "unknown": ("Candidates of regions not known before, last tick.", last.unknown),
        "review_queue": ("Reports that wait for a reviewer.", len(state.review)),
        "bands_left": ("Bands that the last tick left.", len(state.bands_left)),
    }
