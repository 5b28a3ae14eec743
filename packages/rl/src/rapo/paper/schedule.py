"""Run tasks in the order of their needs, on processes of this machine or on a Ray cluster.

Results live in the folder `root` alone; an engine only says where a task runs. A task that is
there is not run again, nor is what only finished tasks needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from rapo.paper.pool import channel, pool
from rapo.paper.task import Task
from rapo_core.checks import UserError, whole_number

ENGINES = ("local", "ray")
News = tuple[str, float]
"""Key of a running task and the share of it that is done."""
LOST = (
    "a process that ran tasks was ended from outside, perhaps for want of memory; the same command "
    "goes on where it stopped (with a smaller --jobs it needs less memory)"
)


class Engine(Protocol):
    """Where tasks run."""

    slots: int
    """Tasks at a time."""

    def submit(self, task: Task, root: Path) -> Any:
        """Start a task; a handle."""
        ...

    def collect(self, handles: Iterable[Any], timeout: float) -> list[tuple[Any, str | None]]:
        """Handles that are done by now, each with what went wrong, if anything."""
        ...

    def news(self) -> list[News]:
        """What running tasks have told since the last call."""
        ...


def needed(goals: Sequence[Task], root: Path) -> list[Task]:
    """Tasks to run for the goals, each once, what it needs before it."""
    order: dict[str, Task] = {}

    def visit(task: Task) -> None:
        if task.key in order or task.done(root):
            return
        for part in task.needs:
            visit(part)
        order[task.key] = task

    for goal in goals:
        visit(goal)
    return list(order.values())


def run_tasks(
    goals: Sequence[Task],
    root: Path,
    engine: Engine,
    *,
    watch: Callable[[str, Task, float], None] = lambda event, task, share: None,
) -> float:
    """Run whatever the goals still need; the seconds that tasks took, added up.

    Args:
        goals: tasks whose results are wanted.
        root: folder of the results.
        engine: where to run.
        watch: called with `start`, `share`, `done` or `failed`, the task, and the share done.

    Raises:
        RuntimeError: tasks failed; those that did not need them are done nevertheless.
    """
    todo = {task.key: task for task in needed(goals, root)}
    open_needs = {key: {n.key for n in task.needs if n.key in todo} for key, task in todo.items()}
    running: dict[Any, Task] = {}
    started: dict[str, float] = {}
    failed: dict[str, str] = {}
    spent = 0.0
    while open_needs or running:
        # in the plan's order, but what a finished task was for before anything is begun anew: a
        # run that is cut off then leaves few trained policies behind whose results are not there
        ready = [key for key, needs in open_needs.items() if not needs]
        ready.sort(key=lambda key: not todo[key].needs)
        for key in ready[: engine.slots - len(running)]:
            del open_needs[key]
            started[key] = perf_counter()
            running[engine.submit(todo[key], root)] = todo[key]
            watch("start", todo[key], 0.0)
        if not running:  # all that is left waits for what failed
            break
        for key, share in engine.news():
            watch("share", todo[key], share)
        for handle, error in engine.collect(list(running), timeout=0.2):
            task = running.pop(handle)
            spent += perf_counter() - started[task.key]
            if error is not None:
                failed[task.key] = error
                watch("failed", task, 0.0)
                continue
            watch("done", task, 1.0)
            for needs in open_needs.values():
                needs.discard(task.key)
    if failed:
        lines = "\n".join(f"{key}: {error}" for key, error in failed.items())
        raise RuntimeError(f"{len(failed)} tasks failed, {len(open_needs)} wait for them:\n{lines}")
    return spent


class LocalEngine:
    """Processes of this machine, one thread each."""

    def __init__(self, executor: Any, slots: int, channel: Any) -> None:
        self.executor, self.slots, self.channel = executor, slots, channel

    def submit(self, task: Task, root: Path) -> Future[None]:
        """Start a task in a process."""
        try:
            future: Future[None] = self.executor.submit(run_one, task, root, self.channel.put)
        except BrokenExecutor as error:  # the pool takes no more after a process was lost
            raise RuntimeError(LOST) from error
        return future

    def collect(
        self, handles: Iterable[Future[None]], timeout: float
    ) -> list[tuple[Future[None], str | None]]:
        """Finished processes' tasks."""
        done, _ = wait(handles, timeout=timeout, return_when=FIRST_COMPLETED)
        return [(f, _words(f.exception())) for f in done]

    def news(self) -> list[News]:
        """Shares that tasks told."""
        found = []
        while not self.channel.empty():
            found.append(self.channel.get())
        return found


def _words(error: BaseException | None) -> str | None:
    if error is None:
        return None
    return LOST if isinstance(error, BrokenExecutor) else repr(error)


def run_one(task: Task, root: Path, put: Callable[[News], None]) -> None:
    """A task in a process of its own; tells its share at most every half second."""
    last = [0.0]

    def tell(share: float) -> None:
        if perf_counter() - last[0] > 0.5:
            last[0] = perf_counter()
            put((task.key, share))

    task.run(root, tell)


@contextmanager
def local_engine(jobs: int) -> Any:
    """An engine on `jobs` processes."""
    with channel() as news, pool(jobs) as executor:
        yield LocalEngine(executor, jobs, news)


def checked_slots(engine: str, jobs: int | None) -> int:
    """Tasks at a time, one per core if `jobs` is None; an unknown engine is refused as well."""
    if engine not in ENGINES:
        raise UserError(f"engine must be {' or '.join(ENGINES)}, got {engine!r}")
    return whole_number("jobs", os.cpu_count() or 1 if jobs is None else jobs, 1)


def make_engine(name: str, jobs: int) -> AbstractContextManager[Engine]:
    """`local` processes, or a `ray` cluster."""
    if name == "local":
        return local_engine(jobs)
    if name == "ray":
        from rapo.paper.ray_engine import ray_engine

        return ray_engine(jobs)
    raise UserError(f"engine must be local or ray, got {name!r}")
