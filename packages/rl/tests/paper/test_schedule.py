"""Scheduling: nothing twice, nothing before its needs, and the same results in any order."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from waiting import until

from rapo.agents.config import PPOConfig
from rapo.agents.run_config import graph_run
from rapo.cascade.setting import Setting
from rapo.jobs.lock import locked
from rapo.paper.presets import QUICK, SMOKE
from rapo.paper.reproduce import study
from rapo.paper.schedule import local_engine, make_engine, needed, run_one, run_tasks
from rapo.paper.tasks import Evaluate, Guard, Train

SHORT = Setting.default().replace(horizons=(60, 20, 60), delay=10)
TINY = PPOConfig(envs=4, rollout=256, minibatch=64, epochs=1, hidden=16)


def config(method="GE", updates=2, **changes):
    options = {"nodes": 40, "setting": SHORT, "ppo": TINY, "steps": updates * 256, **changes}
    return graph_run(method=method, **options)


def goals(updates=2):
    rapo, ge = Train(config("RAPO", updates)), Train(config("GE"))
    return [
        Evaluate(ge, "GE", episodes=3),
        Evaluate(rapo, "RAPO", episodes=3),
        Evaluate(rapo, "off@rep", episodes=3),
    ]


@pytest.fixture(scope="module")
def alone(tmp_path_factory, inline):
    """The goals' results in one process, one after the other, and the order."""
    root = tmp_path_factory.mktemp("alone")
    engine = inline()
    assert run_tasks(goals(), root, engine) > 0
    return root, engine.executor.ran


def finish(task, root):
    task.piece(root).parent.mkdir(parents=True, exist_ok=True)
    task.piece(root).touch()


def test_what_is_needed_comes_once_and_in_order(tmp_path):
    plan = study("table1").plan(QUICK)
    order = [task.key for task in needed(plan, tmp_path)]
    assert len(order) == len(set(order))
    assert {task.key for task in plan} <= set(order)
    place = {key: i for i, key in enumerate(order)}
    for task in needed(plan, tmp_path):
        assert all(place[need.key] < place[task.key] for need in task.needs)
    trainings = {key for key in order if key.startswith("train-")}
    assert len(trainings) == 5 * len(QUICK.graph_seeds)  # GE, DR, PM-ST, PM-RNN, RAPO


def test_finished_goals_need_nothing_and_neither_does_what_only_they_needed(tmp_path):
    plan = study("table1").plan(SMOKE)
    for task in plan:
        finish(task, tmp_path)
    assert needed(plan, tmp_path) == []  # although no policy is there
    last = SMOKE.evaluation("off@rep", 0)
    last.piece(tmp_path).unlink()
    assert needed(plan, tmp_path) == [Train(SMOKE.config("RAPO", 0)), last]


