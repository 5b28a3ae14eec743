"""The server of the page: for this machine alone, with one token and strict headers."""

from __future__ import annotations

import hmac
import json
import re
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rapo.html.page import render
from rapo.show.lab.api import Api, Reply
from rapo.show.lab.latest_job import SupersededError
from rapo.show.lab.request import ControlError
from rapo.show.lab.sources import MOST_BYTES
from rapo.show.lab.wire import as_json

STATIC = Path(str(files("rapo.show.lab"))) / "static"
MOST_REQUEST = 100_000
"""Bytes of a request that is not an upload."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_TOKEN = (
    "This page needs the token of the address that rapo lab printed in the terminal: "
    "copy that whole address."
)
_NAME = re.compile(r"[\w-][\w.-]{0,79}")


class Lab:
    """The application of one page.

    Args:
        api: what the page can ask for.
        token: a request without it is refused; default drawn.
    """

    def __init__(self, api: Api, token: str | None = None) -> None:
        self.api = api
        self.token = token or secrets.token_urlsafe(24)
        self._folder = tempfile.TemporaryDirectory(prefix="rapo-lab-")
        self.uploads = Path(self._folder.name)
        methods = {name: getattr(api, name) for name in Api.ROUTES}
        routes = [Route(f"/api/{n}", _endpoint(m), methods=["POST"]) for n, m in methods.items()]
        self.app = Starlette(
            routes=[
                *routes,
                Route("/", lambda request: HTMLResponse(render("lab.html", title="rapo lab"))),
                Route("/api/upload", self._upload, methods=["PUT"]),
                Mount("/static", StaticFiles(directory=STATIC)),
            ],
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=self._guarded)],
        )

    def close(self) -> None:
        """End the job that runs and delete what was uploaded."""
        self.api.close()
        self._folder.cleanup()

    async def _guarded(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Answer a request that may be answered, with strict headers."""
        reply = self._refused_or_redirected(request) or await call_next(request)
        reply.headers.update(HEADERS)
        return reply

    def _refused_or_redirected(self, request: Request) -> Response | None:
        """The answer to a request without the token, or with the token in its address; or None.

        The token moves from the address into a cookie, so that nobody copies it by mistake. Another
        site whose name was made to lead to this machine would send its own name as the host.
        """
        cookie = f"rapo-lab-{request.url.port}"  # cookies do not tell the ports of two labs apart
        token = request.query_params.get("token") if request.url.path == "/" else None
        local = request.headers.get("host", "").rpartition(":")[0] in ("127.0.0.1", "localhost")
        if not local or not hmac.compare_digest(
            (request.cookies.get(cookie, "") if token is None else token).encode(),
            self.token.encode(),
        ):
            return _refused(request, NO_TOKEN)
        if token is not None:
            reply = RedirectResponse("/", 303)
            reply.set_cookie(cookie, token, httponly=True, samesite="strict", path="/")
            return reply
        site = request.headers.get("sec-fetch-site", "same-origin")
        if request.method != "GET" and site != "same-origin":
            return _refused(request, "only the page itself may ask")
        return None

    async def _upload(self, request: Request) -> Response:
        name = Path(request.query_params.get("name", "")).name
        if not _NAME.fullmatch(name):
            return _json({"control": "upload", "error": f"a file needs a plain name, got {name!r}"})
        body = await _body(request, MOST_BYTES)
        if body is None:
            message = f"{name} is too large; the lab takes files of up to {MOST_BYTES:,} bytes"
            return _json({"control": "upload", "error": message}, 413)
        for old in self.uploads.iterdir():  # one user, one graph
            old.unlink()
        path = self.uploads / name
        path.write_bytes(body)
        return _json({"path": str(path)}, 200)


def _endpoint(method: Callable[[Any], Reply]) -> Callable[[Request], Awaitable[Response]]:
    """A route that hands the JSON of a request to a method of the API."""

    async def endpoint(request: Request) -> Response:
        body = await _body(request, MOST_REQUEST)
        if body is None:
            return _json({"error": f"a request may have {MOST_REQUEST:,} bytes"}, 413)
        try:
            content = json.loads(body)
        except ValueError:
            return _json({"error": "the request is not JSON"}, 400)
        return await run_in_threadpool(_reply, method, content)

    return endpoint


async def _body(request: Request, most: int) -> bytes | None:
    """The body of a request, or None if it has more than `most` bytes."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                return None
    except ClientDisconnect:
        return b""
    return bytes(body)


def _reply(method: Callable[[Any], Reply], content: Any) -> Response:
    """The answer to a request, or one line that says why there is none; nothing changes then."""
    try:
        body, kind = method(content)
    except SupersededError:
        return _json({"superseded": True}, 409)
    except ControlError as error:
        return _json({"control": error.control, "error": str(error)})
    except ValueError as error:
        return _json({"error": str(error)})
    except MemoryError:
        return _json({"error": "there is not enough memory for these sizes"})
    return Response(body, media_type=kind)


def _refused(request: Request, reason: str) -> Response:
    if request.url.path.startswith("/api/"):
        return _json({"error": reason}, 403)
    return PlainTextResponse(reason + "\n", 403)


def _json(value: dict[str, Any], status: int = 422) -> Response:
    return Response(as_json(value), status, media_type="application/json")
