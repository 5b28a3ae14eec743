"""`serve`: the service in one process, from an open port to a clean end."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

import uvicorn

from rapo.gate.gate import Gate
from rapo.gate.service.app import make_app
from rapo.gate.service.frame import silence_access_log
from rapo.gate.service.keys import Keys
from rapo.gate.service.logs import LOGGER, log_to

MOST_CONNECTIONS = 2000
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

    Raises:
        ValueError: there is something wrong with the gate, the keys or the port.
        OSError: the port is taken, a file is missing, or another process has the gate.
    """
    keys = Keys.load(key_file)
    with _listening(host, port) as listener:
        gate = Gate.open(address, create=False)
        try:
            _run(gate, keys, listener, metrics_need_key)
        finally:
            gate.close()
            LOGGER.info("closed")


def _run(gate: Gate, keys: Keys, listener: socket.socket, metrics_need_key: bool) -> None:
    sys.setswitchinterval(SWITCH)
    log_to()
    silence_access_log()
    # The server hands signals on once it has ended; they must not end the process before the
    # gate is closed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    config = uvicorn.Config(
        make_app(gate, keys, metrics_need_key=metrics_need_key),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=LONGEST_FAREWELL,
    )
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
