"""What is asked about a gate, and who answers: this process, or one beside the server.

Questions can take long and Python's threads share one interpreter: a process of its own, which
follows the log and reads only, keeps them from slowing a decision.
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
from rapo_gate.gate import Gate
from rapo_gate.service.strict import ANSWER_SECONDS, SLOW
from rapo_gate.snapshot import Replay, replayed
from rapo_gate.state import State
from rapo_gate.store import StoreError

IDLE_SECONDS = 900.0
"""A process that nobody asked for so long ends; the next question starts another."""
LONGEST = 300.0
"""Seconds after which a process that gives no answer is taken to be stuck, and ended."""
_PROGRAM = "import sys; from rapo_gate.service.questions import answer; answer(int(sys.argv[1]))"

T = TypeVar("T")
Values = dict[str, Any]


# --- questions: functions of a gate and plain values; methods of `Gate` that change nothing, too


def named(gate: Gate, word: str) -> list[Region]:
    """The regions that are written like a word: a string, then an integer, or none."""
    return gate.read(lambda state: _written_like(state.regions, word))


def _written_like(known: Any, word: str) -> list[Region]:
    found: list[Region] = [word] if word in known else []
    digits = word.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(word) in known:
        found.append(int(word))
    return found


def region_named(known: Any, word: str) -> Region:
    """The region that a word of a path names: a string first, then an integer.

    Raises:
        LookupError: no decision ever had either.
    """
    found = _written_like(known, word)
    if not found:
        raise LookupError(f"region {word!r:.80} is not known: no decision ever had it")
    return found[0]


def top(gate: Gate, most: int) -> Values:
    """The regions with the largest scars."""

    def look(state: State) -> Values:
        return {
            "regions": audit.top_regions(state, most),
            "known": len(state.regions),
            "revision": state.revision,
        }

    return gate.read(look)


def region(gate: Gate, word: str) -> Values:
    """One region, by the word of a path."""
    return gate.read(lambda state: audit.region_view(state, region_named(state.regions, word)))


def chain_by_word(gate: Gate, word: str, limit: int) -> Values:
    """What made a region what it is, by the word of a path."""
    return gate.chain(gate.read(lambda state: region_named(state.regions, word)), limit)


def overview(gate: Gate) -> Values:
    """The gate at a glance."""
    return gate.read(audit.overview)


def outcomes(gate: Gate) -> Values:
    """What came back."""
    return gate.read(audit.outcomes)


def queue(gate: Gate) -> Values:
    """Reports that wait."""
    return {"reports": gate.queue()}


def reporters(gate: Gate) -> Values:
    """Who reported."""
    return {"reporters": gate.reporters()}


def replay_until(gate: Gate, until: int) -> Replay:
    """The log folded afresh up to a position."""
    return replayed(gate.store, until)


# --- who answers them


class Audits:
    """Questions answered in this process, on threads of their own: for tests and small gates."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        # Of their own: reports in large batches need the loop's threads.
        self._threads = ThreadPoolExecutor(4, "rapo-gate-audits")

    def ask_waiting(self, question: Callable[..., T], *args: Any) -> T:
        """The answer to a question; waits for it."""
        return question(self.gate, *args)

    async def ask(self, question: Callable[..., T], *args: Any) -> T:
        """As `ask_waiting`, without blocking the loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: self.ask_waiting(question, *args))

    async def verify(self) -> dict[str, Any]:
        """Fold the whole log afresh and compare."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.verify_waiting)

    def verify_waiting(self) -> dict[str, Any]:
        """As `verify`; waits for it."""
        return self.gate.verify()

    def close(self) -> None:
        """Let go of what was started."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class AuditProcess(Audits):
    """Questions answered by a process that reads the same log.

    It is started by the first question, started again if it dies, and ended with `close`. Answers
    are as fresh as this process was when it asked: the other follows the log until it has that.

    Args:
        gate: the gate that is served.
        seconds: most time that a question may take.
    """

    def __init__(self, gate: Gate, seconds: float = ANSWER_SECONDS) -> None:
        super().__init__(gate)
        self.seconds = seconds
        self.child = Child(gate.store.address)

    def ask_waiting(self, question: Callable[..., T], *args: Any) -> T:
        """The answer; TimeoutError if it does not come in time."""
        position = self.gate.engine.state.position
        return self.child.ask(question, args, position, self.seconds)

    def verify_waiting(self) -> dict[str, Any]:
        """The log folded afresh by a process for that alone: it may take minutes."""
        child = Child(self.gate.store.address)

        def replay(until: int) -> Replay:
            return child.ask(replay_until, (until,), until, SLOW["/v1/verify"])

        try:
            return self.gate.verify(replay)
        finally:
            child.close()

    def close(self) -> None:
        """End the process."""
        super().close()
        self.child.close()


class Child:
    """One process that answers, and the pipe to it; questions take turns."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._turn = threading.Lock()
        self._numbers = count(1)
        self._pipe: Connection[Any, Any] | None = None
        self._ready = False
        self._since = 0.0
        """When the question was asked that it has not answered yet; 0 if there is none."""
        self._closed = False
        self.process: subprocess.Popen[bytes] | None = None

    def ask(
        self, question: Callable[..., T], args: tuple[Any, ...], position: int, seconds: float
    ) -> T:
        """The answer of the process to a question about the log up to a position.

        Raises:
            TimeoutError: none came within `seconds`, the wait for one's turn included.
            StoreError: the process died twice.
        """
        last = time.monotonic() + seconds
        if not self._turn.acquire(timeout=seconds):
            raise TimeoutError(f"other questions took more than {seconds:g} s")
        try:
            for _ in range(2):
                if self._closed:
                    raise StoreError("the gate is closed")
                pipe = self._started()
                try:
                    message = (next(self._numbers), question, args, position)
                    return self._asked(pipe, message, last)  # type: ignore[no-any-return]
                except TimeoutError:
                    raise
                except (EOFError, BrokenPipeError, ConnectionResetError):
                    self._end()  # it died, or had nothing to do for long
            raise StoreError("the process that answers audits died twice over this question")
        finally:
            self._turn.release()

    def _asked(self, pipe: Connection[Any, Any], message: tuple[Any, ...], last: float) -> Any:
        pipe.send(message)
        self._since = self._since or time.monotonic()
        while True:
            if not pipe.poll(max(0.0, last - time.monotonic())):
                raise TimeoutError("no answer came in time")
            number, kind, value = pipe.recv()
            self._ready = self._ready or number == 0
            if kind == "error" and number in (0, message[0]):
                self._since = 0.0
                raise value
            if number == message[0]:
                self._since = 0.0
                return value
            # else the answer to a question that nobody waits for any more

    def _started(self) -> Connection[Any, Any]:
        """The pipe to a process that lives; one that is stuck is ended first."""
        stuck = self._ready and self._since and time.monotonic() - self._since > LONGEST
        if self.process is not None and (stuck or self.process.poll() is not None):
            self._end()
        if self._pipe is None:
            ours, theirs = socket.socketpair()
            with theirs:
                words = [sys.executable, "-W", "ignore", "-c", _PROGRAM, str(theirs.fileno())]
                self.process = subprocess.Popen(
                    words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
                )
            self._pipe = Connection(ours.detach())
            self._pipe.send(self._address)  # not an argument: it may hold a password
        return self._pipe

    def _end(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self._pipe = self.process = None
        self._ready, self._since = False, 0.0

    def close(self) -> None:
        """End the process, whatever it does; a question under way fails."""
        self._closed = True
        process = self.process
        if process is not None:
            process.kill()  # whoever waits for it finds the pipe closed
        with self._turn:
            self._end()


def answer(number: int) -> None:
    """Answer questions that come through a pipe until it closes; the process beside the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server; the pipe ends us
    os.nice(5)  # decisions come first
    with Connection(number) as pipe, warnings.catch_warnings():
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
                    pipe.send(_answered(gate, *pipe.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _answered(
    gate: Gate, number: int, question: Callable[..., Any], args: tuple[Any, ...], position: int
) -> tuple[int, str, Any]:
    try:
        gate.engine.follow(position)
        return number, "answer", question(gate, *args)
    except Exception as error:
        return number, "error", error
