"""A client of the gate's HTTP service: `GateClient`, and `AsyncGateClient` for asyncio.

The standard library alone, and nothing else of rapo: a platform may copy this file and `calls.py`.
What is sent has a name of its own (a request id, a report's key), so that sending it again after a
lost answer has no second effect; whatever may pass is therefore tried again, ever more slowly.

The asynchronous client speaks HTTP over asyncio's streams rather than through httpx, so that both
need nothing, retry alike and fail alike. Neither follows redirects or goes through proxies.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any, Self
from urllib.parse import urlsplit

from rapo_gate.calls import (
    AGAIN,
    Answer,
    Decision,
    GateError,
    OutOfReachError,
    Region,
    Report,
    Reported,
    Request,
    Retries,
    decision_of,
    decision_request,
    plain,
    posted,
    report_requests,
    unchanged,
    value_of,
)

__all__ = [
    "AsyncGateClient",
    "Decision",
    "GateClient",
    "GateError",
    "OutOfReachError",
    "Report",
    "Reported",
]


class Connected:
    """What both clients are made with.

    Args:
        url: of the service, such as `http://127.0.0.1:8080`.
        key: a bearer key, with scope gate, report, or both in one file of keys.
        timeout: seconds of one attempt.
        patience: seconds of a call, all attempts included.
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
            "Authorization": f"Bearer {key}", "Content-Type": "application/json",
            "Accept": "application/json", "User-Agent": "rapo-gate-client",
        }  # fmt: skip
        self.timeout, self.patience, self.fail_open = timeout, patience, fail_open


class GateClient(Connected):
    """The client for threads: each has a connection of its own, which stays open.

    Takes what `Connected` takes.
    """

    def __init__(self, url: str, key: str, **options: Any) -> None:
        super().__init__(url, key, **options)
        self._local = threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this thread's connection."""
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    def decide(
        self, regions: Iterable[Region], p: Iterable[float], request_id: str | None = None, *,
        stimulus: str | None = None,
    ) -> Decision:  # fmt: skip
        """Gate a distribution `p` over candidates; under the same `request_id` the answer is too.

        Raises:
            GateError: the request is refused.
            OutOfReachError: there was no answer in time, unless the client fails open.
        """
        request, law = decision_request(regions, p, request_id, stimulus)
        try:
            return decision_of(self._ask(request))
        except OutOfReachError:
            if not self.fail_open:
                raise
            return unchanged(law)

    def expose(self, decision_id: str, shown: Iterable[Region]) -> bool:
        """Say what was really shown; whether that came in time."""
        values = {"decision_id": decision_id, "shown": plain(shown)}
        return bool(self._ask(posted("/v1/exposures", values))["in_time"])

    def report(self, items: Iterable[Report]) -> list[Reported]:
        """Report harm; one result for each, in order."""
        answers = [self._ask(request) for request in report_requests(items)]
        return [Reported(**result) for answer in answers for result in answer["results"]]

    def _ask(self, request: Request) -> Any:
        retries = Retries(self.patience)
        while True:
            after = None
            try:
                answer = self._once(request, retries.left(self.timeout))
                if answer.status not in AGAIN:
                    return value_of(answer)
                why, after = f"it answered {answer.status}", answer.retry_after
            except (OSError, http.client.HTTPException) as error:
                self.close()
                why = str(error) or type(error).__name__
            time.sleep(retries.wait(why, after))

    def _once(self, request: Request, seconds: float) -> Answer:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            if self._tls is None:
                connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds)
            else:
                connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=seconds, context=self._tls
                )
            self._local.connection = connection
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        path = self._prefix + request.path
        connection.request(request.method, path, request.body, self._headers)
        found = connection.getresponse()
        body = found.read()  # to its end, or the connection cannot be used again
        return Answer(found.status, found.headers.get("Retry-After"), body, found.will_close)


class AsyncGateClient(Connected):
    """The client for asyncio; connections stay open and are shared by its tasks.

    Takes what `Connected` takes.
    """

    def __init__(self, url: str, key: str, **options: Any) -> None:
        super().__init__(url, key, **options)
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close connections that no task uses at the moment."""
        while self._free:
            self._free.pop()[1].close()

    async def decide(
        self, regions: Iterable[Region], p: Iterable[float], request_id: str | None = None, *,
        stimulus: str | None = None,
    ) -> Decision:  # fmt: skip
        """As `GateClient.decide`."""
        request, law = decision_request(regions, p, request_id, stimulus)
        try:
            return decision_of(await self._ask(request))
        except OutOfReachError:
            if not self.fail_open:
                raise
            return unchanged(law)

    async def expose(self, decision_id: str, shown: Iterable[Region]) -> bool:
        """As `GateClient.expose`."""
        values = {"decision_id": decision_id, "shown": plain(shown)}
        return bool((await self._ask(posted("/v1/exposures", values)))["in_time"])

    async def report(self, items: Iterable[Report]) -> list[Reported]:
        """As `GateClient.report`."""
        answers = [await self._ask(request) for request in report_requests(items)]
        return [Reported(**result) for answer in answers for result in answer["results"]]

    async def _ask(self, request: Request) -> Any:
        retries = Retries(self.patience)
        while True:
            after = None
            try:
                async with asyncio.timeout(retries.left(self.timeout)):
                    answer = await self._once(request)
                if answer.status not in AGAIN:
                    return value_of(answer)
                why, after = f"it answered {answer.status}", answer.retry_after
            except (
                OSError,
                EOFError,
                asyncio.LimitOverrunError,
                http.client.HTTPException,
            ) as error:
                why = str(error) or type(error).__name__
            await asyncio.sleep(retries.wait(why, after))

    async def _once(self, request: Request) -> Answer:
        if self._free:
            reader, writer = self._free.pop()
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        try:
            body = request.body or b""
            lines = [f"{request.method} {self._prefix}{request.path} HTTP/1.1"]
            lines += [f"Host: {self._host}:{self._port}", f"Content-Length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in self._headers.items()]
            writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            await writer.drain()
            answer = await _read(reader)
        except BaseException:  # cancelled too: nobody may read the rest of this answer
            writer.close()
            raise
        if answer.close:
            writer.close()
        else:
            self._free.append((reader, writer))
        return answer


async def _read(reader: asyncio.StreamReader) -> Answer:
    """One answer of HTTP/1.1, its length given or in chunks."""
    first = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ", 2)
    if len(first) < 2 or not first[0].startswith("HTTP/1.") or not first[1].isdecimal():
        raise http.client.BadStatusLine(" ".join(first).strip())
    headers: dict[str, str] = {}
    while line := (await reader.readuntil(b"\r\n")).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    close = headers.get("connection", "").lower() == "close" or first[0] == "HTTP/1.0"
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _chunks(reader)
    elif "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body, close = await reader.read(), True
    return Answer(int(first[1]), headers.get("retry-after"), body, close)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while (await reader.readuntil(b"\r\n")).strip():
        pass  # trailers
    return b"".join(pieces)
