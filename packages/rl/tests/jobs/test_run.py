"""Jobs side by side: nothing twice, failures named, and no process that outlives the program."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import until

from rapo.jobs.run import as_they_end, checked_slots, run_jobs


@dataclass(frozen=True)
class Write:
    """A job that writes a file, and counts how often."""

    key: str
    needs: tuple = ()
    fails: bool = False
    seconds: float = 0.0

    def done(self, root):
        return (root / self.key).exists()

    def run(self, root):
        if self.fails:
            raise ValueError(f"no {self.key}")
        if any(not need.done(root) for need in self.needs):
            raise AssertionError("began before what it needs")
        with (root / self.key).open("a") as file:
            file.write("x")


@dataclass(frozen=True)
class Kill(Write):
    def run(self, root):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("slots", [1, 2])
def test_jobs_run_once_after_what_they_need(tmp_path, slots):
    ge, rapo = Write("GE"), Write("RAPO")
    jobs, told = [Write("shield", (ge, rapo)), rapo, Write("other")], []
    for _ in range(2):
        run_jobs(jobs, tmp_path, slots=slots, on_progress=lambda *at: told.append(at))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("GE", "RAPO", "shield", "other"), "x"
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("slots", [1, 2])
def test_a_failing_job_is_named_and_does_not_stop_the_others(tmp_path, slots):
    bad, fine = Write("bad", fails=True), Write("fine")
    with pytest.raises(ValueError, match=r"^1 jobs failed, 1 wait for them:\nbad: ValueError"):
        run_jobs([Write("lost", (bad,)), bad, fine], tmp_path, slots=slots)
    assert [path.name for path in tmp_path.iterdir()] == ["fine"]


def test_a_process_ended_from_outside_is_told(tmp_path):
    jobs = [Kill("first"), Kill("second")]
    with pytest.raises(ValueError, match=r"ended from outside.*same command goes on"):
        run_jobs(jobs, tmp_path, slots=2)


def test_calls_give_their_results_by_key():
    calls = {n: (pow, n, 2) for n in range(5)}
    for slots in (1, 2):
        assert dict(as_they_end(calls, slots)) == {n: n * n for n in range(5)}
    assert dict(as_they_end({}, 2)) == {}


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from test_run import Wait
from rapo.jobs.run import run_jobs
run_jobs([Wait("first"), Wait("second")], Path(sys.argv[3]), slots=2)
"""


@dataclass(frozen=True)
class Wait(Write):
    def run(self, root):
        (root / f"{self.key}.pid").write_text(str(os.getpid()))
        until(lambda: False)


def gone(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{process}/stat").read_text().split()[2] == "Z"


def test_processes_end_with_the_program_that_started_them(tmp_path):
    """An orphan would train on and hold its folder."""
    fixtures = str(Path(sys.modules["waiting"].__file__).parent)
    words = [sys.executable, "-c", KILLED, str(Path(__file__).parent), fixtures, str(tmp_path)]
    program = subprocess.Popen(words)
    paths = [tmp_path / "first.pid", tmp_path / "second.pid"]
    until(
        lambda: all(path.exists() and path.read_text() for path in paths),
        lambda: program.poll() is None,
    )
    program.kill()
    program.wait()
    processes = [int(path.read_text()) for path in paths]
    until(lambda: all(map(gone, processes)))


def test_an_unknown_engine_and_no_jobs_at_all_are_refused():
    with pytest.raises(ValueError, match="engine must be local or ray, got 'cloud'"):
        checked_slots("cloud", 1)
    with pytest.raises(ValueError, match="jobs must be a whole number >= 1, got 0"):
        checked_slots("local", 0)
    assert checked_slots("ray", None) >= 1
