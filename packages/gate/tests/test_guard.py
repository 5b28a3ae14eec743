"""Connections that would keep others out: large heads, slow heads, many at once; and proxies."""

from __future__ import annotations

import http.client
import json
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
import uvicorn
from waiting import until

from rapo_gate.service.app import log_to, make_app
from rapo_gate.service.auth import Keys
from rapo_gate.service.guard import LOGGER
from rapo_gate.service.serve import Connections, configured

HALF = b"POST /v1/reports HTTP/1.1\r\nHost: gate\r\nX-Half: "
HEAD_SECONDS = 2.0
"""Short enough to wait for, and long enough for a busy machine to send a whole head within."""


@contextmanager
def serving(service: Any, **bounds: Any) -> Iterator[int]:
    """The port of a real server of the gate."""
    app = make_app(service.gate, Keys.of(service.keys), pages=True)
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen(4096)
        server = uvicorn.Server(configured(app, Connections(**bounds)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started, thread.is_alive)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(30)


def healthy(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/healthz")
    status = connection.getresponse().status
    connection.close()
    return status


def half_sent(port: int, source: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), 60, (source, 0))
    made.sendall(HALF)
    return made


def ended(connection: socket.socket) -> bool:
    """Whether the server closed a connection; waits for it, and reads what is still coming."""
    try:
        while connection.recv(1000):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
def test_two_thousand_half_sent_requests_stop_nobody(service: Any, source: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held: list[socket.socket] = []
    try:
        with serving(service, head_seconds=600) as port:
            held += [half_sent(port, source) for _ in range(2050)]
            assert healthy(port) == 200
            first = ended(held[0])
            assert first  # the one that waited longest made room
    finally:
        for one in held:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_many_addresses_are_bounded_together(service: Any) -> None:
    with serving(service, in_all=40, head_seconds=600) as port:
        held = [half_sent(port, f"127.0.0.{2 + i % 20}") for i in range(60)]
        assert healthy(port) == 200
        assert ended(held[0])
        for one in held:
            one.close()


def test_an_address_with_too_many_makes_room_among_its_own(service: Any) -> None:
    with serving(service, per_address=5, head_seconds=600) as port:
        bystander = half_sent(port, "127.0.0.9")
        held = [half_sent(port, "127.0.0.2") for _ in range(12)]
        assert ended(held[0])
        bystander.sendall(b"\r\n\r\n")
        assert bystander.recv(1000).startswith(b"HTTP/1.1 401")  # heard: it has no key
        for one in (bystander, *held):
            one.close()


def test_a_request_under_way_is_not_dropped_for_one_that_waits(service: Any) -> None:
    with serving(service, per_address=3, head_seconds=600) as port:
        key = service.keys["gate"]
        busy = socket.create_connection(("127.0.0.1", port), 60)
        body = json.dumps(service.halves).encode()
        head = (
            f"POST /v1/decisions HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        busy.sendall(head.encode() + body[:5])
        held = [half_sent(port) for _ in range(6)]
        assert ended(held[0])
        busy.sendall(body[5:])
        assert busy.recv(1000).startswith(b"HTTP/1.1 200")
        for one in (busy, *held):
            one.close()


def test_a_head_that_does_not_end_in_time_is_closed(service: Any) -> None:
    with serving(service, head_seconds=HEAD_SECONDS) as port:
        silent = socket.create_connection(("127.0.0.1", port), 60)
        half = half_sent(port)
        assert ended(silent) and ended(half)
        blank = socket.create_connection(("127.0.0.1", port), 60)
        blank.sendall(b"GET /healthz HTTP/1.1\r\nHost: gate\r\n\r\n")
        assert blank.recv(5000).startswith(b"HTTP/1.1 200")
        blank.sendall(b"\r\n")  # between requests, and then nothing
        assert ended(blank)
        assert healthy(port) == 200


def test_a_body_that_nobody_reads_does_not_hold_a_connection(service: Any) -> None:
    with serving(service, head_seconds=HEAD_SECONDS) as port:
        made = socket.create_connection(("127.0.0.1", port), 60)
        made.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: gate\r\nContent-Length: 1000\r\n\r\nx")
        assert made.recv(5000).startswith(b"HTTP/1.1 401")
        made.sendall(b"x")  # more of the body: it is not idle, and never done
        assert ended(made)


def test_a_head_of_64_mb_is_refused_at_once(service: Any) -> None:
    with serving(service, head_seconds=600) as port:
        made = half_sent(port)
        sent, piece = 0, b"x" * (1 << 16)
        try:
            while sent < 64 << 20:
                sent += made.send(piece)
        except ConnectionError:
            pass
        assert sent < 64 << 20  # it was not listened to any more
        assert healthy(port) == 200
        made.close()


def test_a_body_is_not_taken_for_a_head(service: Any) -> None:
    with serving(service, head_bytes=1000) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        key = {"Authorization": f"Bearer {service.keys['gate']}"}
        body = json.dumps(service.halves) + " " * 200_000
        for _ in range(3):
            headers = {**key, "Content-Type": "application/json"}
            connection.request("POST", "/v1/decisions", body, headers)
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()
        connection.close()


@pytest.mark.parametrize("trusted", [True, False])
def test_a_proxy_is_believed_only_where_it_was_named(service: Any, trusted: bool) -> None:
    stream = StringIO()
    before = (LOGGER.handlers, LOGGER.level, LOGGER.propagate)
    log_to(stream)
    try:
        proxies = frozenset({"127.0.0.1"}) if trusted else frozenset()
        with serving(service, proxies=proxies) as port:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            headers = {"X-Forwarded-For": "203.0.113.9"}
            for path in ("/v1/regions/cats", "/queue"):
                connection.request("GET", path, headers=headers)
                connection.getresponse().read()
            connection.close()
    finally:
        LOGGER.handlers, LOGGER.level, LOGGER.propagate = before
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    lines = [line for line in lines if line["event"] == "request"]
    assert [line["route"] for line in lines] == ["/v1/regions/{region}", "/queue"]
    assert {line["client"] for line in lines} == {"203.0.113.9" if trusted else "127.0.0.1"}
