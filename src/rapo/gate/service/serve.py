"""`serve`: the service in one process, from an open port to a clean end."""

from __future__ import annotations

import resource
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn

from rapo.gate.gate import Gate
from rapo.gate.service.app import make_app
from rapo.gate.service.audits import AuditProcess
from rapo.gate.service.auth import Keys
from rapo.gate.service.frame import LOGGER, log_to, silence_access_log
from rapo.gate.service.guard import Connections, guarded

MOST_REQUESTS = 2000
"""Requests under way; beyond, 503. It also bounds what waits for a commit."""
LONGEST_FAREWELL = 20
"""Seconds that requests under way have when the service ends."""
SWITCH = 0.0005
"""Seconds that one thread may hold the interpreter while others want it. Python's 5 ms would be
most of an answer's time when the writer works."""


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

    Then: no new connections, requests under way are answered, the log is made durable and a
    snapshot kept.

    Args:
        address: path or `postgresql://` address of a gate that exists.
        key_file: hashed keys, as `rapo gate init` writes them.
        host: address to listen on; the default lets only this machine in. The service speaks
            plain HTTP: for others, put a proxy with TLS in front.
        port: 0 for a free one.
        metrics_need_key: ask for a key of scope review at `/metrics`.
        trust_proxy: addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed;
            by default nobody's, since anybody can send them.
        connections_per_address: beyond, the one that has waited longest is closed.

    Raises:
        ValueError: there is something wrong with the gate, the keys or the port.
        OSError: the port is taken, a file is missing, or another process has the gate.
    """
    keys = Keys.load(key_file)
    with _listening(host, port) as listener:
        gate = Gate.open(address, create=False)
        try:
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
    """Settings of the server: bounded, quiet, and believing only the proxies that it was told."""
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
    silence_access_log()
    # Every connection is a file; the usual 1024 would be used up before any bound of ours.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 8192:
        most = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    # The server hands signals on once it has ended; they must not end the process before the
    # gate is closed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    host, port = listener.getsockname()[:2]
    LOGGER.info("serving", extra={"fields": {"url": f"http://{host}:{port}"}})
    uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    """An open port, taken before the gate is opened: a second server stops at once."""
    if not 0 <= port < 2**16:  # the resolver would take it modulo 65536
        raise ValueError(f"port must be in [0, 65535], got {port}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = found[0]
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
