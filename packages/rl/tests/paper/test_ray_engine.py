"""Tasks on a real Ray cluster of two nodes on this machine, one of which dies."""

import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
import torch
from waiting import until

from rapo.agents.checkpoint import load_checkpoint
from rapo.agents.config import PPOConfig
from rapo.agents.run_config import graph_run
from rapo.cascade.setting import Setting
from rapo.jobs.lock import locked
from rapo.paper.ray_engine import RayEngine, ray_engine, run_quietly
from rapo.paper.schedule import make_engine, run_tasks
from rapo.paper.tasks import Evaluate, Train

SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)
UPDATES = 80
"""Of the training that is cut: long enough to be killed between its checkpoint and its end."""


def config(method, updates=2, **changes):
    options = {"nodes": 40, "setting": SHORT, "ppo": TINY, "steps": updates * 256, **changes}
    return graph_run(method=method, **options)


def goals():
    rapo = Train(config("RAPO", UPDATES))
    ge = Train(config("GE"))
    return [
        Evaluate(rapo, "RAPO", episodes=3),
        Evaluate(rapo, "off@rep", episodes=3),
        Evaluate(ge, "GE", episodes=3),
    ]


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


def run_while_a_node_dies(cluster, root):
    """Run the goals; their long training is on the second node when that dies. The events."""
    ray, made, second = cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    training, go, events = goals()[0].policy, root / "go", []

    def occupy(path):
        while not path.exists():
            time.sleep(0.05)

    head = NodeAffinitySchedulingStrategy(made.head_node.node_id, soft=False)
    ray.remote(num_cpus=1, scheduling_strategy=head)(occupy).remote(go)
    unfinished = Future()

    def disturb():
        try:
            until(training.checkpoint(root).exists)
            made.remove_node(second, allow_graceful=False)
            unfinished.set_result(not training.done(root))
        finally:
            go.touch()

    def run():
        with ray_engine(2) as engine:
            assert engine.slots == 2
            threading.Thread(target=disturb, daemon=True).start()
            watch = lambda event, task, share: events.append((event, task.key))  # noqa: E731
            run_tasks(goals(), root, engine, watch=watch)

    try:
        run()
    finally:
        go.touch()
    assert unfinished.result(), "the training was over before its node died"
    return events


def test_a_cluster_that_loses_a_node_gives_the_local_results(
    cluster, tmp_path, monkeypatch, inline, found
):
    """One test, so that parallel runners start one cluster."""
    ray, here, there = cluster[0], tmp_path / "local", tmp_path / "ray"
    there.mkdir()
    events = run_while_a_node_dies(cluster, there)
    run_tasks(goals(), here, inline())
    assert found(goals(), there) == found(goals(), here)
    one, two = (
        load_checkpoint(goals()[0].policy.checkpoint(root))["learner"]["weights"]
        for root in (here, there)
    )
    assert torch.equal(one, two)
    ends = [key for event, key in events if event == "done"]
    assert len(ends) == len(set(ends)) == 5  # two trainings, three evaluations, each told once
    assert not [event for event, _ in events if event == "failed"]
    assert ray.is_initialized()  # a cluster that was there before stays

    # the engine counts the nodes that are left
    until(lambda: ray.cluster_resources().get("CPU") == 1)
    engine = RayEngine(ray)
    engine.slots = 2
    held = ray.put(None)
    until(lambda: (held, None) in engine.collect([held], timeout=5))
    assert engine.slots == 1

    # a failing task is named, and does not stop the others
    bad, fine = Train(config("off@rep")), Train(config("GE", seed=7))
    monkeypatch.chdir(tmp_path)  # a relative folder means the caller's, not the worker's
    with pytest.raises(RuntimeError) as caught:
        run_tasks([bad, fine], Path("results"), engine)
    assert f"{bad.key}: ValueError('off@rep is an evaluation of" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert fine.done(tmp_path / "results")


def test_a_retry_waits_for_the_folder_and_does_nothing_twice(tmp_path, monkeypatch):
    task = Train(config("GE", updates=1))
    folder = tmp_path / "work" / task.key
    with locked(folder), pytest.raises(ValueError, match="in use"):
        run_quietly(task, tmp_path, patience=0.3)
    holder = locked(folder)
    holder.__enter__()
    pauses = []

    def pause(seconds):
        assert not task.done(tmp_path)
        pauses.append(seconds)
        holder.__exit__(None, None, None)

    monkeypatch.setattr("rapo.paper.ray_engine.sleep", pause)
    run_quietly(task, tmp_path)
    assert len(pauses) == 1  # it waited, and went on once the folder was free
    made = task.checkpoint(tmp_path).stat().st_mtime_ns
    run_quietly(task, tmp_path)
    assert task.checkpoint(tmp_path).stat().st_mtime_ns == made


def test_without_ray_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ValueError, match=r"needs Ray: pip install 'rapo-rl\[ray\]'"),
        make_engine("ray", 1),
    ):
        pass
