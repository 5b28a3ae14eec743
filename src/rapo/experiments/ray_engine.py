"""Tasks on a Ray cluster whose nodes share the results folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rapo.experiments.pool import THREADS
from rapo.experiments.schedule import News, run_one
from rapo.experiments.tasks import Task


class RayEngine:
    """One processor a task; a task whose node dies is run again elsewhere and goes on there."""

    def __init__(self, ray: Any, slots: int) -> None:
        self.ray, self.slots = ray, slots
        one_thread = {"env_vars": dict.fromkeys(THREADS, "1")}
        self.run = ray.remote(num_cpus=1, max_retries=-1, runtime_env=one_thread)(_quietly)

    def submit(self, task: Task, root: Path) -> Any:
        """Start a task on the cluster."""
        return self.run.remote(task, root)

    def collect(self, handles: Iterable[Any], timeout: float) -> list[tuple[Any, str | None]]:
        """Finished tasks."""
        done, _ = self.ray.wait(list(handles), num_returns=1, timeout=timeout)
        found: list[tuple[Any, str | None]] = []
        for handle in done:
            try:
                self.ray.get(handle)
                found.append((handle, None))
            except Exception as error:  # whatever the task raised, as Ray wraps it
                found.append((handle, repr(error)))
        return found

    def news(self) -> list[News]:
        """Nothing: tasks on other machines are silent until they are done."""
        return []


def _quietly(task: Task, root: Path) -> None:
    run_one(task, root, lambda news: None)


@contextmanager
def ray_engine(jobs: int) -> Iterator[RayEngine]:
    """An engine on the cluster at RAY_ADDRESS, or on one of `jobs` processors started here."""
    try:
        import ray
    except ImportError:
        raise ValueError("--engine ray needs Ray: pip install 'rapo[ray]'") from None
    mine = not ray.is_initialized()
    if mine:
        import os

        address = os.environ.get("RAY_ADDRESS")
        if address:
            ray.init(address=address, log_to_driver=False)
        else:
            ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False)
    try:
        yield RayEngine(ray, max(1, int(ray.cluster_resources().get("CPU", 1))))
    finally:
        if mine:
            ray.shutdown()
