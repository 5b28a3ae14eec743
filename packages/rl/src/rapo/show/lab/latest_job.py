"""`LatestJob`: one job runs at a time; a newer one of its kind, or the user, ends an older one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
OnProgress = Callable[[int, int], None]
"""Called with what is done and how much there is; raises to end the job."""
Report = Callable[[str], OnProgress]
"""Name a part of a job; the result is to be called while that part runs."""


class SupersededError(Exception):
    """A newer request has taken the place of this one, or the user has stopped it."""


class LatestJob:
    """The page has one user, who moves sliders faster than metrics come: the last request counts.

    A newer job ends older ones of its kind; jobs of other kinds wait until it is done.
    """

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._newest: dict[str, int] = {}
        self._counting = threading.Lock()
        self._closed = False
        self._progress: tuple[str, float] | None = None

    @property
    def progress(self) -> tuple[str, float] | None:
        """The part of the job that runs, and the share of that part that is done."""
        return self._progress

    def run(self, kind: str, job: Callable[[Report], T]) -> T:
        """Wait for the job that runs, then return what `job` returns.

        Raises:
            SupersededError: a newer job of the kind has come, or the job was stopped.
        """
        with self._counting:
            ticket = self._newest[kind] = self._newest.get(kind, 0) + 1

        def check() -> None:
            if self._closed or self._newest[kind] != ticket:
                raise SupersededError

        def report(part: str) -> OnProgress:
            def on_progress(done: int, total: int) -> None:
                check()
                self._progress = part, done / total

            return on_progress

        with self._running:
            check()
            try:
                return job(report)
            finally:
                self._progress = None

    def stop(self) -> None:
        """End the job that runs and all that wait; later ones are run."""
        with self._counting:
            for kind in self._newest:
                self._newest[kind] += 1

    def close(self) -> None:
        """End the job that runs and all that wait; no later one is run."""
        self._closed = True
