"""The one thread that appends: it gathers what waits, commits it together, then answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from rapo_core.checks import UserError
from rapo_gate.events import Event, NewEvent
from rapo_gate.fold.state import State
from rapo_gate.log.store import Appending, StoreError

MOST_JOBS = 4096
"""Jobs of one commit."""
MOST_WAITING = 20_000
"""Jobs in the queue before callers are made to wait."""
GATHERING = 0.004
"""Seconds to gather decisions that nobody waits for, so that they share a commit."""
PATIENCE = 8.0
"""Seconds that callers wait for a log that is out of reach before they are told."""
AGAIN = 0.1
"""Seconds between attempts to reach it."""

Work = Callable[[State, Appending], tuple[Any, list[Event]]]
"""What a job does inside the transaction: its answer and the events that it appended. The state
takes the events in before the next job runs."""


class Job(NamedTuple):
    """Work for the writer, with a place for the answer; or one decision that nobody waits for."""

    work: Work | None
    draft: NewEvent | None = None
    future: Future[Any] | None = None
    since: float = 0.0
    """When it was put in, on the monotonic clock; of work that somebody waits for."""
    keys: Sequence[str] = ()
    """What the work is going to look for in the log, so that one question can bring it all."""


class Writer(threading.Thread):
    """Runs `commit` on everything that was put in, in order; `idle` when nothing came for a while.

    While the log is out of reach jobs are kept and tried again: for `PATIENCE` seconds if somebody
    waits for them, else until the log is back. Once as many wait as may, no more are taken.

    Args:
        commit: makes jobs durable, answers them and returns None; or returns why the log is out of
            reach: then nothing was answered, and the same jobs come again. It must not raise.
        idle: called after `pause` seconds without work.
        pause: seconds.
    """

    def __init__(
        self,
        commit: Callable[[list[Job]], StoreError | None],
        idle: Callable[[], None],
        pause: float,
    ) -> None:
        super().__init__(name="rapo-gate-writer", daemon=True)
        self._commit, self._idle, self._pause = commit, idle, pause
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._held: list[Job] = []
        self._problem: StoreError | None = None
        self._ended = False

    def put(self, job: Job) -> None:
        """Queue a job; waits while the queue is full.

        Raises:
            StoreError: the queue is full of what the log could not take.
        """
        if self._ended:
            raise UserError("the gate is closed")
        while self.waiting() >= MOST_WAITING:
            problem = self._problem
            if problem is not None:
                raise StoreError(f"{MOST_WAITING} jobs wait for a log out of reach: {problem}")
            time.sleep(GATHERING)
        self._queue.put(job)
        if self._ended:  # meanwhile: the thread may have looked for the last time
            self._refuse_rest()
            if job.future is None:
                raise UserError("the gate was closed; the decision may not have been logged")

    def waiting(self) -> int:
        """Jobs that are not in the log."""
        return self._queue.qsize() + len(self._held)

    def end(self) -> list[NewEvent]:
        """Finish what is queued and stop.

        Returns:
            Decisions that the log, out of reach for `PATIENCE` seconds more, could not take.
        """
        self._ended = True
        self._queue.put(None)
        if self is not threading.current_thread():
            self.join()
        return [job.draft for job in self._held if job.draft is not None]

    def _refuse_rest(self) -> None:
        self.join()
        left = self._held
        self._held = []
        while not self._drain():
            pass
        self._give_up(StoreError("the gate is closed"), time.monotonic())
        self._held = left

    def run(self) -> None:
        """Until `end`."""
        going = True
        while going:
            going = self._gather()
            if self._held:
                self._try()
            elif going:
                self._idle()
        last = time.monotonic() + PATIENCE
        while self._held and time.monotonic() < last:
            if self._problem is not None:
                time.sleep(AGAIN)
            self._try()
        self._give_up(self._problem or StoreError("the gate was closed"), time.monotonic())

    def _gather(self) -> bool:
        """Take in what waits; False once nothing will come any more."""
        if self._problem is not None:
            time.sleep(AGAIN)
            return self._drain()
        try:
            job = self._queue.get(timeout=self._pause)
        except Empty:
            return True
        if job is None:
            return False
        self._held.append(job)
        going = self._drain()
        if going and all(job.future is None for job in self._held):
            time.sleep(GATHERING)
            going = self._drain()
        return going

    def _drain(self) -> bool:
        while True:
            try:
                job = self._queue.get_nowait()
            except Empty:
                return True
            if job is None:
                return False
            self._held.append(job)

    def _try(self) -> None:
        """Commit the oldest jobs, or let those go that have waited long enough."""
        while self._held:
            jobs = self._held[:MOST_JOBS]
            self._problem = self._commit(jobs)
            if self._problem is not None:
                self._give_up(self._problem, time.monotonic() - PATIENCE)
                return
            del self._held[: len(jobs)]

    def _give_up(self, problem: StoreError, before: float) -> None:
        """Answer jobs that somebody has waited for since `before` or longer."""
        kept = []
        for job in self._held:
            if job.future is None or job.since > before:
                kept.append(job)
            elif job.future.set_running_or_notify_cancel():
                job.future.set_exception(problem)
        self._held = kept
