"""`serve`: the service in one process, from an open port to a clean end.

Uvicorn bounds the requests under way, but not the connections without a whole request: a stranger
who opens many and sends half a request on each would keep everybody else out. Here the head of a
request has a largest size and a longest time. Where there are too many connections, the one that
has waited longest is closed, so that clients who send whole requests are served.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rapo_core.checks import UserError
from rapo_gate.audit import overview
from rapo_gate.gate import Gate
from rapo_gate.service.app import log_to, make_app
from rapo_gate.service.audits import AuditProcess
from rapo_gate.service.auth import Keys
from rapo_gate.service.guard import LOGGER

MOST_REQUESTS = 2000
"""Most requests under way; beyond, 503. The number also bounds what waits for a commit."""
LONGEST_FAREWELL = 20
"""Most seconds that requests under way have when the service ends."""
SWITCH = 0.0005
"""Seconds that one thread may hold the interpreter while others want it. Python's own 5 ms would be
most of the time of an answer while the writer works."""


def serve(
    address: str | Path,
    key_file: str | Path,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    metrics_need_key: bool = False,
    trust_proxy: Sequence[str] = (),
    connections_per_address: int = 500,
) -> None:
    """Serve a gate until SIGTERM or Ctrl-C.

    Then no new connection is taken, requests under way are answered, the log is made durable, and a
    snapshot is kept.

    Args:
        address: path or `postgresql://` address of a gate that exists.
        key_file: hashed keys, as `rapo-gate init` writes them.
        host: address to listen on; the default lets only this machine in. The service speaks
            plain HTTP: for others, put a proxy with TLS in front.
        port: 0 for a free one.
        metrics_need_key: ask for a key of scope review at `/metrics`.
        trust_proxy: addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted;
            none by default, since anybody can send these headers.
        connections_per_address: beyond, the connection that has waited longest is closed.

    Raises:
        UserError: there is something wrong with the gate, the keys or the port.
        OSError: the port is taken, a file is missing, or another process has the gate.
    """
    keys = Keys.load(key_file)
    with _listening(host, port) as listener:
        gate = Gate.open(address, create=False)
        try:
            view = gate.read(overview)
            if view["idle"]:
                LOGGER.warning(f"the settings cannot act: {view['acting']}; see rapo-gate fit")
            audits = AuditProcess(gate)
            try:
                app = make_app(gate, keys, audits=audits, metrics_need_key=metrics_need_key)
                connections = Connections(connections_per_address, proxies=frozenset(trust_proxy))
                _run(configured(app, connections), listener)
            finally:
                audits.close()
        finally:
            gate.close()
            LOGGER.info("closed")


def configured(app: Any, connections: Connections) -> uvicorn.Config:
    """Settings of the server: bounded, quiet, and trusting only the proxies that are configured."""
    proxies = sorted(connections.proxies)
    return uvicorn.Config(
        app,
        http=guarded(connections),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=MOST_REQUESTS,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=LONGEST_FAREWELL,
    )


def _run(config: uvicorn.Config, listener: socket.socket) -> None:
    sys.setswitchinterval(SWITCH)
    log_to()
    # Uvicorn's own line per request would say the same without the key's name.
    logging.getLogger("uvicorn.access").disabled = True
    # Every connection is a file; the usual 1024 would be used up before any bound of ours.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 8192:
        most = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    # When Uvicorn has ended it raises the signal again, which must not end the process before the
    # gate is closed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    host, port = listener.getsockname()[:2]
    LOGGER.info("serving", extra={"fields": {"url": f"http://{host}:{port}"}})
    uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    """An open port, taken before the gate is opened: a second server stops at once."""
    if not 0 <= port < 2**16:  # the resolver would take it modulo 65536
        raise UserError(f"port must be in [0, 65535], got {port}")
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = infos[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(2048)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        why = getattr(error, "strerror", None) or error
        raise OSError(f"cannot listen on {host}:{port}: {why}; choose another port") from None
    return listener


# --- connections

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
    b'content-length: 38\r\nconnection: close\r\n\r\n{"error":"the head may have 64 KiB"}  '
)


@dataclass(slots=True)
class Connections:
    """The connections of a server, and their bounds."""

    per_address: int = 500
    in_all: int = 1900
    head_bytes: int = 64 << 10
    """A head that has not ended after so many bytes is refused."""
    head_seconds: float = 10.0
    """Most seconds from the connection, or from the first byte, to the end of the head."""
    proxies: frozenset[str] = frozenset()
    """Addresses that stand for many clients, and so may have many connections."""
    by_address: dict[str, dict[GuardedProtocol, None]] = field(default_factory=dict)
    waiting: dict[GuardedProtocol, None] = field(default_factory=dict)
    """Connections without a request under way, those that have waited longest first."""
    count: int = 0

    def admit(self, one: GuardedProtocol) -> None:
        """Take a connection in; if there are too many, close one that waits."""
        mine = self.by_address.setdefault(one.address, {})
        mine[one] = None
        self.waiting[one] = None
        self.count += 1
        if len(mine) > self.per_address and one.address not in self.proxies:
            self._drop_one_of(mine, one)
        elif self.count > self.in_all:
            self._drop_one_of(max(self.by_address.values(), key=len), one)

    def _drop_one_of(self, group: dict[GuardedProtocol, None], new: GuardedProtocol) -> None:
        oldest = next((c for c in group if c in self.waiting and c is not new), new)
        oldest.drop()

    def forget(self, one: GuardedProtocol) -> None:
        """Drop a connection that has ended from the lists."""
        mine = self.by_address.get(one.address, {})
        if one in mine:
            del mine[one]
            self.count -= 1
        if not mine:
            self.by_address.pop(one.address, None)
        self.waiting.pop(one, None)


class GuardedProtocol(HttpToolsProtocol):
    """Uvicorn's own protocol, with a longest time and a largest size of a request's head."""

    guard: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else "unknown"
        self._head: int | None = 0
        """Bytes of a head that has not ended; None while a body comes."""
        self._ended = 0
        """Messages that have ended."""
        self._timer: asyncio.TimerHandle | None = None
        self._begin_timer()
        self.guard.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._end_timer()
        self.guard.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data on, and count what belongs to a head that has not ended."""
        if self._timer is None and self._head is not None:
            self._begin_timer()
        ended = self._ended
        super().data_received(data)
        # Data that came with the end of a message counts as part of that message.
        if self._head is not None and ended == self._ended and not self.transport.is_closing():
            self._head += len(data)
            if self._head > self.guard.head_bytes:
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def on_headers_complete(self) -> None:
        """Stop the timer: the head has ended and a request is under way."""
        self._head = None
        self._end_timer()
        self.guard.waiting.pop(self, None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Begin to count the next head: the body has ended."""
        self._head = 0
        self._ended += 1
        self._end_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Let the connection wait again; the answer may be out before the whole body is in."""
        super().on_response_complete()
        if self.cycle is None or self.cycle.response_complete:
            self.guard.waiting.pop(self, None)
            if not self.transport.is_closing():
                self.guard.waiting[self] = None
                if self._head is None:
                    self._begin_timer()

    def drop(self) -> None:
        """Close the connection at once."""
        self.guard.forget(self)
        self.transport.abort()

    def _begin_timer(self) -> None:
        self._timer = self.loop.call_later(self.guard.head_seconds, self.drop)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def guarded(connections: Connections) -> Any:
    """The protocol class of one server."""
    return type("Guarded", (GuardedProtocol,), {"guard": connections})
