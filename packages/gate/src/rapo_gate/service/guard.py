"""Requests of the API: the key first, then the body within limits, parsed strictly."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import params
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from rapo_core.checks import UserError
from rapo_gate.decide import ConflictError
from rapo_gate.events import DroppedError
from rapo_gate.service.auth import Caller, Keys

LARGEST_BODY = 1 << 20
"""Bytes of a body; more is refused with 413."""
BODY_SECONDS = 10.0
"""Time that a body may take to arrive."""
ANSWER_SECONDS = 30.0
"""Time after which a caller is told to try again instead of being left to wait."""
SLOW = {"/v1/verify": 600.0}
"""Paths that may take longer."""
LOGGER = logging.getLogger("rapo_gate.service")
ROUTE = "rapo.gate.route"
"""Where a request's scope holds its route, if FastAPI does not."""
CALLER = "rapo.gate.caller"
"""Where a request's scope holds the name of its key."""
_MOST_DRAINED = 16 << 20
"""Bytes of a body too large that are read and thrown away, so that its sender, who may not listen
before everything is sent, gets the answer instead of a broken connection."""


class RefusedError(HTTPException):
    """A request that is answered with an error, whatever the gate would say to it."""

    def __init__(self, status: int, words: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, words, headers or {})


def refusal_of(error: Exception) -> RefusedError:
    """What a request that failed is answered with; raises the error again if it is our fault."""
    match error:
        case RefusedError():
            return error
        case RequestValidationError():
            return RefusedError(422, wrong(error))
        case ConflictError():
            return RefusedError(409, str(error))
        case TimeoutError():
            words = "no answer came in time; it may still be done: try again"
            return RefusedError(503, words, {"Retry-After": "5"})
        case ValueError():
            return RefusedError(422, str(error))
        case OSError():
            LOGGER.error("store", exc_info=error)  # what it says may hold paths and addresses
            words = "the log cannot be written or read now; nothing was acknowledged"
            return RefusedError(503, words, {"Retry-After": "1"})
        case DroppedError():
            return RefusedError(410, str(error))
        case LookupError() if type(error) is LookupError:  # a KeyError is a fault of ours
            return RefusedError(404, str(error))
    raise error


async def read_body(request: Request, seconds: float = BODY_SECONDS) -> bytes:
    """The body of a request, of at most `LARGEST_BODY` bytes and sent within `seconds`.

    Bytes are counted as they come: a chunked body has no Content-Length, and one may lie.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > LARGEST_BODY and "expect" in request.headers:
        raise _too_large()  # the sender waits for a word before it sends: no
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                size += len(piece)
                if size <= LARGEST_BODY:
                    pieces.append(piece)
                elif size > _MOST_DRAINED:
                    break
                else:
                    pieces.clear()
    except TimeoutError:
        words = f"the body did not arrive within {seconds:g} s"
        raise RefusedError(408, words, {"Connection": "close"}) from None
    if size > LARGEST_BODY:
        raise _too_large()
    return b"".join(pieces)


def _too_large() -> RefusedError:
    words = f"a body may have {LARGEST_BODY} bytes; send fewer at a time"
    return RefusedError(413, words, {"Connection": "close"})


def parse_json(raw: bytes) -> Any:
    """The value of a JSON text.

    NaN and Infinity are no JSON but are sent all the same; they pass, so that one of them costs
    one item of a batch and not the batch: every number is checked where it is used.

    Raises:
        RefusedError: 400, and why it is not JSON.
    """
    try:
        value = from_json(raw, cache_strings="keys")
        if raw.count(b":") != _names(value):  # a name may occur twice; the parser keeps the last
            _STRICT.decode(raw.decode())
    except ValueError as error:
        raise RefusedError(400, f"the body is not JSON: {error}"[:300]) from None
    except RecursionError:
        raise RefusedError(400, "the body is nested too deeply") from None
    return value


def _names(value: Any) -> int:
    """Names of all objects in a value, or fewer: of a list's elements, the first decides."""
    if isinstance(value, dict):
        inside = value.values()
        return len(value) + sum(_names(v) for v in inside if isinstance(v, dict | list))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sum(map(_names, value))
    return 0


