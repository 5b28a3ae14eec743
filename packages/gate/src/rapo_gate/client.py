"""A client of the gate's HTTP service: `GateClient`, and `AsyncGateClient` for asyncio.

This file imports the standard library alone and nothing else of rapo, so a platform may copy it.
Every request carries a name of its own (a request id, the key of a report). Sending it again after
a lost answer therefore has no second effect, and the client repeats whatever may succeed later,
more slowly each time. It follows no redirects and uses no proxies.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import ssl
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

Region = int | str
T = TypeVar("T")

RETRIED = frozenset((429, 502, 503, 504))
"""Statuses after which the same request may succeed later."""
MOST_ITEMS = 1000
"""Reports that one request may hold; the client splits longer lists."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class GateError(Exception):
    """The gate refused a request and would refuse it again.

    `status` is the HTTP status, None if there was no answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class OutOfReachError(GateError):
    """No final answer came within the client's patience."""


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """The distribution to serve over n candidates, in the order of the request."""

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
    """The reporter's own name of this report: sent twice, it counts once."""
    harm: float
    signal: str
    at: float
    """Unix seconds of the exposure."""
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


class GateClient:
    """A client that any number of threads may share; its connections stay open.

    Args:
        url: address of the service, such as `http://127.0.0.1:8080`.
        key: a bearer key, with scope gate, report, or both in one file of keys.
        timeout: most seconds that one attempt waits for the network.
        patience: most seconds of a call, all attempts included.
        fail_open: let `decide` answer `p` itself while the gate is out of reach.
    """

    def __init__(
        self, url: str, key: str, *, timeout: float = 2.0, patience: float = 10.0,
        fail_open: bool = False,
    ) -> None:  # fmt: skip
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be http://host:port or https://host, got {url!r}")
        if not (timeout > 0 and patience > 0):
            raise ValueError(f"timeout and patience must be > 0, got {timeout}, {patience}")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host, self._port = parts.hostname, parts.port or (443 if self._tls else 80)
        self._prefix = parts.path.rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": "rapo-gate-client",
        }
        self.timeout, self.patience, self.fail_open = timeout, patience, fail_open
        self._idle: list[http.client.HTTPConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that no call is using now."""
        while self._idle:
            self._idle.pop().close()

    def decide(
        self, regions: Iterable[Region], p: Iterable[float], request_id: str | None = None, *,
        stimulus: str | None = None,
    ) -> GateAnswer:  # fmt: skip
        """Gate a distribution `p` over candidates; the same `request_id` gets the same answer.

        Raises:
            GateError: the gate refused the request.
            OutOfReachError: no answer came in time, and the client does not fail open.
        """
        law = [float(x) for x in p]
        values = {"request_id": request_id or uuid.uuid4().hex, "regions": plain(regions), "p": law}
        if stimulus is not None:
            values["stimulus"] = stimulus
        try:
            answer = self._post("/v1/decisions", values)
        except OutOfReachError:
            if not self.fail_open:
                raise
            return GateAnswer(law, [1.0] * len(law), None, -1, "open", reached=False)
        names = ("q", "psi", "decision_id", "revision", "mode")
        return GateAnswer(**{name: answer[name] for name in names})

    def expose(self, decision_id: str, shown: Iterable[Region]) -> bool:
        """Say which candidates were really shown; return whether that came in time."""
        values = {"decision_id": decision_id, "shown": plain(shown)}
        return bool(self._post("/v1/exposures", values)["in_time"])

    def report(self, items: Iterable[Report]) -> list[Reported]:
        """Report harm; return one result for each report, in order."""
        sent = [{k: v for k, v in asdict(item).items() if v is not None} for item in items]
        results: list[Reported] = []
        for start in range(0, len(sent), MOST_ITEMS):
            answer = self._post("/v1/reports", {"items": sent[start : start + MOST_ITEMS]})
            results += [Reported(**result) for result in answer["results"]]
        return results

    def _post(self, path: str, values: Mapping[str, Any]) -> Any:
        """Send a request until it has a final answer; return the value of its body."""
        body = json.dumps(values, allow_nan=False).encode()  # JSON has no NaN: refuse it here
        retries = Retries(self.patience)
        while True:
            retry_after = None
            try:
                response, content = self._once(path, body, retries.left(self.timeout))
                if response.status not in RETRIED:
                    return value_of(response.status, content)
                why = f"it answered {response.status}"
                retry_after = response.headers.get("Retry-After")
            except (OSError, http.client.HTTPException) as error:
                why = str(error) or type(error).__name__
            time.sleep(retries.wait(why, retry_after))

    def _once(
        self, path: str, body: bytes, seconds: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._new_connection()
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        try:
            connection.request("POST", self._prefix + path, body, self._headers)
            response = connection.getresponse()
            content = response.read()
        except BaseException:  # the rest of this answer must not be read as the next one's
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return response, content

    def _new_connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port)
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls)


class AsyncGateClient:
    """`GateClient` for asyncio: each call runs on a thread of its own pool.

    A task that is cancelled stops waiting at once; its request may still be done.

    Args:
        url: address of the service.
        key: a bearer key.
        parallel: most calls under way at once; further calls wait.
        options: as `GateClient` takes them.
    """

    def __init__(self, url: str, key: str, *, parallel: int = 32, **options: Any) -> None:
        self._client = GateClient(url, key, **options)
        # Not `asyncio.to_thread`: its threads are few and belong to the whole program.
        self._threads = ThreadPoolExecutor(parallel, "rapo-gate-client")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Begin no further call, wait for those under way, close the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._threads.shutdown)
        self._client.close()

    async def decide(
        self, regions: Iterable[Region], p: Iterable[float], request_id: str | None = None, *,
        stimulus: str | None = None,
    ) -> GateAnswer:  # fmt: skip
        """As `GateClient.decide`."""
        decide = self._client.decide
        return await self._run(lambda: decide(regions, p, request_id, stimulus=stimulus))

    async def expose(self, decision_id: str, shown: Iterable[Region]) -> bool:
        """As `GateClient.expose`."""
        return await self._run(lambda: self._client.expose(decision_id, shown))

    async def report(self, items: Iterable[Report]) -> list[Reported]:
        """As `GateClient.report`."""
        return await self._run(lambda: self._client.report(items))

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def plain(regions: Iterable[Region]) -> list[Region]:
    """Regions as strings and Python's own integers, which JSON can hold."""
    return [region if isinstance(region, str) else int(region) for region in regions]


def value_of(status: int, content: bytes) -> Any:
    """The value of an answer's body.

    Raises:
        GateError: the answer is a refusal, or not JSON.
    """
    text = content.decode(errors="replace")
    try:
        value = json.loads(text)
        if status < 300:
            return value
        text = str(value.get("error") or value.get("detail") or text)
    except (ValueError, AttributeError):
        pass  # the answer is not the gate's own, but a proxy's page
    raise GateError(f"the gate answered {status}: {text:.500}", status)


class Retries:
    """How long to wait before the next attempt of one call, and when to give up."""

    def __init__(self, patience: float) -> None:
        self._end, self._pause = time.monotonic() + patience, _FIRST_PAUSE

    def left(self, timeout: float) -> float:
        """Seconds that the next attempt may take."""
        return max(0.05, min(timeout, self._end - time.monotonic()))

    def wait(self, why: str, retry_after: str | None = None) -> float:
        """Seconds to sleep; they are random, so that clients do not come back all at once.

        Raises:
            OutOfReachError: the patience is used up.
        """
        pause = self._pause * (0.5 + random.random() / 2)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        if retry_after is not None and retry_after.isdecimal():
            pause = max(pause, float(retry_after))
        if time.monotonic() + pause >= self._end:
            raise OutOfReachError(f"the gate is out of reach: {why}")
        return pause
