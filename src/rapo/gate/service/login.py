"""Logging in and out of the reviewer's page."""

from __future__ import annotations

import secrets
from hmac import compare_digest
from math import ceil

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from rapo.gate.service.body import RefusedError
from rapo.gate.service.keys import Keys
from rapo.gate.service.sessions import SESSION_SECONDS, Attempts, Sessions
from rapo.gate.service.visit import COOKIE, Desk, Visit, fields_of, local, redirect

BEFORE = "rapo_gate_login"
"""Cookie whose value the login form repeats: nobody is logged in by another site's form."""


def add_login(router: APIRouter, desk: Desk, keys: Keys, attempts: Attempts) -> None:
    """Add `/login` and `/logout`."""

    async def show(request: Request) -> Response:
        if desk.sessions.find(request.cookies.get(COOKIE, "")) is not None:
            return redirect("/")
        return form(request, 200, "", request.query_params.get("next", ""))

    def form(request: Request, status: int, problem: str, following: str) -> Response:
        token = secrets.token_urlsafe(32)
        values = {"problem": problem, "token": token, "next": local(following)}
        response = desk.bare("login.html", status, **values)
        set_cookie(request, response, BEFORE, token, 3600)
        return response

    async def enter(request: Request) -> Response:
        address = request.client.host if request.client else "unknown"
        try:
            fields = await fields_of(request)
        except RefusedError as error:
            return form(request, error.status, error.words, "")
        following = fields.get("next", [""])[0]
        known = request.cookies.get(BEFORE, "")
        sent = fields.get("token", [""])[0]
        if not known or not compare_digest(known.encode(), sent.encode()):
            return form(request, 403, "The form was too old. Try again.", following)
        wait = attempts.wait(address)
        if wait > 0:
            words = f"Too many wrong keys. Try again in {ceil(wait)} s."
            response = form(request, 429, words, following)
            response.headers["Retry-After"] = str(ceil(wait))
            return response
        key = fields.get("key", [""])[0].strip()
        scopes, name = keys.scopes(key), keys.name(key)
        if scopes is None or name is None:
            attempts.failed(address)
            return form(request, 401, "This key is not known.", following)
        if "review" not in scopes:
            words = f"This key opens {', '.join(sorted(scopes))}; the page needs review or admin."
            return form(request, 403, words, following)
        response = redirect(local(following))
        session_id = desk.sessions.begin(name, scopes)
        set_cookie(request, response, COOKIE, session_id, int(SESSION_SECONDS))
        response.delete_cookie(BEFORE, path="/")
        return response

    def leave(visit: Visit) -> Response:
        end(desk.sessions, visit.request)
        response = redirect("/login")
        response.delete_cookie(COOKIE, path="/")
        return response

    router.add_route("/login", show, ["GET"], include_in_schema=False)
    router.add_route("/login", enter, ["POST"], include_in_schema=False)
    router.add_route("/logout", desk.page(leave), ["POST"], include_in_schema=False)


def end(sessions: Sessions, request: Request) -> None:
    """End the session of a request."""
    sessions.end(request.cookies.get(COOKIE, ""))


def set_cookie(request: Request, response: Response, name: str, value: str, seconds: int) -> None:
    """A cookie that no script reads and no other site sends."""
    secure = request.url.scheme == "https"  # over plain HTTP a browser would drop it
    response.set_cookie(
        name, value, max_age=seconds, path="/", httponly=True, samesite="strict", secure=secure
    )
