"""One replica in a process of its own: a gate on PostgreSQL, clients, and a way to be stuck."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from chaos.client import STREAMS, Client, Pipe
from rapo_gate import Gate, StoreError

FROZEN = 9.0
"""Seconds that an appender stops with the lock in its hands; the server cuts it off earlier."""
_LOOK = 0.2


class Replica(NamedTuple):
    """A running replica, as its parent sees it."""

    name: str
    process: int
    pipe: int

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.process, number)

    def end(self) -> bytes:
        """Kill it; returns what it still had to say."""
        self.signal(signal.SIGKILL)
        os.waitpid(self.process, 0)
        rest = b""
        while piece := os.read(self.pipe, 1 << 16):
            rest += piece
        os.close(self.pipe)
        return rest


def start(name: str, address: str, steps: dict[str, int], started: float) -> Replica:
    """Fork a replica; the parent must not have threads.

    Args:
        name: of the replica; its clients' streams begin with it.
        address: of the database.
        steps: where the streams go on.
        started: Unix seconds for reports.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            _live(name, address, Pipe(write), steps, started)
        finally:
            os._exit(1)
    os.close(write)
    return Replica(name, child, read)


def _live(name: str, address: str, pipe: Pipe, steps: dict[str, int], started: float) -> None:
    """SIGUSR1: stop in the middle of the next transaction. SIGTERM: send no more."""
    freeze, ending = threading.Event(), threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: freeze.set())
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    try:
        gate = Gate.open(address)
        gate.store.appending = _stoppable(gate.store.appending, freeze, pipe)  # type: ignore[method-assign]
        names = [f"{name}{i}" for i in range(STREAMS)]
        clients = [Client(gate, pipe, n, steps.get(n, 0), started) for n in names]
        for client in clients:
            client.start()
        while True:
            _tell_state(gate, name, pipe)
            if ending.is_set():
                for client in clients:
                    client.stopping.set()
                if not any(client.is_alive() for client in clients):
                    pipe.tell("quiet", name)
            time.sleep(_LOOK)
    except Exception as error:
        pipe.tell("error", repr(error).replace("\n", " "))


def _tell_state(gate: Gate, name: str, pipe: Pipe) -> None:
    try:
        position, fields = gate.read(lambda state: (state.position, state.field_hash()))
    except StoreError:
        return  # it is being read again
    pipe.tell("state", name, position, fields)


def _stoppable(appending: Any, freeze: threading.Event, pipe: Pipe) -> Any:
    """`appending` that stops before it commits, once, when `freeze` is set."""

    @contextmanager
    def held(*args: Any) -> Iterator[Any]:
        with appending(*args) as log:
            yield log
            if freeze.is_set():
                freeze.clear()
                pipe.tell("holding")
                time.sleep(FROZEN)

    return held
