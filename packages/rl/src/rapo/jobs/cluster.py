"""Jobs on a Ray cluster whose nodes share the folder of the results."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rapo.jobs.job import Job
from rapo.jobs.lock import InUseError
from rapo_core.checks import UserError

RETRIES = 20
"""Nodes or workers that a job may lose before it counts as failed."""
PATIENCE = 120.0
"""Seconds that a job waits for a folder which a process of a lost node has not let go of."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_on_cluster(jobs: Sequence[Job], root: Path, slots: int) -> Iterator[tuple[str, str | None]]:
    """Run jobs, one on each processor; yield the key of each as it ends, and what went wrong.

    Nodes may come and go. A job whose node is lost is run again on another one.

    Args:
        jobs: that need no other job's results any more.
        root: folder of the results.
        slots: processors of the cluster that is started here if RAY_ADDRESS names none.
    """
    with connected(slots) as ray:
        run = ray.remote(num_cpus=1, max_retries=RETRIES, runtime_env={"env_vars": ONE_THREAD})(
            attempt_once
        )
        running: dict[Any, str] = {}
        waiting = list(jobs)
        while waiting or running:
            # a cluster that has lost nodes may have fewer processors than jobs that still run
            free = max(0, processors(ray) - len(running))
            for job in waiting[:free]:
                # a process of the cluster works in a folder of its own
                running[run.remote(job, root.resolve())] = job.key
            del waiting[:free]
            ended, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            for handle in ended:
                yield running.pop(handle), _outcome(ray, handle)


def _outcome(ray: Any, handle: Any) -> str | None:
    try:
        error: str | None = ray.get(handle)
    except Exception as lost:  # Ray's own: the job's are returned
        return repr(lost)
    return error


def attempt_once(job: Job, root: Path, patience: float = PATIENCE) -> str | None:
    """Run a job on a node, perhaps after another node that ran it was lost.

    The process of a lost node may live on for a moment and hold a folder: wait until the folder is
    free. What that process finished is not done again.
    """
    end = monotonic() + patience
    while not job.done(root):
        try:
            job.run(root)
        except InUseError as error:
            if monotonic() > end:
                return repr(error)
            sleep(0.2)
        except Exception as error:  # the other jobs go on, and the caller names this one
            return repr(error)
        else:
            break
    return None


def processors(ray: Any) -> int:
    """How many processors the nodes have that are alive; at least one, for a node that may come."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextmanager
def connected(slots: int) -> Iterator[Any]:
    """Ray on the cluster at RAY_ADDRESS, or on one of `slots` processors that is started here."""
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
            ray.init(num_cpus=slots, include_dashboard=False, **quiet)
    try:
        yield ray
    finally:
        if mine:
            ray.shutdown()
