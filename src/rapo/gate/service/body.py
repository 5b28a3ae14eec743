"""Bodies of requests: read within limits, parsed strictly, never trusted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from math import isfinite
from typing import Any

from pydantic_core import from_json
from starlette.requests import Request

LARGEST_BODY = 1 << 20
"""Bytes of a body; more is refused with 413."""
_MOST_DRAINED = 16 << 20
"""Bytes of a body too large that are read and thrown away, so that its sender, who may not listen
before everything is sent, gets the answer instead of a broken connection."""


class RefusedError(Exception):
    """A request that is answered with an error, whatever the gate would say to it."""

    def __init__(self, status: int, words: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(words)
        self.status, self.words, self.headers = status, words, headers or {}


async def read_body(request: Request, seconds: float) -> bytes:
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
        raise ValueError(f"the name {twice!r:.60} occurs twice in an object")


_STRICT = json.JSONDecoder(object_pairs_hook=_object)


def checked_object(value: Any, needed: Iterable[str], known: Iterable[str]) -> dict[str, Any]:
    """`value` if it is an object with the needed names and no unknown ones."""
    if not isinstance(value, dict):
        raise ValueError(f"the body must be a JSON object, got {value!r:.80}")
    missing = [name for name in needed if name not in value]
    if missing:
        raise ValueError(f"the body lacks {missing[0]!r}")
    unknown = value.keys() - set(known)
    if unknown:
        raise ValueError(f"unknown name {min(unknown)!r:.80}; known are {sorted(known)}")
    return value


def checked_list(name: str, value: Any) -> list[Any]:
    """`value` if it is a list."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {value!r:.80}")
    return value


def checked_truth(name: str, value: Any) -> bool:
    """`value` if it is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {value!r:.80}")
    return value


def checked_real(name: str, value: Any) -> float:
    """`value` if it is a finite number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if isfinite(value):
                return float(value)
        except OverflowError:
            pass
    raise ValueError(f"{name} must be a finite number, got {value!r:.80}")


def checked_wholes(name: str, value: Any) -> list[int]:
    """`value` if it is a non-empty list of positions in the log."""
    numbers = checked_list(name, value)
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**63:
            raise ValueError(f"{name} must be report ids, whole numbers > 0, got {number!r:.80}")
    if not numbers:
        raise ValueError(f"{name} names none; leave it out or name some")
    return numbers
