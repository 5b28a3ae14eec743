"""Connections: how large and how slow the head of a request may be, and how many there may be.

Uvicorn bounds the requests under way, not those that never come: a stranger who opens many
connections and sends half a request on each would keep everybody else out. Here a head has a size
and a time; where there are too many connections the one that has waited longest goes, so whoever
sends whole requests is served.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
    b'content-length: 38\r\nconnection: close\r\n\r\n{"error":"the head may have 64 KiB"}  '
)


@dataclass(slots=True)
class Connections:
    """Every connection of a server, and the bounds that they keep."""

    per_address: int = 500
    in_all: int = 1900
    head_bytes: int = 64 << 10
    """A head that has not ended after so many bytes is refused; one read may bring it whole."""
    head_seconds: float = 10.0
    """From the first byte, or from the connection, to the end of the head."""
    proxies: frozenset[str] = frozenset()
    """Addresses that speak for many, and so may have many connections."""
    by_address: dict[str, dict[GuardedProtocol, None]] = field(default_factory=dict)
    waiting: dict[GuardedProtocol, None] = field(default_factory=dict)
    """Connections without a request under way, those that have waited longest first."""
    count: int = 0

    def admit(self, one: GuardedProtocol) -> None:
        """Take a connection in; if there are too many, one that waits goes."""
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
        """A connection has ended."""
        mine = self.by_address.get(one.address, {})
        if one in mine:
            del mine[one]
            self.count -= 1
        if not mine:
            self.by_address.pop(one.address, None)
        self.waiting.pop(one, None)


class GuardedProtocol(HttpToolsProtocol):
    """Uvicorn's own protocol, with a head that must end in time and within bounds."""

    guard: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else "unknown"
        self._head: int | None = 0
        """Bytes of a head that has not ended; None while a body comes."""
        self._timer: asyncio.TimerHandle | None = None
        self._begin_timer()
        self.guard.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It went."""
        self._end_timer()
        self.guard.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something came; it may be less than a head, or more."""
        if self._timer is None and self._head is not None:
            self._begin_timer()
        super().data_received(data)
        if self._head is not None and not self.transport.is_closing():
            self._head += len(data)
            if self._head > self.guard.head_bytes:
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def on_headers_complete(self) -> None:
        """The head has ended: a request is under way."""
        self._head = None
        self._end_timer()
        self.guard.waiting.pop(self, None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body has ended: the next head may come."""
        self._head = 0
        self._end_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It was answered, perhaps before all of its body came."""
        super().on_response_complete()
        if self.cycle is None or self.cycle.response_complete:
            self.guard.waiting.pop(self, None)
            if not self.transport.is_closing():
                self.guard.waiting[self] = None
                if self._head is None:
                    self._begin_timer()

    def drop(self) -> None:
        """End it at once."""
        self.guard.forget(self)
        self.transport.abort()

    def _begin_timer(self) -> None:
        self._timer = self.loop.call_later(self.guard.head_seconds, self.drop)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def guarded(connections: Connections) -> Any:
    """The protocol of one server."""
    return type("Guarded", (GuardedProtocol,), {"guard": connections})
