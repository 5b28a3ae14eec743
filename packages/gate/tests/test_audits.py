"""Questions answered by a process beside the server: the same, fresh, and in nobody's way."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rapo_gate import Gate, audit
from rapo_gate.actions import Allow, Rollback
from rapo_gate.service.app import make_app
from rapo_gate.service.audits import AuditProcess, Audits, of_state, region_at, top_regions
from rapo_gate.service.auth import Keys
from rapo_gate.service.lists import ListRequest, action_log, regions


@pytest.fixture
def beside(service: Any) -> Iterator[AuditProcess]:
    service.scar()
    made = AuditProcess(service.gate, seconds=900)
    yield made
    made.close()


def test_it_answers_as_the_gate_itself_would(service: Any, beside: AuditProcess) -> None:
    assert beside.worker.process is None  # nobody asked
    here = Audits(service.gate)
    for question, args in (
        (Gate.chain, ("diets",)), (of_state, (top_regions, 10)), (Gate.bias, ()),
        (Gate.queue, ()), (Gate.reporters, ()), (of_state, (audit.overview,)),
        (regions, (ListRequest(sort="H"),)), (action_log, ()),
        (Gate.act, (Rollback(source="s0", dry_run=True),)),
    ):  # fmt: skip
        assert beside.ask_waiting(question, *args) == here.ask_waiting(question, *args), question
    with pytest.raises(LookupError, match="not known"):
        beside.ask_waiting(of_state, region_at, "nowhere")
    with pytest.raises(ValueError, match="nothing was reported"):
        beside.ask_waiting(Gate.act, Rollback(source="nobody", dry_run=True))
    assert service.mark()[0] == service.gate.store.last()
    here.close()


def test_what_was_done_is_in_the_next_answer(service: Any, beside: AuditProcess) -> None:
    assert beside.ask_waiting(of_state, region_at, "diets")["psi"] < 1
    for remove in (False, True) * 3:
        service.gate.act(Allow("diets", remove=remove, reason="r"))
        assert (beside.ask_waiting(of_state, region_at, "diets")["psi"] < 1) == remove


def test_a_process_that_dies_is_started_again(service: Any, beside: AuditProcess) -> None:
    beside.ask_waiting(Gate.bias)
    first = beside.worker.process
    assert first is not None
    first.kill()
    first.wait()
    assert beside.ask_waiting(of_state, region_at, "diets")["region"] == "diets"
    second = beside.worker.process
    assert second is not None and second.pid != first.pid
    beside.close()
    assert second.wait(60) != 0 and beside.worker.process is None


def test_questions_hold_up_neither_decisions_nor_reports_nor_each_other_for_ever(
    service: Any, beside: AuditProcess
) -> None:
    beside.ask_waiting(Gate.bias)
    process = beside.worker.process
    assert process is not None
    app = make_app(service.gate, Keys.of(service.keys), audits=beside, pages=False)
    key = {"Authorization": f"Bearer {service.keys['admin']}"}
    with TestClient(app) as client:
        os.kill(process.pid, signal.SIGSTOP)  # a question that takes as long as we like
        beside.seconds = 0.2
        try:
            late = client.get("/v1/regions/diets/chain", headers=key)
            assert late.status_code == 503 and late.headers["Retry-After"]
            tried = client.post("/v1/allow?dry_run=true", json={"region": "diets"}, headers=key)
            assert tried.status_code == 503
            made = client.post("/v1/decisions", json=service.halves, headers=key)
            assert made.status_code == 200
            items = {"items": [service.report(key="new")]}
            assert client.post("/v1/reports", json=items, headers=key).json()["results"][0][
                "status"
            ] == "accepted"  # fmt: skip
            done = {"region": "diets", "reason": "r"}
            assert client.post("/v1/allow", json=done, headers=key).status_code == 200
            assert client.get("/healthz").status_code == 200
        finally:
            os.kill(process.pid, signal.SIGCONT)
        beside.seconds = 900
        found = client.get("/v1/regions/diets", headers=key).json()
        assert found["psi"] == 1 and beside.worker.process is process


def test_who_waits_for_a_turn_waits_no_longer_than_it_said(beside: AuditProcess) -> None:
    beside.ask_waiting(Gate.bias)
    process = beside.worker.process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    found: list[Any] = []
    asking = threading.Thread(target=lambda: found.append(beside.ask_waiting(Gate.queue)))
    asking.start()
    try:
        while beside.worker._asking.acquire(blocking=False):  # until the other has its turn
            beside.worker._asking.release()
        with pytest.raises(TimeoutError):
            beside.worker.ask(Gate.bias, (), 0, 0.1)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    asking.join(60)
    assert len(found) == 1


def test_verification_folds_in_a_process_of_its_own(
    service: Any, beside: AuditProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def here(*_: Any) -> Any:
        raise AssertionError("it was folded in the server")

    monkeypatch.setattr("rapo_gate.engine.replayed", here)
    found = beside.verify_waiting()
    assert found["ok"] and found["fields"] == found["replay"]
    assert found["position"] == service.gate.store.last()


def test_closing_does_not_wait_for_an_answer(service: Any, beside: AuditProcess) -> None:
    beside.ask_waiting(Gate.bias)
    process = beside.worker.process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    failed: list[Exception] = []

    def ask() -> None:
        try:
            beside.ask_waiting(Gate.bias)
        except Exception as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    beside.close()
    asking.join(60)
    assert not asking.is_alive() and len(failed) == 1
