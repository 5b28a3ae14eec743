"""Kernels: what Python sees of them, and what the user is told while they are compiled."""

import io
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from rapo.cascade.draws import mix
from rapo_core import jit
from rapo_core.fields import next_scar
from rapo_core.jit import inlined, kernel, lean_kernel

PROGRAM = """
import sys
import numpy as np
from rapo_core import jit
jit.MOMENT = float(sys.argv[1])

@jit.inlined
def twice(x):
    return x + x

@jit.kernel
def first(a):
    return twice(a[0])

@jit.lean_kernel
def last(a):
    return twice(a[-1])

print(first(np.arange(3.0)), last(np.arange(3.0)))
"""


def run(folder, moment, **environment):
    """Run PROGRAM with numba's cache in `folder`: (stdout, lines of stderr)."""
    file = folder / "program.py"
    if not file.exists():  # numba's cache goes by the time of the file
        file.write_text(PROGRAM)
    inherited = {k: v for k, v in os.environ.items() if k != jit.QUIET}
    environment = {**inherited, "NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, str(file), str(moment)],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr.splitlines()


def test_a_cold_cache_is_announced_in_one_line_and_a_warm_one_is_not(tmp_path):
    out, lines = run(tmp_path, 0)
    assert out == "0.0 4.0\n"
    assert len(lines) == 1
    assert lines[0].startswith("rapo: compiling its kernels")
    assert "RAPO_QUIET=1" in lines[0]
    assert run(tmp_path, 0) == ("0.0 4.0\n", [])


@pytest.mark.parametrize(("moment", "environment"), [(0, {"RAPO_QUIET": "1"}), (1e9, {})])
def test_no_line_if_the_user_wants_none_or_it_takes_a_moment_only(tmp_path, moment, environment):
    assert run(tmp_path, moment, **environment) == ("0.0 4.0\n", [])


class Clock:
    """A clock that stands still until it is told to go on."""

    now = 100.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def told(monkeypatch, capsys):
    """A listener of its own with a kernel `ours`, its clock, and a count of the lines so far."""
    monkeypatch.delenv(jit.QUIET, raising=False)
    clock, announcer = Clock(), jit._Announcer()
    monkeypatch.setattr(jit, "time", clock)
    announcer.kernels.add(ours)
    return announcer, clock, lambda: capsys.readouterr().err.count("\n")


def ours():
    """Stands for a kernel's function."""


def theirs():
    """Stands for a function that is not one of ours."""


def report(function):
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


def test_the_line_comes_while_a_long_kernel_is_being_compiled(told):
    announcer, clock, lines = told
    announcer.on_start(report(ours))
    clock.now += jit.MOMENT - 0.01
    announcer.on_start(report(theirs))  # a function it inlines
    assert lines() == 0
    clock.now += 0.02
    announcer.on_end(report(theirs))
    assert lines() == 1
    clock.now += 5
    announcer.on_start(report(theirs))
    announcer.on_end(report(theirs))
    announcer.on_end(report(ours))
    announcer.on_start(report(ours))
    assert lines() == 0  # once is enough


def test_short_compilations_add_up_and_the_time_between_them_does_not_count(told):
    announcer, clock, lines = told
    for _ in range(2):
        announcer.on_start(report(ours))
        clock.now += 0.4 * jit.MOMENT
        announcer.on_end(report(ours))
        clock.now += 100
    assert lines() == 0
    announcer.on_start(report(ours))
    clock.now += 0.4 * jit.MOMENT
    announcer.on_start(report(theirs))
    assert lines() == 1


def test_the_users_own_kernels_are_none_of_our_business(told):
    announcer, clock, lines = told
    for event in (report(theirs), SimpleNamespace(data=None)):
        announcer.on_start(event)
        clock.now += 100
        announcer.on_end(event)
    announcer.on_start(report(ours))
    assert lines() == 0


@pytest.mark.parametrize("value", ["", "0"])
def test_quiet_can_be_switched_off_again(told, monkeypatch, value):
    announcer, clock, lines = told
    monkeypatch.setenv(jit.QUIET, value)
    announcer.on_start(report(ours))
    clock.now += 100
    announcer.on_start(report(theirs))
    assert lines() == 1


def test_without_a_stderr_nothing_is_written_anywhere(told, monkeypatch, capsys):
    announcer, clock, _ = told
    announcer.on_start(report(ours))
    clock.now += 100
    monkeypatch.setattr(sys, "stderr", None)
    announcer.on_start(report(theirs))
    assert capsys.readouterr().out == ""


def test_a_closed_stderr_does_not_stop_the_compilation(told, monkeypatch):
    announcer, clock, _ = told
    announcer.on_start(report(ours))
    clock.now += 100
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    announcer.on_start(report(theirs))


def test_python_runs_inlined_functions_as_python():
    assert next_scar(0.5, 0.4, 0.5, 1.0, 0.25) == pytest.approx(0.4)
    keys, counters = np.array([7, 2**63], np.uint64), np.array([3, 2**40], np.uint64)
    compiled = njit(lambda key, counter: mix(key, counter))
    expected = [compiled(k, c) for k, c in zip(keys, counters, strict=True)]
    assert mix(keys, counters).tolist() == expected  # also after it has been compiled


@kernel
def zeros_of(n):
    return np.zeros(n).sum()


@lean_kernel
def lean_zeros_of(n):
    return np.zeros(n).sum()


@inlined
def inlined_zeros_of(n):
    return np.zeros(n).sum()


def test_only_a_kernel_that_counts_references_may_make_arrays():
    assert zeros_of(3) == 0
    for refused in (lean_zeros_of, njit(lambda n: inlined_zeros_of(n))):
        with pytest.raises(TypingError):
            refused(3)
