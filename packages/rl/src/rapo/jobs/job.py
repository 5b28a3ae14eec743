"""What a job is, and how it is named: by everything its result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol


class Job(Protocol):
    """Work that one process does from beginning to end; its results lie below a folder."""

    @property
    def key(self) -> str:
        """The job's name, which no other job has."""
        ...

    @property
    def needs(self) -> Sequence[Job]:
        """Jobs whose results this one reads. They need no other jobs themselves."""
        ...

    @property
    def seconds(self) -> float:
        """Roughly how long one thread will take."""
        ...

    def done(self, root: Path) -> bool:
        """Whether all results of the job are in the folder."""
        ...

    def run(self, root: Path) -> None:
        """Make the results that are missing; a run that was cut goes on where it stopped."""
        ...


def digest(values: Any) -> str:
    """Ten hexadecimal digits that stand for plain values.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}), digest([1]) == digest([2])
    (True, False)
    """
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def unfinished(jobs: Sequence[Job], root: Path) -> list[Job]:
    """Jobs that still have to run, each once; what they need comes before all that need it."""
    todo = {job.key: job for job in jobs if not job.done(root)}
    for job in list(todo.values()):
        for need in job.needs:
            if need.key not in todo and not need.done(root):
                todo[need.key] = need
    return sorted(todo.values(), key=lambda job: bool(job.needs))
