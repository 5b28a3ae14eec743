"""What every request passes through: an id, counts, headers that browsers heed, and a log line.

Logs are JSON, one line per request, with its route and its client, never with a key.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
from typing import Any, TextIO

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rapo.gate.service.metrics import Metrics
from rapo.gate.service.strict import CALLER

LOGGER = logging.getLogger("rapo.gate.service")
ROUTE = "rapo.gate.route"
"""Where a request's scope holds its route, if FastAPI does not."""

_SAFE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,100}\Z")
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_POLICY = b"content-security-policy"
_API_POLICY = b"default-src 'none'; frame-ancestors 'none'"
_PAGE_POLICY = (
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)


_FAULT = Response(
    b'{"error":"a fault of the gate; its log tells more"}', 500, media_type="application/json"
)


class Frame:
    """ASGI middleware around the whole service; a header that an answer has already is kept."""

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
                there = {name.lower() for name, _ in headers}
                headers += [pair for pair in _ALWAYS if pair[0] not in there]
                if _POLICY not in there:
                    html = any(n.lower() == b"content-type" and b"html" in v for n, v in headers)
                    headers.append((_POLICY, _PAGE_POLICY if html else _API_POLICY))
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
    """The caller's id of a request if it can be logged as it is, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SAFE_ID.match(value):
            return bytes(value)
    return secrets.token_hex(8).encode()


def _template(scope: Scope) -> str:
    """The route, not the path: paths name regions and have no end."""
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


def silence_access_log() -> None:
    """The server's own line per request would say the same without the key's name."""
    logging.getLogger("uvicorn.access").disabled = True


class JsonLines(logging.Formatter):
    """A record as one line of JSON: when, how bad, what, and the fields it carries."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
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
    """Send the service's log to a stream, stderr by default; the handler, to take it off again."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
    return handler
