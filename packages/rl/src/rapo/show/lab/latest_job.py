"""`Work`: one job at a time; a newer one of its kind, or the user, ends the one that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class SupersededError(Exception):
    """A newer request has taken the place of this one."""


class Work:
    """The page has one user, who moves sliders faster than numbers come: the last one counts.

    A newer job takes the place of older ones of its kind; jobs of other kinds wait for their turn.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._newest: dict[str, int] = {}
        self._count = threading.Lock()
        self._closed = False
        self._progress: tuple[str, float] | None = None

    @property
    def progress(self) -> tuple[str, float] | None:
        """What the job that runs said last: what it does, and which share of it is done."""
        return self._progress

    def tell(self, words: str, share: float) -> None:
        """Said by the job that runs."""
        self._progress = words, share

    def run(self, kind: str, job: Callable[[Callable[[], None]], T]) -> T:
        """What the job gives; it is handed a check that raises once it is superseded.

        Raises:
            SupersededError: a newer job of the kind has come.
        """
        with self._count:
            ticket = self._newest[kind] = self._newest.get(kind, 0) + 1

        def check() -> None:
            if self._closed or self._newest[kind] != ticket:
                raise SupersededError

        with self._turn:
            check()
            try:
                return job(check)
            finally:
                self._progress = None

    def stop(self) -> None:
        """End the job that runs, and all that wait; later ones are done."""
        with self._count:
            for kind in self._newest:
                self._newest[kind] += 1

    def close(self) -> None:
        """End the job that runs, and all that wait."""
        self._closed = True
