"""What every request of the API passes through before its route sees it.

The key is checked first, then the names of the query, then the body is read within limits and
parsed strictly. Every error becomes an answer with a status and one sentence.
"""

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
"""Most bytes of a body; a larger one is refused with 413."""
BODY_SECONDS = 10.0
"""Most seconds that a body may take to arrive."""
ANSWER_SECONDS = 30.0
"""Most seconds that an answer may take; then the caller is asked to try again."""
SLOW = {"/v1/verify": 600.0}
"""Most seconds of the paths that may take longer."""
LOGGER = logging.getLogger("rapo_gate.service")
ROUTE = "rapo.gate.route"
"""Key of a request's scope under which the pages keep their route, as FastAPI does for the API."""
CALLER = "rapo.gate.caller"
"""Key of a request's scope under which the name of the caller's key is kept."""
_MOST_DRAINED = 16 << 20
"""Bytes of too large a body that are read and dropped. Some senders do not listen before they have
sent everything; so they get the answer instead of a broken connection."""


class RefusedError(HTTPException):
    """The request is refused with a status, one sentence and perhaps headers."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, reason, headers or {})


def refusal_of(error: Exception) -> RefusedError:
    """The refusal that an error is answered with; raises the error again if it is our fault."""
    match error:
        case RefusedError():
            return error
        case RequestValidationError():
            return RefusedError(422, first_fault(error))
        case ConflictError():
            return RefusedError(409, str(error))
        case TimeoutError():
            reason = "no answer came in time; the request may still be done: try again"
            return RefusedError(503, reason, {"Retry-After": "5"})
        case ValueError():
            return RefusedError(422, str(error))
        case OSError():
            LOGGER.error("store", exc_info=error)  # not in the answer: it may hold addresses
            reason = "the log cannot be written or read now; nothing was acknowledged"
            return RefusedError(503, reason, {"Retry-After": "1"})
        case DroppedError():
            return RefusedError(410, str(error))
        case LookupError() if type(error) is LookupError:  # a KeyError is a fault of ours
            return RefusedError(404, str(error))
    raise error


async def read_body(request: Request, seconds: float = BODY_SECONDS) -> bytes:
    """The body of a request, of at most `LARGEST_BODY` bytes that came within `seconds`.

    Bytes are counted as they come: a chunked body has no Content-Length, and a Content-Length may
    be wrong.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > LARGEST_BODY and "expect" in request.headers:
        raise _too_large()  # before the body comes: the sender waits for permission
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
        reason = f"the body did not arrive within {seconds:g} s"
        raise RefusedError(408, reason, {"Connection": "close"}) from None
    if size > LARGEST_BODY:
        raise _too_large()
    return b"".join(pieces)


def _too_large() -> RefusedError:
    reason = f"a body may have {LARGEST_BODY} bytes; send fewer items at a time"
    return RefusedError(413, reason, {"Connection": "close"})


def parse_json(raw: bytes) -> Any:
    """The value of a JSON text.

    NaN and Infinity are no JSON, but some programs send them. They pass here and are refused where
    the number is used, so that one of them costs one item of a batch and not the whole batch.

    Raises:
        RefusedError: 400, and why the text is not JSON.
    """
    try:
        value = from_json(raw, cache_strings="keys")
        if raw.count(b":") != _names(value):  # a name may occur twice: the parser keeps one
            _STRICT.decode(raw.decode())
    except ValueError as error:
        raise RefusedError(400, f"the body is not JSON: {error}"[:300]) from None
    except RecursionError:
        raise RefusedError(400, "the body is nested too deeply") from None
    return value


def _names(value: Any) -> int:
    """Number of names in all objects of a value; a list counts only if it begins with an object.

    A wrong count does no harm: it only leads to the slower, strict parser.
    """
    if isinstance(value, dict):
        inside = value.values()
        return len(value) + sum(_names(v) for v in inside if isinstance(v, dict | list))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sum(map(_names, value))
    return 0


def _object(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that has a name twice, because one of the two values would be dropped."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"the name {twice!r:.60} occurs twice in an object")


_STRICT = json.JSONDecoder(object_pairs_hook=_object)


class StrictRequest(Request):
    """A request whose body FastAPI reads by `read_body` and parses by `parse_json`."""

    async def body(self) -> bytes:
        """The body; refused if it is empty or not declared as JSON."""
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
    """The class of routes that check the key first: nothing of a stranger is read or parsed."""

    class KeyRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
            handle = super().get_route_handler()
            security = [d.scopes for d in self.dependencies if isinstance(d, params.Security)]
            scope = next((s for scopes in security for s in scopes or ()), None)
            parameters = {p.alias for p in self.dependant.query_params}
            seconds = SLOW.get(self.path, ANSWER_SECONDS)

            async def run(request: Request) -> Response:
                if scope is not None:
                    request.state.caller = authenticated(request, keys, scope)
                if request.scope["query_string"]:
                    _check_query(request, parameters)
                async with asyncio.timeout(seconds):
                    return await handle(StrictRequest(request.scope, request.receive))

            return run

    return KeyRoute


def authenticated(request: Request, keys: Keys, scope: str) -> Caller:
    """The owner of the key that a request carries.

    Raises:
        RefusedError: 401 without a known key, 403 if the key does not have the scope.
    """
    sent = [value for name, value in request.scope["headers"] if name == b"authorization"]
    kind, _, key = (sent[0] if len(sent) == 1 else b"").decode("latin-1").partition(" ")
    caller = keys.caller(key.strip()) if kind.lower() == "bearer" else None
    if caller is None:
        reason = "this needs a key: send Authorization: Bearer KEY"
        if sent:
            reason = "the key is not known; send Authorization: Bearer KEY with a known key"
        raise RefusedError(401, reason, {"WWW-Authenticate": 'Bearer realm="rapo gate"'})
    request.scope[CALLER] = caller.name
    if not caller.may(scope):
        raise RefusedError(
            403, f"this needs a key of scope {scope!r}; yours has {sorted(caller.scopes)}"
        )
    return caller


def _check_query(request: Request, parameters: set[str]) -> None:
    """Refuse unknown and repeated names: a misspelt dry_run would do what was only to be shown."""
    earlier: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in parameters:
            raise UserError(f"unknown parameter {name!r:.80}; known are {sorted(parameters)}")
        if name in earlier:
            raise UserError(f"the parameter {name} was given twice")
        earlier.add(name)


def first_fault(error: RequestValidationError) -> str:
    """The first fault that a model reports: where it is, what it is, and the value received."""
    first = error.errors()[0]
    branch = re.compile(r"(list\[)?constrained-")  # of a union: strings or integers
    steps = [str(step) for step in first["loc"] if step not in ("body", "query", "path")]
    where = ".".join(step for step in steps if not branch.match(step)) or "the body"
    if first["type"] == "missing":
        return f"{where} is missing"
    if first["type"] == "extra_forbidden":
        return f"unknown name {where!r:.80}"
    fault = str(first["msg"]).replace("dictionary or object to extract fields from", "object")
    fault = fault.removeprefix("Value error, ")
    fault = fault[:1].lower() + fault[1:]
    if any(branch.match(step) for step in steps):
        fault = "regions are strings of 1 to 200 characters, or integers of 64 bits, not both"
    return f"{where}: {fault}, got {first.get('input')!r:.80}"
