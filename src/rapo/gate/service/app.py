"""`make_app`: a gate as a web application."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rapo.core.version import VERSION
from rapo.gate.gate import Gate
from rapo.gate.service import openapi
from rapo.gate.service.frame import Frame
from rapo.gate.service.keys import Keys
from rapo.gate.service.metrics import Metrics
from rapo.gate.service.operation import Operation, as_json, endpoint
from rapo.gate.service.pages import make_pages
from rapo.gate.service.people import people_operations
from rapo.gate.service.platform import platform_operations
from rapo.gate.service.reads import read_operations


def make_app(
    gate: Gate, keys: Keys, *, metrics_need_key: bool = False, pages: bool = True
) -> FastAPI:
    """The service of a gate; it does not close the gate.

    Args:
        gate: what is served.
        keys: who may do what.
        metrics_need_key: ask for a key of scope review at `/metrics`. By default it is open, as
            scrapers expect: its figures name no region, reporter or key.
        pages: serve the reviewer's pages at `/`.
    """
    app = FastAPI(
        title="rapo gate",
        version=VERSION,
        summary="Harm memory in front of a platform.",
        docs_url=None,  # its pages load scripts from elsewhere, which ours forbid
        redoc_url=None,
        redirect_slashes=False,
    )
    metrics = Metrics(gate)
    for operation in (
        *platform_operations(gate, metrics),
        *people_operations(gate),
        *read_operations(gate, metrics, "review" if metrics_need_key else None),
    ):
        _add(app, operation, keys)
    if pages:
        app.include_router(make_pages(gate, keys), include_in_schema=False)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(Frame, metrics=metrics)

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title, version=app.version, summary=app.summary, routes=app.routes
            )
            app.openapi_schema = openapi.completed(made)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]
    return app


def _add(app: FastAPI, operation: Operation, keys: Keys) -> None:
    app.add_api_route(
        operation.path,
        endpoint(operation, keys),
        methods=[operation.method],
        summary=operation.summary,
        operation_id=_name(operation),
        response_model=None,
        response_class=PlainTextResponse if operation.answer == "text" else JSONResponse,
        responses=openapi.responses(operation),
        openapi_extra=openapi.extra(operation),
    )


def _name(operation: Operation) -> str:
    """`POST /v1/decisions` as `post_decisions`."""
    words = operation.path.replace(":path", "").replace("/v1", "").replace("{", "").replace("}", "")
    return f"{operation.method.lower()}{words.replace('/', '_')}"


async def _http_error(request: Request, error: Exception) -> Response:
    """404 and 405 of the router, in the form of all errors."""
    assert isinstance(error, HTTPException)
    words = {
        404: "there is nothing at this path; /openapi.json lists what there is",
        405: f"this path does not take {request.method}; see the Allow header",
    }.get(error.status_code, str(error.detail))
    return as_json({"error": words}, error.status_code, dict(error.headers or {}))
