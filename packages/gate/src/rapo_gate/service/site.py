"""What all pages of the reviewer's site share: sessions, login, forms, templates, static files.

Every page needs a session, every form needs the token of its session, and every failure becomes a
page that says what failed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import APIRouter
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rapo_gate.events import Region
from rapo_gate.fields import FormData
from rapo_gate.format import FILTERS, TERMS
from rapo_gate.gate import Gate
from rapo_gate.service.audits import Audits
from rapo_gate.service.auth import SESSION_SECONDS, FailedLogins, Keys, LoginSession, Sessions
from rapo_gate.service.guard import CALLER, ROUTE, RefusedError, read_body, refusal_of

COOKIE = "rapo_gate_session"
MOST_FIELDS = 1000
"""FormData of one form: a page of the queue has 200 boxes."""
_TITLES = {403: "Not allowed", 404: "Not found", 410: "Dropped", 503: "Out of reach"}

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_YEAR = "public, max-age=31536000, immutable"
BEFORE = "rapo_gate_login"
"""Cookie whose value the login form repeats, so that another site's form cannot log anybody in."""


class Assets:
    """The files of the folder `static`, read once."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files: dict[str, tuple[bytes, str, str]] = {}
        for file in sorted(folder.rglob("*")):
            if file.suffix in _TYPES:
                data = file.read_bytes()
                name = file.relative_to(folder).as_posix()
                self._files[name] = (data, _TYPES[file.suffix], sha256(data).hexdigest()[:16])

    def address(self, name: str) -> str:
        """Address of a file; it changes with the file's content."""
        return f"/static/{name}?v={self._files[name][2]}"

    async def serve(self, request: Request) -> Response:
        """Answer a request for a file."""
        file = self._files.get(str(request.path_params["name"]))
        if file is None:
            return Response("there is no such file\n", 404, media_type="text/plain")
        data, kind, version = file
        tag = f'"{version}"'
        lasting = _YEAR if request.query_params.get("v") == version else "no-cache"
        headers = {"Cache-Control": lasting, "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(None, 304, headers)
        return Response(data, 200, headers, kind)


@dataclass(slots=True)
class PageRequest:
    """A request of somebody who is logged in."""

    http: Request
    session: LoginSession
    fields: FormData = field(default_factory=FormData)
    """The values that the form or the address sent."""


Handler = Callable[[PageRequest], Response]
Endpoint = Callable[[Request], Awaitable[Response]]


class Site:
    """The gate, the audits, the sessions and the templates that all pages share."""

    def __init__(self, gate: Gate, audits: Audits) -> None:
        self.gate, self.audits = gate, audits
        self.sessions, self.assets = Sessions(), Assets()
        self._pages = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._pages.filters.update(FILTERS)
        self._pages.globals["asset"] = self.assets.address
        self._pages.globals["label_of"] = self._label_of
        self._pages.globals["terms"] = TERMS

    def render(
        self, request: PageRequest, template: str, status: int = 200, **values: Any
    ) -> Response:
        """A page for somebody who is logged in."""
        frame = {
            "session": request.session,
            "notice": request.session.take_notice() if status == 200 else None,
            "state": self.gate.read(lambda s: {"mode": s.mode, "percent": s.percent}),
            "waiting": self.gate.read(lambda s: len(s.review)),
            "here": request.http.url.path,
        }
        return self.bare(template, status, **{**frame, **values})

    def _label_of(self, region: Region) -> dict[str, str]:
        """The label of a region. It is read without the lock: a page need not wait for it."""
        state = self.gate.engine.state
        return state.labels.get(state.regions.number(region), {})

    def bare(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one, for anybody."""
        return HTMLResponse(self._pages.get_template(template).render(**values), status)

    def page(self, handler: Handler) -> Endpoint:
        """An endpoint that needs a session, and for a form also the token of that session."""

        async def endpoint(http: Request) -> Response:
            session = self.sessions.find(http.cookies.get(COOKIE, ""))
            if session is None:
                return _to_login(http)
            http.scope[CALLER] = session.name
            request = PageRequest(http, session)
            try:
                request.fields = await fields_of(http)
                if http.method == "POST" and not session.owns(request.fields.one("csrf")):
                    raise RefusedError(403, "this form is of another session; load the page again")
                # Pages read the fields and the log: the event loop must not wait for that.
                return await run_in_threadpool(handler, request)
            except Exception as error:
                return self._failure(request, error)

        return endpoint

    def _failure(self, request: PageRequest, error: Exception) -> Response:
        refusal = refusal_of(error)
        status = refusal.status_code
        title = _TITLES.get(status, "This cannot be done")
        return self.render(request, "error.html", status, title=title, reason=refusal.detail)


def add_page(router: APIRouter, path: str, endpoint: Endpoint, method: str) -> None:
    """Add a page, and keep its route for the log: a path may name a region, a route does not."""

    async def routed(request: Request) -> Response:
        request.scope[ROUTE] = path
        return await endpoint(request)

    router.add_route(path, routed, [method], include_in_schema=False)


async def fields_of(request: Request) -> FormData:
    """The fields of a form, or of the query of the address.

    Raises:
        RefusedError: the body is not a form, or has too many fields.
    """
    if request.method != "POST":
        text = request.scope["query_string"].decode("latin-1")
    else:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise RefusedError(415, f"a form was expected, got {kind!r:.80}")
        text = (await read_body(request)).decode("latin-1")
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
        return FormData(fields)
    except ValueError as error:  # too many fields, or bytes that are not UTF-8
        raise RefusedError(422, f"the fields cannot be read: {error}") from None


def redirect(address: str) -> Response:
    """Send the browser to another page of the site."""
    return RedirectResponse(address, 303)


def local(address: str) -> str:
    """An address within this site; the overview for anything else.

    >>> local("/queue"), local("//elsewhere"), local("https://elsewhere")
    ('/queue', '/', '/')
    """
    inside = re.fullmatch(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*", address)
    return address if inside and not address.startswith("/login") else "/"


def _to_login(request: Request) -> Response:
    if "hx-request" in request.headers:  # a part of a page has no room for a login form
        return Response(None, 401, {"HX-Redirect": "/login"})
    page = request.url.path
    if request.method == "GET" and request.url.query:
        page += f"?{request.url.query}"
    back = page if request.method == "GET" and page != "/" else ""
    return redirect(f"/login?next={quote(back)}" if back else "/login")


# --- logging in and out


def add_login(router: APIRouter, site: Site, keys: Keys, failed_logins: FailedLogins) -> None:
    """Add `/login` and `/logout`."""

    async def show(request: Request) -> Response:
        if site.sessions.find(request.cookies.get(COOKIE, "")) is not None:
            return redirect("/")
        return form(request, 200, "", request.query_params.get("next", ""))

    def form(request: Request, status: int, problem: str, following: str) -> Response:
        token = secrets.token_urlsafe(32)
        values = {"problem": problem, "token": token, "next": local(following)}
        response = site.bare("login.html", status, **values)
        set_cookie(request, response, BEFORE, token, 3600)
        return response

    async def enter(request: Request) -> Response:
        try:
            fields = await fields_of(request)
        except RefusedError as error:
            return form(request, error.status_code, str(error.detail), "")
        following = fields.exact("next")
        token, sent = request.cookies.get(BEFORE, ""), fields.exact("token")
        if not token or not compare_digest(token.encode(), sent.encode()):
            return form(request, 403, "The form was too old. Try again.", following)
        caller = keys.caller(fields.one("key"))
        if caller is None:
            return wrong_key(request, following)
        request.scope[CALLER] = caller.name
        if not caller.may("review"):
            opens = ", ".join(sorted(caller.scopes))
            problem = f"This key has the scope {opens}; the page needs review or admin."
            return form(request, 403, problem, following)
        response = redirect(local(following))
        session_id = site.sessions.begin(caller.name, caller.scopes)
        set_cookie(request, response, COOKIE, session_id, int(SESSION_SECONDS))
        response.delete_cookie(BEFORE, path="/")
        return response

    def wrong_key(request: Request, following: str) -> Response:
        address = request.client.host if request.client else "unknown"
        wait = failed_logins.wait(address)
        if wait <= 0:
            failed_logins.failed(address)
            return form(request, 401, "This key is not known.", following)
        problem = f"Too many wrong keys. Try again in {ceil(wait)} s; a right key is always taken."
        response = form(request, 429, problem, following)
        response.headers["Retry-After"] = str(ceil(wait))
        return response

    def leave(request: PageRequest) -> Response:
        end(site.sessions, request.http)
        response = redirect("/login")
        response.delete_cookie(COOKIE, path="/")
        return response

    add_page(router, "/login", show, "GET")
    add_page(router, "/login", enter, "POST")
    add_page(router, "/logout", site.page(leave), "POST")


def end(sessions: Sessions, request: Request) -> None:
    """End the session of a request."""
    sessions.end(request.cookies.get(COOKIE, ""))


def set_cookie(request: Request, response: Response, name: str, value: str, seconds: int) -> None:
    """Set a cookie that no script can read and no other site can send."""
    secure = request.url.scheme == "https"  # over plain HTTP a browser would drop it
    response.set_cookie(
        name, value, max_age=seconds, path="/", httponly=True, samesite="strict", secure=secure
    )
