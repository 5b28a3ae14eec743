"""`Operation`: one endpoint of the API, what it needs, what it answers, and how it fails.

Handlers are given a checked `Call` and return plain values; keys, bodies, queries and errors are
dealt with here, once, and the OpenAPI document is made of the same description.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from rapo.gate.gate import ConflictError
from rapo.gate.service.body import RefusedError, checked_object, parse_json, read_body
from rapo.gate.service.keys import Caller, Keys
from rapo.gate.service.logs import CALLER, LOGGER

BODY_SECONDS = 10.0
"""Time that a body may take to arrive."""
ANSWER_SECONDS = 30.0
"""Time after which a caller is told to try again instead of being left to wait."""

_OPEN = Caller("nobody", frozenset())


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter of the query: a whole number in [low, high], or true or false."""

    name: str
    default: int | bool
    about: str
    low: int = 0
    high: int = 2**53

    def read(self, text: str) -> int | bool:
        """The value that `text` stands for."""
        if isinstance(self.default, bool):
            if text in ("true", "false"):
                return text == "true"
            raise ValueError(f"{self.name} must be true or false, got {text!r:.80}")
        if text.isascii() and text.isdecimal() and len(text) < 20:
            number = int(text)
            if self.low <= number <= self.high:
                return number
        bounds = f"in [{self.low}, {self.high}]"
        raise ValueError(f"{self.name} must be a whole number {bounds}, got {text!r:.80}")


@dataclass(frozen=True, slots=True)
class Call:
    """A request that may be answered."""

    request: Request
    caller: Caller
    query: dict[str, Any]
    """Every parameter of the operation, given or not."""
    body: Any
    """The parsed body; None where the operation has none."""

    def path(self, name: str) -> str:
        """A parameter of the path."""
        return str(self.request.path_params[name])


Handler = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint."""

    method: str
    path: str
    scope: str | None
    """Scope that a key must have; None for no key."""
    handler: Handler
    summary: str
    answer: str
    """Name of the schema of its answer."""
    body: str | None = None
    """Name of the schema of its body."""
    needed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    """Names that the body must have, and may have."""
    query: tuple[Query, ...] = ()
    errors: tuple[int, ...] = ()
    """Status codes of failures beyond those that follow from the above."""

    def statuses(self) -> list[int]:
        """Every status code of a failure."""
        codes = {*self.errors, 500, 503}
        if self.scope is not None:
            codes |= {401, 403}
        if self.body is not None:
            codes |= {400, 408, 413, 415, 422}
        if self.query:
            codes.add(422)
        return sorted(codes)


def endpoint(operation: Operation, keys: Keys) -> Callable[[Request], Awaitable[Response]]:
    """What a router calls for an operation."""

    async def run(request: Request) -> Response:
        try:
            caller = _OPEN
            if operation.scope is not None:
                caller = authenticated(request, keys, operation.scope)
            query = _query(operation, request)
            body = await _body(operation, request)
            async with asyncio.timeout(ANSWER_SECONDS):
                value = await operation.handler(Call(request, caller, query, body))
        except Exception as error:
            return failure(error)
        return value if isinstance(value, Response) else as_json(value)

    return run


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


def _query(operation: Operation, request: Request) -> dict[str, Any]:
    values: dict[str, Any] = {q.name: q.default for q in operation.query}
    if not request.scope["query_string"]:
        return values
    known = {q.name: q for q in operation.query}
    given: set[str] = set()
    for name, text in request.query_params.multi_items():
        # A misspelt dry_run that were passed over would do what was only to be shown.
        if name not in known:
            raise ValueError(f"unknown parameter {name!r:.80}; known are {sorted(known)}")
        if name in given:
            raise ValueError(f"the parameter {name} was given twice")
        given.add(name)
        values[name] = known[name].read(text)
    return values


async def _body(operation: Operation, request: Request) -> Any:
    if operation.body is None:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, f"send Content-Type: application/json, got {kind!r:.80}")
    value = parse_json(await read_body(request, BODY_SECONDS))
    return checked_object(value, operation.needed, operation.known)


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Response(text.encode(), status, headers, "application/json")


def failure(error: Exception) -> Response:
    """The answer to a request that failed; nothing was changed by it."""
    match error:
        case RefusedError():
            return as_json({"error": error.words}, error.status, error.headers)
        case ConflictError():
            return as_json({"error": str(error)}, 409)
        case LookupError() if type(error) is LookupError:
            return as_json({"error": str(error)}, 404)
        case TimeoutError():
            words = f"no answer within {ANSWER_SECONDS:g} s; it may still be done: send it again"
            return as_json({"error": words}, 503, {"Retry-After": "5"})
        case OSError():  # a store that failed; what it says may hold paths and addresses
            LOGGER.error("store", exc_info=error)
            words = "the log cannot be written or read now; nothing was acknowledged"
            return as_json({"error": words}, 503, {"Retry-After": "1"})
        case ValueError():
            return as_json({"error": _printable(str(error))}, 422)
    return broken(error)


def broken(error: BaseException) -> Response:
    """The answer to a request that met a fault of ours."""
    LOGGER.error("fault", exc_info=error)
    return as_json({"error": "a fault of the gate; its log tells more"}, 500)


def _printable(words: str) -> str:
    return words.encode("utf-8", "replace").decode()


def level_of(status: int) -> int:
    """How loudly an answer is logged."""
    return logging.ERROR if status >= 500 else logging.INFO