def test_deleted_work_of_finished_pieces_is_not_made_again(alone, inline, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(alone[0], root)
    shutil.rmtree(root / "work")
    engine = inline()
    assert run_tasks(goals(), root, engine) == 0
    assert engine.executor.ran == [] and not (root / "work").exists()


def test_tasks_run_after_their_needs_in_the_order_of_the_plan(alone):
    order = alone[1]
    place = {key: i for i, key in enumerate(order)}
    assert len(order) == 5
    for task in goals():
        assert place[task.policy.key] < place[task.key]
    assert order[:2] == [goals()[0].policy.key, goals()[0].key]  # not all trainings first
    first, second = Train(config("GE", 1, seed=1)), Train(config("GE", 9))
    events = []

    class Dry:
        slots = 2

        def submit(self, task, root):
            return task.key

        def collect(self, handles, timeout):
            return [(handle, None) for handle in handles]

        def news(self):
            return [(first.key, 0.5)] if events[-1] == ("start", second.key) else []

    run_tasks([first, second], alone[0] / "none", Dry(), watch=lambda event, task, share: (
        events.append((event, task.key))))  # fmt: skip
    assert events[:3] == [("start", first.key), ("start", second.key), ("share", first.key)]


def test_what_a_policy_was_trained_for_comes_before_the_next_training(inline, tmp_path):
    """A run that is cut off leaves results, not trained policies that nobody evaluated."""
    ge, rapo = Train(config("GE")), Train(config("RAPO"))
    wanted = [
        Evaluate(ge, "GE", episodes=2),
        Evaluate(rapo, "RAPO", episodes=2),
        Evaluate(ge, "GE", episodes=3),
    ]
    engine = inline()
    run_tasks(wanted, tmp_path, engine)
    order = [ge, wanted[0], wanted[2], rapo, wanted[1]]
    assert engine.executor.ran == [task.key for task in order]


def test_never_more_tasks_than_slots(tmp_path):
    at_once = []

    class Dry:
        slots = 2
        running = 0

        def submit(self, task, root):
            self.running += 1
            at_once.append(self.running)
            return task.key

        def collect(self, handles, timeout):
            self.running -= 1
            return [(handles[0], None)]

        def news(self):
            return []

    run_tasks([Train(config(seed=s)) for s in range(7)], tmp_path, Dry())
    assert len(at_once) == 7 and max(at_once) == 2


def test_a_failing_task_is_named_and_does_not_stop_the_others(tmp_path, inline):
    bad = Train(config("off@rep"))  # not a method that is trained
    lost = Guard(Train(config("GE")), bad)
    fine = Evaluate(Train(config("GE")), "GE", episodes=2)
    told = []
    with pytest.raises(RuntimeError) as caught:
        run_tasks([Evaluate(lost, "Shield-UM"), fine], tmp_path, inline(),
                  watch=lambda event, task, share: told.append((event, task.key)))  # fmt: skip
    text = str(caught.value)
    assert text.startswith("1 tasks failed, 2 wait for them:\n")
    assert f"{bad.key}: ValueError('off@rep is an evaluation of a trained RAPO" in text
    assert fine.done(tmp_path)
    assert ("failed", bad.key) in told and ("start", lost.key) not in told


def test_results_do_not_depend_on_processes_and_order(alone, found, tmp_path):
    with local_engine(2) as engine:
        assert engine.slots == 2
        run_tasks([goals()[i] for i in (2, 0, 1)], tmp_path, engine)
    assert found(goals(), tmp_path) == found(goals(), alone[0])


@pytest.mark.parametrize("others", [0, 1])
def test_a_process_ended_from_outside_is_told_in_words(tmp_path, others):
    first, second = Train(config("RAPO", UPDATES)), Train(config("GE"))
    with local_engine(1) as engine:

        def watch(event, task, share):
            for pid in list(engine.executor._processes) if event == "share" else ():
                os.kill(pid, signal.SIGKILL)

        with pytest.raises(RuntimeError, match=r"ended from outside.*same command goes on"):
            run_tasks([first, second][: 1 + others], tmp_path, engine, watch=watch)
    assert not first.done(tmp_path) and not second.done(tmp_path)


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent / "fixtures")]
from test_schedule import UPDATES, goals, local_engine, run_tasks
with local_engine(1) as engine:
    run_tasks(goals(UPDATES), Path(sys.argv[2]), engine)
"""
UPDATES = 80
"""Of the training that is killed, between its first checkpoint (25) and its end."""


def free(folder):
    try:
        with locked(folder):
            return True
    except ValueError:
        return False


def test_a_killed_run_goes_on_and_redoes_nothing(tmp_path, inline, found):
    cut, whole, wanted = tmp_path / "cut", tmp_path / "whole", goals(UPDATES)
    killed = wanted[1].policy
    words = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(cut)]
    process = subprocess.Popen(words)
    until(killed.checkpoint(cut).exists, lambda: process.poll() is None)
    process.kill()
    process.wait()
    assert process.returncode == -signal.SIGKILL
    until(lambda: free(killed.checkpoint(cut).parent))  # the process that trained ends as well
    assert not killed.done(cut), "the training was over before it was killed"
    kept = [wanted[0].piece(cut), wanted[0].policy.checkpoint(cut)]
    before = [path.stat().st_mtime_ns for path in kept]
    engine = inline()
    run_tasks(wanted, cut, engine)
    assert engine.executor.ran == [killed.key, *(task.key for task in wanted[1:])]
    assert [path.stat().st_mtime_ns for path in kept] == before
    run_tasks(wanted, whole, inline())
    assert found(wanted, cut) == found(wanted, whole)


def test_shares_are_told_at_most_every_half_second(inline):
    told = []

    def run(root, tell):
        for step in range(1000):
            tell(step / 1000)

    run_one(SimpleNamespace(key="a", run=run), None, told.append)
    assert told == [("a", 0.0)]
    engine = inline()
    engine.channel.put(("a", 0.5))
    assert engine.news() == [("a", 0.5)] and engine.news() == []


def test_an_unknown_engine_is_named():
    with pytest.raises(ValueError, match="engine must be local or ray, got 'cloud'"):
        make_engine("cloud", 1)
