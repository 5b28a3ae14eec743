"""Whatever fails in a batch, log and state agree, and what was acknowledged is in the log."""

from __future__ import annotations

import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo_gate import Gate, GateConfig, HarmReport, StoreError, decide, engine, reports
from rapo_gate.events import DroppedError, Event, NewEvent
from rapo_gate.fold.state import State

CONFIG = GateConfig(D=2, D_max=10**6, confirm_ticks=20)
ERRORS: dict[str, Callable[[], Exception]] = {
    "store": lambda: StoreError("the disk is full"),
    "database": lambda: sqlite3.OperationalError("disk I/O error"),
    "system": lambda: OSError("no such device"),
    "dropped": lambda: DroppedError("a body"),
    "value": lambda: ValueError("a value"),
    "fault of ours": lambda: RuntimeError("a bug"),
}
STEPS = [
    *((reports, name) for name in ("take_in", "unpack_decision", "_tick", "_waits_for", "_result")),
    (decide, "unpack_decision"),
    (engine, "drafted"),
    *((State, name) for name in ("apply", "_decision", "_exposure", "_harmreport", "_tick")),
    *((State, name) for name in ("_confirm", "_rollback", "_resolve")),
    (Event, "data"),
]
"""Functions inside a batch, before and after each of which something may fail."""


class Fault:
    """Raises an error at one step; steps are counted from 0."""

    def __init__(self, at: int, kind: str) -> None:
        self.left, self.kind = at, kind

    def step(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise ERRORS[self.kind]()

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **kwargs: Any) -> Any:
            self.step()
            result = call(*args, **kwargs)
            self.step()
            return result

        return stepped


class Turn:
    """A transaction whose every call may fail, also after it was done."""

    def __init__(self, inner: Any, fault: Fault) -> None:
        self.inner, self.fault = inner, fault

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        return self.fault.around(value) if callable(value) else value


@contextmanager
def faulty(store: Any, fault: Fault) -> Iterator[None]:
    """A store whose transactions, and steps inside them, fail where the fault says."""
    appending = store.appending

    @contextmanager
    def failing(after: int | None = None, keys: Sequence[str] = ()) -> Iterator[Turn]:
        fault.step()
        with appending(after, keys) as log:
            yield Turn(log, fault)
            fault.step()

    names = [(owner, name) for owner, name in STEPS if hasattr(owner, name)]
    patches = [patch.object(o, n, fault.around(getattr(o, n))) for o, n in names]
    patches += [patch.object(store, "appending", failing), patch.object(store, "find",
                fault.around(store.find))]  # fmt: skip
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


