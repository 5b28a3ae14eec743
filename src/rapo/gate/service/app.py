"""`make_app`: a gate as a web application."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rapo.core.version import VERSION
from rapo.gate.decide import ConflictError
from rapo.gate.gate import Gate
from rapo.gate.service.api import as_json, make_api
from rapo.gate.service.audits import Audits
from rapo.gate.service.auth import Keys
from rapo.gate.service.frame import LOGGER, Frame
from rapo.gate.service.metrics import Metrics
from rapo.gate.service.pages import make_pages
from rapo.gate.service.strict import RefusedError, wrong


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
        gate: what is served.
        keys: who may do what.
        audits: who answers reviewers' questions; by default this process.
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
    audits = audits or Audits(gate)
    app.include_router(make_api(gate, keys, metrics, audits, metrics_need_key=metrics_need_key))
    if pages:
        app.include_router(make_pages(gate, keys, audits), include_in_schema=False)
    for kind, handler in (
        (HTTPException, _refused),
        (RequestValidationError, _invalid),
        (ConflictError, _conflict),
        (ValueError, _invalid),
        (LookupError, _missing),
        (TimeoutError, _late),
        (OSError, _out_of_reach),
    ):
        app.add_exception_handler(kind, handler)
    app.add_middleware(Frame, metrics=metrics)
    return app


# --- answers to requests that failed; nothing was changed by them


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = str(error.detail)
    if not isinstance(error, RefusedError):  # 404 and 405 of the router, in the form of all errors
        words = {
            404: "there is nothing at this path; /openapi.json lists what there is",
            405: f"this path does not take {request.method}; see the Allow header",
        }.get(error.status_code, words)
    return as_json({"error": words}, error.status_code, dict(error.headers or {}))


async def _invalid(request: Request, error: Exception) -> Response:
    words = wrong(error) if isinstance(error, RequestValidationError) else str(error)
    return as_json({"error": words.encode("utf-8", "replace").decode()}, 422)


async def _conflict(request: Request, error: Exception) -> Response:
    return as_json({"error": str(error)}, 409)


async def _missing(request: Request, error: Exception) -> Response:
    if type(error) is not LookupError:  # a KeyError or an IndexError is a fault of ours
        raise error
    return as_json({"error": str(error)}, 404)


async def _late(request: Request, error: Exception) -> Response:
    words = "no answer came in time; it may still be done: send it again"
    return as_json({"error": words}, 503, {"Retry-After": "5"})


async def _out_of_reach(request: Request, error: Exception) -> Response:
    LOGGER.error("store", exc_info=error)  # what it says may hold paths and addresses
    words = "the log cannot be written or read now; nothing was acknowledged"
    return as_json({"error": words}, 503, {"Retry-After": "1"})
