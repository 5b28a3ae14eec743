"""Questions about a gate, and who answers them: this process, or one beside the server.

A question can take long, and Python's threads share one interpreter. A process of its own, which
follows the log and only reads, keeps questions from slowing a decision. Such a process gets a
question by its name, so every question is a function of a module, or a method of `Gate`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from rapo_gate import audit
from rapo_gate.events import Region
from rapo_gate.fold.snapshot import Replay, replayed
from rapo_gate.fold.state import State
from rapo_gate.gate import Gate
from rapo_gate.log.store import StoreError
from rapo_gate.service.guard import ANSWER_SECONDS, SLOW

IDLE_SECONDS = 900.0
"""A process that was asked nothing for so long ends; the next question starts another."""
LONGEST = 300.0
"""Seconds without an answer after which a process is taken to be stuck, and ended."""
_PROGRAM = "import sys; from rapo_gate.service.audits import work; work(int(sys.argv[1]))"

T = TypeVar("T")
Values = dict[str, Any]


# --- questions


def of_state(gate: Gate, look: Callable[..., T], *args: Any) -> T:
    """The result of a function of the state, with arguments."""
    return gate.read(lambda state: look(state, *args))


def top_regions(state: State, most: int) -> Values:
    """The regions with the largest scars."""
    return {
        "regions": audit.top_regions(state, most),
        "known": len(state.regions),
        "revision": state.revision,
    }


def regions_written(state: State, text: str) -> list[Region]:
    """The known regions that are written like a text: the string, then the integer."""
    regions: list[Region] = [text] if text in state.regions else []
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(text) in state.regions:
        regions.append(int(text))
    return regions


def region_written(state: State, text: str) -> Region:
    """The region that a part of a path names: a string if there is one, else an integer.

    Raises:
        LookupError: no decision ever had either.
    """
    regions = regions_written(state, text)
    if not regions:
        raise LookupError(f"region {text!r:.80} is not known: no decision ever had it")
    return regions[0]


def region_at(state: State, text: str) -> Values:
    """The view of the region that a part of a path names."""
    return audit.region_view(state, region_written(state, text))


def chain_at(gate: Gate, text: str, limit: int) -> Values:
    """The chain of the region that a part of a path names."""
    return gate.chain(of_state(gate, region_written, text), limit)


def replay_until(gate: Gate, until: int) -> Replay:
    """The log folded afresh up to a position."""
    return replayed(gate.store, until)


# --- who answers them


class Audits:
    """Questions answered in this process, on threads of their own: for tests and small gates."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        # Threads of their own: large batches of reports need those of the event loop.
        self._threads = ThreadPoolExecutor(4, "rapo-gate-audits")

    def ask_waiting(self, question: Callable[..., T], *args: Any) -> T:
        """The answer to a question; blocks until it is there."""
        return question(self.gate, *args)

    async def ask(self, question: Callable[..., T], *args: Any) -> T:
        """The answer to a question, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: self.ask_waiting(question, *args))

    async def verify(self) -> Values:
        """Fold the whole log afresh and compare."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.verify_waiting)

    def verify_waiting(self) -> Values:
        """As `verify`; blocks until it is done."""
        return self.gate.verify()

    def close(self) -> None:
        """Release what was started."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class AuditProcess(Audits):
    """Questions answered by a process that reads the same log.

    The first question starts the process; it is started again if it dies, and ended by `close`.
    Answers are as fresh as this process was when it asked: the other one follows the log until it
    has that position.

    Args:
        gate: the gate that is served.
        seconds: most time that a question may take.
    """

    def __init__(self, gate: Gate, seconds: float = ANSWER_SECONDS) -> None:
        super().__init__(gate)
        self.seconds = seconds
        self.worker = AuditWorker(gate.store.address)

    def ask_waiting(self, question: Callable[..., T], *args: Any) -> T:
        """The answer to a question; TimeoutError if it does not come in time."""
        position = self.gate.engine.state.position
        return self.worker.ask(question, args, position, self.seconds)

    def verify_waiting(self) -> Values:
        """As `verify`, by a process for that alone: it may take minutes."""
        worker = AuditWorker(self.gate.store.address)

        def replay(until: int) -> Replay:
            return worker.ask(replay_until, (until,), until, SLOW["/v1/verify"])

        try:
            return self.gate.verify(replay)
        finally:
            worker.close()

    def close(self) -> None:
        """End the process."""
        super().close()
        self.worker.close()


class AuditWorker:
    """One process that answers, and the pipe to it. It answers one question at a time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._asking = threading.Lock()
        self._numbers = count(1)
        self._pipe: Connection[Any, Any] | None = None
        self._ready = False
        self._waiting_since = 0.0
        """Time of the first question that has no answer yet; 0 if there is none."""
        self._closed = False
        self.process: subprocess.Popen[bytes] | None = None

    def ask(
        self, question: Callable[..., T], args: tuple[Any, ...], position: int, seconds: float
    ) -> T:
        """The answer of the process to a question about the log up to a position.

        Raises:
            TimeoutError: no answer came within `seconds`, the wait for other questions included.
            StoreError: the process died twice.
        """
        end = time.monotonic() + seconds
        if not self._asking.acquire(timeout=seconds):
            raise TimeoutError(f"other questions took more than {seconds:g} s")
        try:
            for _ in range(2):
                if self._closed:
                    raise StoreError("the gate is closed")
                pipe = self._started()
                try:
                    answer: T = self._send(
                        pipe, (next(self._numbers), question, args, position), end
                    )
                    return answer
                except TimeoutError:
                    raise
                except (EOFError, BrokenPipeError, ConnectionResetError):
                    self._end()  # the process died, or ended because it was idle
            raise StoreError("the process that answers audits died twice over this question")
        finally:
            self._asking.release()

    def _send(self, pipe: Connection[Any, Any], message: tuple[Any, ...], end: float) -> Any:
        """Send a question and wait for its answer until a time of the monotonic clock."""
        pipe.send(message)
        self._waiting_since = self._waiting_since or time.monotonic()
        while True:
            if not pipe.poll(max(0.0, end - time.monotonic())):
                raise TimeoutError("no answer came in time")
            number, kind, value = pipe.recv()
            self._ready = self._ready or number == 0
            if kind == "error" and number in (0, message[0]):
                self._waiting_since = 0.0
                raise value
            if number == message[0]:
                self._waiting_since = 0.0
                return value
            # Any other number is the answer to a question that nobody waits for any more.

    def _started(self) -> Connection[Any, Any]:
        """The pipe to a process that lives; a process that is stuck is ended first."""
        waited = time.monotonic() - self._waiting_since if self._waiting_since else 0.0
        stuck = self._ready and waited > LONGEST
        if self.process is not None and (stuck or self.process.poll() is not None):
            self._end()
        if self._pipe is None:
            ours, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, str(theirs.fileno())]
                self.process = subprocess.Popen(
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
                )
            self._pipe = Connection(ours.detach())
            self._pipe.send(self._address)  # not as an argument: it may hold a password
        return self._pipe

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self._pipe = self.process = None
        self._ready, self._waiting_since = False, 0.0

    def close(self) -> None:
        """End the process, whatever it does; a question under way fails."""
        self._closed = True
        process = self.process
        if process is not None:
            process.kill()  # whoever waits for its answer then finds the pipe closed
        with self._asking:
            self._end()


def work(descriptor: int) -> None:
    """Answer questions that come through a pipe until it closes; runs beside the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the pipe
    os.nice(5)  # decisions come first
    with Connection(descriptor) as pipe, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            address = pipe.recv()
            try:
                gate = Gate.open(address, create=False, read_only=True)
            except Exception as error:
                pipe.send((0, "error", error))
                return
            with gate:
                pipe.send((0, "ready", None))
                while pipe.poll(IDLE_SECONDS):
                    pipe.send(_answer(gate, *pipe.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _answer(
    gate: Gate, number: int, question: Callable[..., Any], args: tuple[Any, ...], position: int
) -> tuple[int, str, Any]:
    """The answer to a question or the error that it led to, with the question's number."""
    try:
        gate.engine.follow(position)
        return number, "answer", question(gate, *args)
    except Exception as error:
        return number, "error", error
