"""Jobs on a real Ray cluster of two nodes on this machine, one of which dies."""

import threading
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from waiting import until

from rapo.agents.config import PPOConfig
from rapo.agents.run_config import graph_run
from rapo.agents.saved_run import load_state
from rapo.cascade.setting import Setting
from rapo.jobs.cluster import attempt_once
from rapo.jobs.lock import locked
from rapo.jobs.run import run_jobs
from rapo.jobs.tables import read_table
from rapo.paper.jobs import Evaluation, Policy, PolicyJob, jobs_of

SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)
UPDATES = 80
"""Of the training that is cut: long enough to be killed between its first saving and its end."""


def config(method, updates=2, **changes):
    options = {"nodes": 40, "setting": SHORT, "ppo": TINY, "steps": updates * 256, **changes}
    return graph_run(method=method, **options)


@pytest.fixture
def cluster():
    """Two nodes of one processor each, both on this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'rapo-rl[ray]'")
    from ray.cluster_utils import Cluster

    if ray.is_initialized():
        pytest.skip("this process is on another Ray cluster")
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    patch.delenv("RAY_ADDRESS", raising=False)
    made = Cluster()
    try:
        made.add_node(**node, include_dashboard=False)
        second = made.add_node(**node)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield ray, made, second
    finally:
        ray.shutdown()
        made.shutdown()
        patch.undo()


def jobs():
    """Two jobs; the training of the first is long."""
    rapo, ge = Policy(config("RAPO", UPDATES)), Policy(config("GE"))
    return jobs_of(
        [
            Evaluation(rapo, "RAPO", episodes=3),
            Evaluation(rapo, "off@rep", episodes=3),
            Evaluation(ge, "GE", episodes=3),
        ]
    )


def run_while_a_node_dies(cluster, root):
    """Run the jobs; the long training is on the second node when that node dies."""
    ray, made, second = cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    long, go, told = jobs()[0], root / "go", []

    def occupy(path):
        while not path.exists():
            time.sleep(0.05)

    head = NodeAffinitySchedulingStrategy(made.head_node.node_id, soft=False)
    ray.remote(num_cpus=1, scheduling_strategy=head)(occupy).remote(go)
    unfinished = Future()

    def disturb():
        try:
            until(long.policy.weights(root).exists)
            made.remove_node(second, allow_graceful=False)
            unfinished.set_result(not long.policy.ready(root))
        finally:
            go.touch()

    try:
        threading.Thread(target=disturb, daemon=True).start()
        run_jobs(jobs(), root, engine="ray", slots=2, on_progress=lambda *at: told.append(at))
    finally:
        go.touch()
    assert unfinished.result(), "the training was over before its node died"
    return told


def test_a_cluster_that_loses_a_node_gives_the_local_results(cluster, tmp_path, monkeypatch):
    """One test, so that parallel runners start one cluster."""
    ray, here, there = cluster[0], tmp_path / "local", tmp_path / "ray"
    there.mkdir()
    assert run_while_a_node_dies(cluster, there) == [(1, 2), (2, 2)]  # each job ends once
    run_jobs(jobs(), here)
    for job in jobs():
        for name in ("episodes", "curves"):
            one, two = (read_table(job.folder(root) / f"{name}.parquet") for root in (here, there))
            pd.testing.assert_frame_equal(one, two)
    one, two = (load_state(jobs()[0].policy.folder(root))["weights"] for root in (here, there))
    assert np.array_equal(one, two)
    assert ray.is_initialized()  # a cluster that was there before stays

    # a failing job is named, and does not stop the others
    bad, fine = PolicyJob(Policy(config("off@rep"))), PolicyJob(Policy(config("GE", seed=7)))
    monkeypatch.chdir(tmp_path)  # a relative folder means the caller's, not the worker's
    with pytest.raises(ValueError, match="off@rep is an evaluation of") as caught:
        run_jobs([bad, fine], Path("results"), engine="ray")
    assert bad.key in str(caught.value) and "Traceback" not in str(caught.value)
    assert fine.done(tmp_path / "results")


def test_a_retry_waits_for_the_folder_and_does_nothing_twice(tmp_path, monkeypatch):
    job = PolicyJob(Policy(config("GE", updates=1)))
    with locked(job.folder(tmp_path), "a lost node"):
        assert "in use by a lost node" in str(attempt_once(job, tmp_path, patience=0.3))
    holder = locked(job.folder(tmp_path))
    holder.__enter__()
    pauses = []

    def pause(seconds):
        assert not job.done(tmp_path)
        pauses.append(seconds)
        holder.__exit__(None, None, None)

    monkeypatch.setattr("rapo.jobs.cluster.sleep", pause)
    assert attempt_once(job, tmp_path) is None
    assert len(pauses) == 1  # it waited, and went on once the folder was free
    made = job.policy.weights(tmp_path).stat().st_mtime_ns
    assert attempt_once(job, tmp_path) is None
    assert job.policy.weights(tmp_path).stat().st_mtime_ns == made
