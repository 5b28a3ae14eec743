"""The server of the page: this machine alone, one token, strict headers, one job at a time."""

from __future__ import annotations

import hmac
import json
import re
import secrets
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rapo.show.lab.api import Desk
from rapo.show.lab.latest_job import SupersededError
from rapo.show.lab.request import ControlError
from rapo.show.lab.sources import MOST_BYTES
from rapo.show.lab.wire import as_json

MOST_WORDS = 100_000
"""Bytes of a request that is not an upload."""
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
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
_NAME = re.compile(r"[\w.-]{1,80}")


class Lab:
    """The application of one page.

    Args:
        desk: who answers.
        token: without which nothing is answered; by default drawn.
    """

    def __init__(self, desk: Desk, token: str | None = None) -> None:
        self.desk = desk
        self.token = token or secrets.token_urlsafe(24)
        self._folder = tempfile.TemporaryDirectory(prefix="rapo-lab-")
        self.uploads = Path(self._folder.name)
        self._static = files("rapo.show.lab") / "static"
        answers = {
            "start": desk.start, "place": desk.place, "numbers": desk.numbers, "film": desk.film,
            "fit": desk.fit, "code": desk.code, "csv": desk.csv, "gif": desk.gif,
            "progress": desk.progress, "stop": desk.stop,
        }  # fmt: skip
        routes = [Route("/", self._page), Route("/static/{name}", self._file)]
        routes += [
            Route(f"/api/{name}", self._answered(work), methods=["POST"])
            for name, work in answers.items()
        ]
        routes.append(Route("/api/upload", self._upload, methods=["PUT"]))
        self.app = Starlette(routes=routes)

    def close(self) -> None:
        """End what runs, and forget what was uploaded."""
        self.desk.close()
        self._folder.cleanup()

    async def _page(self, request: Request) -> Response:
        given = request.query_params.get("token")
        if given is not None:  # the address stays free of it: nobody copies it by mistake
            if not self._same(given):
                return _words(NO_TOKEN, 403)
            reply: Response = RedirectResponse("/", 303, HEADERS)
            reply.set_cookie(
                _cookie(request), self.token, httponly=True, samesite="strict", path="/"
            )
            return reply
        if not self._known(request):
            return _words(NO_TOKEN, 403)
        return self._read("index.html")

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if not self._known(request):
            return _words(NO_TOKEN, 403)
        if not _NAME.fullmatch(name) or not (self._static / name).is_file():
            return _words(f"there is no {name!r:.80}", 404)
        return self._read(name)

    def _read(self, name: str) -> Response:
        kind = TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        return Response((self._static / name).read_bytes(), media_type=kind, headers=HEADERS)

    def _answered(self, work: Callable[[Any], tuple[bytes, str]]) -> Any:
        async def answer(request: Request) -> Response:
            refused = self._refused(request)
            if refused is not None:
                return refused
            body = await _body(request, MOST_WORDS)
            if body is None:
                return _json({"error": f"a request may have {MOST_WORDS:,} bytes"}, 413)
            try:
                given = json.loads(body)
            except ValueError:
                return _json({"error": "the request is not JSON"}, 400)
            return await run_in_threadpool(_safely, lambda: work(given))

        return answer

    async def _upload(self, request: Request) -> Response:
        refused = self._refused(request)
        if refused is not None:
            return refused
        name = Path(request.query_params.get("name", "")).name
        if not _NAME.fullmatch(name) or name.startswith("."):
            return _json({"control": "upload", "error": f"a file needs a plain name, got {name!r}"})
        body = await _body(request, MOST_BYTES)
        if body is None:
            words = f"{name} is too large; the lab takes files of up to {MOST_BYTES:,} bytes"
            return _json({"control": "upload", "error": words}, 413)
        for old in self.uploads.iterdir():  # one user, one graph
            old.unlink()
        path = self.uploads / name
        path.write_bytes(body)
        return _json({"path": str(path)}, 200)

    def _refused(self, request: Request) -> Response | None:
        """Why a request is not answered, if it is not."""
        if not self._known(request):
            return _json({"error": NO_TOKEN}, 403)
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _json({"error": "only the page itself may ask"}, 403)
        return None

    def _known(self, request: Request) -> bool:
        """Whether the request has the token, and was sent to this machine by name.

        Another site whose name was made to lead here would send its own name as the host.
        """
        host = request.headers.get("host", "").rpartition(":")[0]
        given = request.cookies.get(_cookie(request), "")
        return host in ("127.0.0.1", "localhost") and self._same(given)

    def _same(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _cookie(request: Request) -> str:
    """Cookies do not tell ports apart, and two labs may run."""
    return f"rapo-lab-{request.url.port}"


async def _body(request: Request, most: int) -> bytes | None:
    """The body, or None if it is longer than that."""
    pieces, size = [], 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                return None
            pieces.append(piece)
    except ClientDisconnect:
        return b""
    return b"".join(pieces)


def _safely(work: Callable[[], tuple[bytes, str]]) -> Response:
    """The answer, or in one line why there is none; nothing has changed then."""
    try:
        body, kind = work()
    except SupersededError:
        return _json({"superseded": True}, 409)
    except ControlError as error:
        return _json({"control": error.control, "error": str(error)})
    except ValueError as error:
        return _json({"error": str(error)})
    except MemoryError:
        return _json({"error": "there is not enough memory for these sizes"})
    return Response(body, media_type=kind, headers=HEADERS)


def _json(value: dict[str, Any], status: int = 422) -> Response:
    return Response(as_json(value), status, media_type="application/json", headers=HEADERS)


def _words(text: str, status: int) -> Response:
    return Response(text + "\n", status, media_type="text/plain", headers=HEADERS)
