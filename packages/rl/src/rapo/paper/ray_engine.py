"""Tasks on a Ray cluster whose nodes share the results folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rapo.jobs.lock import locked
from rapo.paper.pool import THREADS
from rapo.paper.schedule import News, run_one
from rapo.paper.task import Task
from rapo.paper.tasks import Evaluate
from rapo_core.checks import UserError

RETRIES = 20
"""Nodes or workers that a task may lose before it counts as failed."""
PATIENCE = 120.0
"""Seconds to wait for the folder of a training whose lost node has not let go of it."""


class RayEngine:
    """One processor a task; a task whose node dies is run again elsewhere and goes on there."""

    def __init__(self, ray: Any) -> None:
        self.ray, self.slots = ray, _processors(ray)
        one_thread = {"env_vars": dict.fromkeys(THREADS, "1")}
        remote = ray.remote(num_cpus=1, max_retries=RETRIES, runtime_env=one_thread)
        self.run = remote(run_quietly)

    def submit(self, task: Task, root: Path) -> Any:
        """Start a task on the cluster, whose processes work in folders of their own."""
        return self.run.remote(task, root.resolve())

    def collect(self, handles: Iterable[Any], timeout: float) -> list[tuple[Any, str | None]]:
        """Finished tasks; nodes that came or went meanwhile count from now on."""
        done, _ = self.ray.wait(list(handles), num_returns=1, timeout=timeout)
        self.slots = _processors(self.ray)
        found: list[tuple[Any, str | None]] = []
        for handle in done:
            try:
                self.ray.get(handle)
                found.append((handle, None))
            except Exception as error:  # Ray's own, or around what the task raised
                found.append((handle, repr(getattr(error, "cause", None) or error)))
        return found

    def news(self) -> list[News]:
        """Nothing: tasks on other machines are silent until they are done."""
        return []


def run_quietly(task: Task, root: Path, patience: float = PATIENCE) -> None:
    """A task on a node, perhaps after another node that ran it was lost.

    A lost node's process may live on for a moment: its folder is waited for, and what it finished
    is not done again.
    """
    if not isinstance(task, Evaluate):
        _let_go(root / "work" / task.key, patience)
    if not task.done(root):
        run_one(task, root, lambda news: None)


def _let_go(folder: Path, patience: float) -> None:
    """Wait until nobody holds the folder of a run."""
    end = monotonic() + patience
    while True:
        try:
            with locked(folder):
                return
        except ValueError:
            if monotonic() > end:
                raise
            sleep(0.2)


def _processors(ray: Any) -> int:
    """Of all nodes that are alive; at least one, so that tasks wait for a node to come."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextmanager
def ray_engine(jobs: int) -> Iterator[RayEngine]:
    """An engine on the cluster at RAY_ADDRESS, or on one of `jobs` processors started here."""
    try:
        import ray
    except ImportError:
        raise UserError("--engine ray needs Ray: pip install 'rapo-rl[ray]'") from None
    mine = not ray.is_initialized()
    if mine:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        address = os.environ.get("RAY_ADDRESS")
        if address:
            try:
                ray.init(address=address, **quiet)
            except ConnectionError as error:
                raise UserError(f"no Ray cluster at RAY_ADDRESS={address}: {error}") from None
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(num_cpus=jobs, include_dashboard=False, **quiet)
    try:
        yield RayEngine(ray)
    finally:
        if mine:
            ray.shutdown()
