"""What the clients of the gate's HTTP service send, what they get back, and when they try again.

The standard library alone, and nothing else of rapo: a platform may copy this file and `client.py`.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

Region = int | str

AGAIN = frozenset((429, 502, 503, 504))
"""Statuses after which the same request may succeed later."""
MOST_ITEMS = 1000
"""Reports of one request; more are sent in several."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class GateError(Exception):
    """The gate refused a request, and would again."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class OutOfReachError(GateError):
    """The gate gave no answer, or only ones that may pass, for as long as was to be waited."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to serve. n candidates, in the order of the request."""

    q: list[float]
    """The distribution to serve, (n,); `p` in shadow mode and where the gate did not answer."""
    psi: list[float]
    """Conductance of each candidate's region, (n,); ones where the gate did not answer."""
    decision_id: str | None
    """None where the gate did not answer: there is nothing to expose or to report on."""
    revision: int
    mode: str
    """`shadow`, `enforce`, or `open` where the gate did not answer."""
    reached: bool = True
    """False if `q` is `p` because the gate was out of reach."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report of harm; it names a decision, regions, or regions of a decision."""

    source: str
    key: str
    """The reporter's own name of it: sent twice, it counts once."""
    harm: float
    signal: str
    at: float
    """When the exposure was, Unix seconds."""
    decision_id: str | None = None
    regions: Sequence[Region] | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """What became of a report."""

    status: str
    """`accepted`, `review`, `quarantined` or `refused`."""
    code: int
    report_id: int | None
    duplicate: bool
    error: str | None


class Request(NamedTuple):
    """What is sent."""

    method: str
    path: str
    body: bytes | None


class Answer(NamedTuple):
    """What came back."""

    status: int
    retry_after: str | None
    body: bytes
    close: bool


def posted(path: str, values: Mapping[str, Any]) -> Request:
    """A request with a body; NaN is refused here, since JSON has none."""
    return Request("POST", path, json.dumps(values, allow_nan=False).encode())


def decision_of(values: Mapping[str, Any]) -> Decision:
    """The gate's answer to a decision."""
    names = ("q", "psi", "decision_id", "revision", "mode")
    return Decision(**{name: values[name] for name in names})


def unchanged(p: Sequence[float]) -> Decision:
    """The answer in the gate's place: serve what was proposed."""
    return Decision([float(x) for x in p], [1.0] * len(p), None, -1, "open", reached=False)


def decision_request(
    regions: Iterable[Region], p: Iterable[float], request_id: str | None, stimulus: str | None
) -> tuple[Request, list[float]]:
    """A decision to ask for, and `p` as plain numbers."""
    law = [float(x) for x in p]
    values = {"request_id": request_id or uuid.uuid4().hex, "regions": plain(regions), "p": law}
    more = {} if stimulus is None else {"stimulus": stimulus}
    return posted("/v1/decisions", {**values, **more}), law


def plain(regions: Iterable[Region]) -> list[Region]:
    """Strings and integers, also where an array's own integers were given."""
    return [region if isinstance(region, str) else int(region) for region in regions]


def report_requests(items: Iterable[Report]) -> list[Request]:
    """Reports, as many to a request as the gate takes."""
    plain = [{k: v for k, v in asdict(item).items() if v is not None} for item in items]
    pieces = [plain[i : i + MOST_ITEMS] for i in range(0, len(plain), MOST_ITEMS)]
    return [posted("/v1/reports", {"items": piece}) for piece in pieces]


def value_of(answer: Answer) -> Any:
    """The body of a good answer.

    Raises:
        GateError: it is none, and would be none again.
    """
    words = answer.body.decode(errors="replace")
    try:
        values = json.loads(words)
        if answer.status < 300:
            return values
        words = str(values.get("error") or values.get("detail") or words)
    except (ValueError, AttributeError):
        pass  # not the gate's own: a proxy's page
    raise GateError(f"the gate answered {answer.status}: {words:.500}", answer.status)


class Retries:
    """How long to wait before the next attempt, and when to give up."""

    def __init__(self, patience: float) -> None:
        self._end, self._pause = time.monotonic() + patience, _FIRST_PAUSE

    def left(self, timeout: float) -> float:
        """Seconds that the next attempt may take."""
        return max(0.05, min(timeout, self._end - time.monotonic()))

    def wait(self, why: str, retry_after: str | None = None) -> float:
        """Seconds to sleep; at random, so that clients do not come back all at once.

        Raises:
            OutOfReachError: the time is up.
        """
        pause = self._pause * (0.5 + random.random() / 2)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        if retry_after is not None and retry_after.isdecimal():
            pause = max(pause, float(retry_after))
        if time.monotonic() + pause >= self._end:
            raise OutOfReachError(f"the gate is out of reach: {why}")
        return pause
