"""Jobs side by side: in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from functools import cache
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rapo.jobs.job import Job, unfinished
from rapo_core.checks import UserError, whole_number

Key = TypeVar("Key", bound=Hashable)
OnProgress = Callable[[int, int], None]
"""Called with how many jobs are done, and how many there are."""
ENGINES = ("local", "ray")
LOST = (
    "a process that ran jobs was ended from outside, perhaps for want of memory; the same command "
    "goes on where it stopped (with a smaller --jobs it needs less memory)"
)


def checked_slots(engine: str, jobs: int | None) -> int:
    """How many jobs run at a time: one per core if `jobs` is None.

    Raises:
        UserError: the engine is unknown, or `jobs` is not a whole number above 0.
    """
    if engine not in ENGINES:
        raise UserError(f"engine must be {' or '.join(ENGINES)}, got {engine!r}")
    return whole_number("jobs", os.cpu_count() or 1 if jobs is None else jobs, 1)


def run_jobs(
    jobs: Sequence[Job],
    root: Path,
    *,
    engine: str = "local",
    slots: int = 1,
    on_progress: OnProgress = lambda done, total: None,
) -> None:
    """Run the jobs that are not done yet, and first what they need.

    Args:
        jobs: whose results are wanted.
        root: folder of the results.
        engine: `local` processes, or a `ray` cluster whose nodes share the folder.
        slots: jobs at a time; a single one runs in this process. A cluster has as many as it has
            processors.
        on_progress: called when a job ends.

    Raises:
        UserError: jobs failed. The others have been run nevertheless.
    """
    todo = unfinished(jobs, root)
    failed: dict[str, str] = {}
    done = waiting = 0
    for wave in ([job for job in todo if not job.needs], [job for job in todo if job.needs]):
        ready = [job for job in wave if not any(need.key in failed for need in job.needs)]
        waiting += len(wave) - len(ready)
        for key, error in _ends(ready, root, engine, slots):
            done += 1
            if error is not None:
                failed[key] = error
            on_progress(done, len(todo))
    if failed:
        lines = "\n".join(f"{key}: {error}" for key, error in failed.items())
        raise UserError(f"{len(failed)} jobs failed, {waiting} wait for them:\n{lines}")


def _ends(
    jobs: Sequence[Job], root: Path, engine: str, slots: int
) -> Iterator[tuple[str, str | None]]:
    """Run jobs that wait for nothing; the key of each as it ends, and what went wrong."""
    if engine == "ray" and jobs:
        from rapo.jobs.cluster import run_on_cluster

        return run_on_cluster(jobs, root, slots)
    return as_they_end({job.key: (attempt, job, root) for job in jobs}, slots)


def run_with_bar(
    jobs: Sequence[Job], root: Path, *, engine: str, slots: int, console: Console | None
) -> None:
    """`run_jobs` with a line of what is to be done and a bar of progress on the console."""
    todo = unfinished(jobs, root)
    if not todo:
        return
    if console is not None:
        hours = sum(job.seconds for job in todo) / 3600
        console.print(
            f"{len(todo)} jobs, about {hours:.2g} hours of one thread, {slots} at a time",
            highlight=False,
        )
    with Progress(
        TextColumn("jobs"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=console is None,
        transient=True,
    ) as progress:
        bar = progress.add_task("jobs", total=len(todo))

        def on_progress(done: int, total: int) -> None:
            progress.update(bar, completed=done)

        run_jobs(jobs, root, engine=engine, slots=slots, on_progress=on_progress)


def attempt(job: Job, root: Path) -> str | None:
    """Run a job; what went wrong, or None."""
    try:
        job.run(root)
    except Exception as error:  # the other jobs go on, and the caller names this one
        return repr(error)
    return None


def as_they_end(
    calls: Mapping[Key, Sequence[Any]], slots: int | None = None
) -> Iterator[tuple[Key, Any]]:
    """Make calls side by side; yield the key and the result of each as it ends.

    Every process has one thread: small matrices on several threads of a small machine are slow.

    Args:
        calls: function and arguments, by key.
        slots: processes, default one per core; a single one is this process.

    Raises:
        UserError: a process was ended from outside.
    """
    from joblib import Parallel, delayed, parallel_config

    slots = min(os.cpu_count() or 1 if slots is None else slots, max(len(calls), 1))
    if slots == 1:
        for key, (function, *arguments) in calls.items():
            yield key, function(*arguments)
        return
    with parallel_config("loky", inner_max_num_threads=1):
        run = Parallel(slots, return_as="generator_unordered", batch_size=1, pre_dispatch=slots)
        ends = run(delayed(_call)(os.getpid(), key, *call) for key, call in calls.items())
    try:
        yield from ends
    except BrokenExecutor as error:
        raise UserError(LOST) from error
    finally:
        ends.close()


def _call(parent: int, key: Key, function: Callable[..., Any], *arguments: Any) -> tuple[Key, Any]:
    _end_with(parent)
    return key, function(*arguments)


@cache
def _end_with(parent: int) -> None:
    """End this process soon after the program that started it.

    An orphan would train on and hold its folder. Ctrl-C reaches every process of a terminal, and
    the program itself ends those that it started.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while _alive(parent):
            sleep(0.2)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