def _object(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that has a name twice: whichever was meant, one would be dropped."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"the name {twice!r:.60} occurs twice in an object")


_STRICT = json.JSONDecoder(object_pairs_hook=_object)


class StrictRequest(Request):
    """A request whose body FastAPI gets through `read_body` and `parse_json`."""

    async def body(self) -> bytes:
        """The body, if it is declared as JSON and there is one."""
        if not hasattr(self, "_body"):
            kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RefusedError(415, f"send Content-Type: application/json, got {kind!r:.80}")
            self._body = await read_body(self)
            if not self._body:
                raise RefusedError(400, "the body is not JSON: it is empty")
        return self._body

    async def json(self) -> Any:
        """The value of the body."""
        return parse_json(await self.body())


def key_route(keys: Keys) -> type[APIRoute]:
    """Routes that look at the key before anything else: strangers get nothing read or parsed."""

    class KeyRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
            handle = super().get_route_handler()
            needed = [d.scopes for d in self.dependencies if isinstance(d, params.Security)]
            scope = next((s for scopes in needed for s in scopes or ()), None)
            known = {p.alias for p in self.dependant.query_params}
            seconds = SLOW.get(self.path, ANSWER_SECONDS)

            async def run(request: Request) -> Response:
                if scope is not None:
                    request.state.caller = authenticated(request, keys, scope)
                if request.scope["query_string"]:
                    _check_query(request, known)
                async with asyncio.timeout(seconds):
                    return await handle(StrictRequest(request.scope, request.receive))

            return run

    return KeyRoute


def authenticated(request: Request, keys: Keys, scope: str) -> Caller:
    """Who sends a request.

    Raises:
        RefusedError: 401 without a key that is known, 403 with one that does not open this.
    """
    given = [value for name, value in request.scope["headers"] if name == b"authorization"]
    kind, _, key = (given[0] if len(given) == 1 else b"").decode("latin-1").partition(" ")
    caller = keys.caller(key.strip()) if kind.lower() == "bearer" else None
    if caller is None:
        words = "this needs a key: send Authorization: Bearer KEY"
        if given:
            words = "the key is not known; send Authorization: Bearer KEY with one that is"
        raise RefusedError(401, words, {"WWW-Authenticate": 'Bearer realm="rapo gate"'})
    request.scope[CALLER] = caller.name
    if not caller.may(scope):
        raise RefusedError(
            403, f"this needs a key of scope {scope!r}; yours has {sorted(caller.scopes)}"
        )
    return caller


def _check_query(request: Request, known: set[str]) -> None:
    """A misspelt dry_run that were passed over would do what was only to be shown."""
    given: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            raise UserError(f"unknown parameter {name!r:.80}; known are {sorted(known)}")
        if name in given:
            raise UserError(f"the parameter {name} was given twice")
        given.add(name)


def wrong(error: RequestValidationError) -> str:
    """The first thing that a model found wrong: where, what, and what it got."""
    first = error.errors()[0]
    branch = re.compile(r"(list\[)?constrained-")  # of a union: strings or integers
    steps = [str(step) for step in first["loc"] if step not in ("body", "query", "path")]
    where = ".".join(step for step in steps if not branch.match(step)) or "the body"
    if first["type"] == "missing":
        return f"{where} is missing"
    if first["type"] == "extra_forbidden":
        return f"unknown name {where!r:.80}"
    words = str(first["msg"]).replace("dictionary or object to extract fields from", "object")
    words = words[:1].lower() + words[1:]
    if any(branch.match(step) for step in steps):
        words = "regions are strings of 1 to 200 characters, or integers of 64 bits, not both"
    return f"{where}: {words}, got {first.get('input')!r:.80}"
