"""The one thread that appends: it gathers what waits, commits it together, then answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from rapo.gate.events import Draft, Event
from rapo.gate.state import State
from rapo.gate.store import Appending

MOST_JOBS = 4096
"""Jobs of one commit."""
MOST_WAITING = 20_000
"""Jobs in the queue before callers are made to wait."""
GATHERING = 0.004
"""Seconds to gather decisions that nobody waits for, so that they share a commit."""

Work = Callable[[State, Appending], tuple[Any, list[Event]]]
"""What a job does inside the transaction: its answer and the events that it appended. The state
takes the events in before the next job runs."""


class Job(NamedTuple):
    """Work for the writer, with a place for the answer; or one decision that nobody waits for."""

    work: Work | None
    draft: Draft | None = None
    future: Future[Any] | None = None


class Writer(threading.Thread):
    """Runs `commit` on everything that was put in, in order; `idle` when nothing came for a while.

    Args:
        commit: makes jobs durable and answers them; must not raise.
        idle: called after `pause` seconds without work.
        pause: seconds.
    """

    def __init__(
        self, commit: Callable[[list[Job]], None], idle: Callable[[], None], pause: float
    ) -> None:
        super().__init__(name="rapo-gate-writer", daemon=True)
        self._commit, self._idle, self._pause = commit, idle, pause
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._ended = False

    def put(self, job: Job) -> None:
        """Queue a job; waits while the queue is full."""
        if self._ended:
            raise ValueError("the gate is closed")
        while self._queue.qsize() >= MOST_WAITING:
            time.sleep(GATHERING)
        self._queue.put(job)

    def waiting(self) -> int:
        """Jobs in the queue."""
        return self._queue.qsize()

    def end(self) -> None:
        """Finish what is queued and stop."""
        self._ended = True
        self._queue.put(None)
        if self is not threading.current_thread():
            self.join()

    def run(self) -> None:
        """Until `end`."""
        going = True
        while going:
            jobs: list[Job] = []
            try:
                going = self._take(self._queue.get(timeout=self._pause), jobs)
            except Empty:
                self._idle()
                continue
            going = going and self._drain(jobs)
            if going and all(job.future is None for job in jobs):
                time.sleep(GATHERING)
                going = self._drain(jobs)
            if jobs:
                self._commit(jobs)

    @staticmethod
    def _take(job: Job | None, jobs: list[Job]) -> bool:
        if job is not None:
            jobs.append(job)
        return job is not None

    def _drain(self, jobs: list[Job]) -> bool:
        while len(jobs) < MOST_JOBS:
            try:
                if not self._take(self._queue.get_nowait(), jobs):
                    return False
            except Empty:
                break
        return True
