"""One request to the reviewer's page: who asks, what was sent, and how the answer leaves.

Everything that must hold for every page is here, once: a session, a token on every form, headers
that forbid scripts and requests from elsewhere, and failures told in words.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rapo.gate.events import Region
from rapo.gate.gate import Gate
from rapo.gate.service.assets import Assets
from rapo.gate.service.body import RefusedError, read_body
from rapo.gate.service.logs import CALLER, LOGGER
from rapo.gate.service.numerals import FILTERS
from rapo.gate.service.sessions import Session, Sessions

COOKIE = "rapo_gate_session"
BODY_SECONDS = 10.0
MOST_FIELDS = 1000
"""Fields of one form: a page of the queue has 200 boxes."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TITLES = {403: "Not allowed", 404: "Not found", 422: "This cannot be done", 503: "Out of reach"}

Fields = dict[str, list[str]]


@dataclass(slots=True)
class Visit:
    """A request of somebody who is logged in."""

    request: Request
    session: Session
    fields: Fields = field(default_factory=dict)
    """What the form or the address said."""

    def one(self, name: str, default: str = "") -> str:
        """A field's value, without the spaces around it."""
        return self.fields.get(name, [default])[0].strip()

    def exact(self, name: str) -> str:
        """A field's value as it is: a region's name may begin with a space."""
        return self.fields.get(name, [""])[0]

    def region(self) -> Region:
        """The region that `name` (a string) or `number` (an integer) says.

        Raises:
            ValueError: neither says one.
        """
        if "number" in self.fields:
            word = self.one("number")
            if not re.fullmatch(r"-?\d{1,19}", word):
                raise ValueError(f"a region's number must be a whole number, got {word!r:.60}")
            return int(word)
        name = self.exact("name")
        if not name:
            raise ValueError("no region was named")
        return name


Handler = Callable[[Visit], Response]


class Desk:
    """What all pages share: the gate, the sessions, the templates."""

    def __init__(self, gate: Gate, sessions: Sessions, assets: Assets) -> None:
        self.gate, self.sessions, self.assets = gate, sessions, assets
        self._pages = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._pages.filters.update(FILTERS)
        self._pages.globals["asset"] = assets.address

    def render(self, visit: Visit, template: str, status: int = 200, **values: Any) -> Response:
        """A page for somebody who is logged in."""
        frame = {
            "session": visit.session,
            "notice": visit.session.take_notice() if status == 200 else None,
            "state": self.gate.read(lambda s: {"mode": s.mode, "percent": s.percent}),
            "waiting": self.gate.read(lambda s: len(s.review)),
            "here": visit.request.url.path,
        }
        return self.bare(template, status, **{**frame, **values})

    def bare(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one, for anybody."""
        return HTMLResponse(self._pages.get_template(template).render(**values), status, HEADERS)

    def page(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that only those with a session reach, and forms only with its token."""

        async def endpoint(request: Request) -> Response:
            session = self.sessions.find(request.cookies.get(COOKIE, ""))
            if session is None:
                return _to_login(request)
            request.scope[CALLER] = session.name
            visit = Visit(request, session)
            try:
                visit.fields = await fields_of(request)
                if request.method == "POST" and not session.owns(visit.one("csrf")):
                    raise RefusedError(403, "this form is not of your session; load the page again")
                # Pages read the fields and the log: the loop must not wait for that.
                return await run_in_threadpool(handler, visit)
            except Exception as error:
                return self._failure(visit, error)

        return endpoint

    def _failure(self, visit: Visit, error: Exception) -> Response:
        match error:
            case RefusedError():
                status, words = error.status, error.words
            case LookupError() if type(error) is LookupError:
                status, words = 404, str(error)
            case ValueError():
                status, words = 422, str(error)
            case OSError():  # a store that failed; what it says may hold paths and addresses
                LOGGER.error("store", exc_info=error)
                status, words = 503, "the log cannot be read or written now; nothing was changed"
            case _:
                raise error
        title = _TITLES.get(status, "This cannot be done")
        return self.render(visit, "error.html", status, title=title, words=words)


async def fields_of(request: Request) -> Fields:
    """The fields of a form, or of the address.

    Raises:
        RefusedError: what was sent is not a form, or has too much in it.
    """
    if request.method != "POST":
        text = request.scope["query_string"].decode("latin-1")
    else:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise RefusedError(415, f"a form was expected, got {kind!r:.80}")
        text = (await read_body(request, BODY_SECONDS)).decode("latin-1")
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError as error:  # too many fields, or bytes that are not UTF-8
        raise RefusedError(422, f"the fields cannot be read: {error}") from None


def redirect(address: str) -> Response:
    """Go there, and read it anew."""
    return RedirectResponse(address, 303, HEADERS)


def local(address: str) -> str:
    """An address within this site; the overview for anything else.

    >>> local("/queue"), local("//elsewhere"), local("https://elsewhere")
    ('/queue', '/', '/')
    """
    ours = re.fullmatch(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*", address)
    return address if ours and not address.startswith("/login") else "/"


def _to_login(request: Request) -> Response:
    if "hx-request" in request.headers:  # a part of a page has no room for a login form
        return Response(None, 401, {**HEADERS, "HX-Redirect": "/login"})
    asked = request.url.path
    if request.method == "GET" and request.url.query:
        asked += f"?{request.url.query}"
    back = asked if request.method == "GET" and asked != "/" else ""
    return redirect(f"/login?next={quote(back)}" if back else "/login")