class Rig:
    """A gate in a file, its clock, and batches that one transaction takes in."""

    def __init__(self, folder: str) -> None:
        self.path, self.now, self.keys = Path(folder) / "gate.db", 1_800_000_000.0, 0
        self.count = 0
        self.open(CONFIG)
        self.decisions = [self.gate.decide_logged(["a", "b"], [0.5, 0.5]).result().decision_id]
        self.reports = [self.gate.report([self.report(0)])[0].report_id]
        self.futures: list[Future[Any]] = []

    def open(self, config: GateConfig | None = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.gate = Gate.open(self.path, config, clock=lambda: self.now)

    def report(self, key: int) -> HarmReport:
        """A report on the first decision; key 0 is there already."""
        return HarmReport(f"s{key % 3}", f"k{key}", 0.5, "user", 1_800_000_000.0,
                          self.decisions[0], ["a"] if key % 2 else None)  # fmt: skip

    def put(self, op: str) -> Thread | None:
        """Queue an op while the writer is held."""
        gate = self.gate
        self.count += 1
        if op == "decide":
            gate.decide(["a", "c"], [0.5, 0.5], f"request {self.count}")
        elif op == "logged":
            self.futures.append(gate.decide_logged(["a", "d"], [0.5, 0.5]))
        elif op == "expose":
            self.futures.append(gate.expose_logged(self.decisions[0], ["b"]))
        elif op == "reports":
            self.keys += 3
            items = [self.report(k) for k in (*range(self.keys - 2, self.keys + 1), 0)]
            self.futures.append(gate.report_logged(items))
        else:
            what = {"reports": self.reports, "reason": "test"}
            acting = Thread(target=self._act, args=(getattr(gate, op), what))
            acting.start()
            return acting
        return None

    def _act(self, act: Callable[..., Any], what: dict[str, Any]) -> None:
        with suppress(Exception):
            act(**what)

    def play(self, ops: list[str], fault: Fault) -> list[Any]:
        """Results of a batch in which something fails: what each caller got, or its error."""
        self.futures = []
        lock, writer = self.gate.engine.lock, self.gate.engine._writer
        lock.acquire()
        self.now += 60.0 * 3
        acting = [self.put(op) for op in ops]
        while writer.waiting() < len(ops):
            time.sleep(1e-4)
        with faulty(self.gate.store, fault):
            lock.release()
            results = [f.exception() or f.result() for f in self.futures]
            for thread in acting:
                if thread is not None:
                    thread.join()
        return results

    def agree(self) -> None:
        """Log and state agree."""
        if self.gate.engine.broken:
            self.gate.close()
            self.open()
        self.gate.flush()
        assert self.gate.read(lambda s: s.position) == self.gate.store.last()
        assert self.gate.verify()["ok"]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(["decide", "logged", "expose", "reports", "confirm", "rollback"]),
             min_size=1, max_size=5),
    st.integers(0, 60), st.sampled_from(sorted(ERRORS)),
)  # fmt: skip
def test_log_and_state_agree_whatever_fails(ops: list[str], at: int, kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(folder)
        try:
            results = rig.play(ops, Fault(at, kind))
            rig.agree()
            logged = {e.position for e in rig.gate.store.read(0, 1000)}
            for result in results:
                if isinstance(result, list):
                    assert {r.report_id for r in result if r.report_id is not None} <= logged
            rig.now += 600.0
            rig.gate.tick()
            rig.agree()
            rig.gate.close()
            rig.open()
            rig.agree()
        finally:
            rig.gate.close()


@pytest.mark.parametrize("kind", ["store", "dropped"])
def test_log_and_state_agree_at_whatever_step_a_batch_fails(tmp_path: Path, kind: str) -> None:
    """One batch of everything, again and again, each time with the fault one step later."""
    rig, at, reached = Rig(str(tmp_path)), 0, True
    while reached:
        fault = Fault(at, kind)
        rig.play(["decide", "reports", "expose", "logged", "confirm", "reports", "decide"], fault)
        rig.agree()
        at, reached = at + 1, fault.left < 0
    assert at > 40
    rig.gate.close()
    rig.open()
    rig.agree()
    rig.gate.close()


def test_a_job_that_fails_after_it_appended_fails_alone(tmp_path: Path) -> None:
    """The others of its batch are done, in one more transaction."""
    rig = Rig(str(tmp_path))
    gate = rig.gate
    before = gate.store.last()

    def appends_and_fails(state: State, log: Any) -> Any:
        log.append(
            [NewEvent("Escalation", rig.now, None, b"", b'{"band":"x","seen":"y","tick":0}')]
        )
        raise DroppedError("a body")

    with gate.engine.lock:
        decision = gate.decide(["a"], [1.0], "first")
        bad = gate.engine.submit(appends_and_fails)
        good = gate.report_logged([rig.report(2)])
    with pytest.raises(DroppedError):
        bad.result()
    assert good.result()[0].status == "accepted"
    gate.flush()
    assert gate.store.last() == before + 2
    assert gate.decide(["a"], [1.0], "first").decision_id == decision.decision_id
    assert [e.kind for e in gate.events(before)] == ["Decision", "HarmReport"]
    rig.agree()
    gate.close()


def test_a_request_gets_the_logged_answer_after_a_failed_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision keeps its place while its batch is done again."""
    rig = Rig(str(tmp_path))
    gate, answers = rig.gate, []

    def appends_and_fails(state: State, log: Any) -> Any:
        log.append(
            [NewEvent("Escalation", rig.now, None, b"", b'{"band":"x","seen":"y","tick":0}')]
        )
        raise OSError("no such device")

    def asked_again() -> None:
        if not answers:  # after the failed batch was answered; psi has changed meanwhile
            gate.engine.view._psi[:] = 0.5
            answers.append(gate.decide(["a"], [1.0], "request"))

    with gate.engine.lock:
        first = gate.decide(["a"], [1.0], "request")
        bad = gate.engine.submit(appends_and_fails)
        monkeypatch.setattr(gate.engine, "_snapshot_if_due", asked_again)
    assert isinstance(bad.exception(), OSError)
    gate.flush()
    (logged,) = [e for e in gate.events() if e.key and e.key.endswith(first.decision_id)]
    assert decide.unpack_decision(logged.body).psi[0] == first.psi[0] == answers[0].psi[0]
    gate.close()
