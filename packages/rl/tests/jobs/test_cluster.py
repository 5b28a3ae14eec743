"""A cluster gets no more jobs than it has processors, also after it lost nodes."""

import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from rapo.jobs.cluster import run_on_cluster


@dataclass
class Named:
    key: str
    needs = ()


def cluster(processors, most):
    """A stand-in for Ray: jobs end one at a time, and the cluster shrinks as they do."""
    running, sizes = [], iter(processors)

    class Handle:
        @staticmethod
        def remote(job, root):
            running.append(job.key)
            most.append(len(running))
            return job.key

    return SimpleNamespace(
        is_initialized=lambda: True,
        cluster_resources=lambda: {"CPU": next(sizes, processors[-1])},
        remote=lambda **options: lambda function: Handle,
        wait=lambda handles, num_returns, timeout: ([running.pop(0)], []),
        get=lambda handle: None if handle != "job 3" else "it failed",
    )


def test_a_cluster_that_loses_processors_gets_no_more_jobs(monkeypatch):
    most = []
    monkeypatch.setitem(sys.modules, "ray", cluster([4, 1], most))
    jobs = [Named(f"job {i}") for i in range(9)]
    ends = dict(run_on_cluster(jobs, Path("results"), 4))
    assert list(ends) == [job.key for job in jobs]
    assert [key for key, error in ends.items() if error] == ["job 3"]
    assert most == [1, 2, 3, 4, 1, 1, 1, 1, 1]  # the fifth waits until four have ended


def test_without_ray_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"needs Ray: pip install 'rapo-rl\[ray\]'"):
        list(run_on_cluster([Named("job")], Path("results"), 1))
