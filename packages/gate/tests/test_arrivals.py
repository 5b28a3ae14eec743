"""What arrives: late, unknown, bad, twice; and what reading leaves behind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from rapo_gate import ConflictError, HarmReport
from rapo_gate.fold.fold import UNIT
from rapo_gate.fold.snapshot import dump

Make = Callable[..., Any]
SECONDS = 60.0


def test_late_reports_wait_for_a_reviewer(make: Make) -> None:
    platform = make()
    for i in range(12):
        result = platform.report(f"s{i}", f"g{i % 2}", at=platform.now - 5 * SECONDS)
        assert (result.status, result.code) == ("review", 202)
    platform.tick(4)
    assert platform.bad().G == 0.0
    waiting = platform.gate.read(lambda state: sorted(state.review))
    platform.gate.confirm(reports=waiting, reason="they are right")
    platform.tick(4)
    assert platform.bad().G > 0
    assert platform.bad().H > 0
    assert platform.gate.read(lambda state: not state.review)


def test_unknown_regions(make: Make) -> None:
    platform = make()
    decision = platform.gate.decide(["new", "good"], [0.5, 0.5])
    assert decision.psi.tolist() == [1.0, 1.0]
    platform.gate.flush()
    assert platform.gate.read(lambda state: state.traffic.now.unknown) == 3  # bad, good, new
    result = platform.report("s0", regions=["nowhere"])
    assert (result.status, result.code) == ("quarantined", 202)
    platform.tick(4)
    assert "nowhere" not in platform.gate.fields()
    platform.gate.confirm(reports=[result.report_id], reason="it exists")
    platform.tick()
    assert platform.gate.fields()["nowhere"].G > 0


def test_bad_reports_are_refused_one_by_one(make: Make) -> None:
    platform = make()
    good: dict[str, Any] = {
        "source": "s", "harm": 0.5, "signal": "user", "at": platform.now, "regions": ["bad"]
    }  # fmt: skip
    wrong: list[dict[str, Any]] = [
        {"harm": math.nan}, {"harm": math.inf}, {"harm": -0.1}, {"harm": 1.1}, {"harm": "1"},
        {"harm": True}, {"harm": 10**400}, {"at": platform.now + 61},
        {"at": platform.now - 21 * SECONDS}, {"at": math.nan}, {"source": ""}, {"signal": "x" * 65},
        {"regions": []}, {"regions": None}, {"regions": [1.5]}, {"regions": "bad"},
        {"decision_id": "d"}, {"decision_id": "d", "regions": None}, {"source": "a\nb"},
    ]  # fmt: skip
    before, events = platform.hash(), platform.events
    reports = [HarmReport(**{**good, "key": f"{i}", **bad}) for i, bad in enumerate(wrong)]
    results = platform.gate.report(reports)
    assert [(r.status, r.code) for r in results] == [("refused", 422)] * len(wrong)
    assert all(r.error and r.report_id is None for r in results)
    assert (platform.hash(), platform.events) == (before, events)
    mixed = [*reports[:2], HarmReport(**{**good, "key": "fine"}), *reports[2:4]]
    assert [r.code for r in platform.gate.report(mixed)] == [422, 422, 200, 422, 422]
    assert platform.events == events + 1


def test_a_report_may_name_the_guilty_among_what_a_decision_showed(make: Make) -> None:
    platform = make()
    decision = platform.gate.decide(["bad", "good", "idle"], [0.4, 0.4, 0.2]).decision_id
    early = platform.report("s0", decision_id=decision, regions=["bad"])
    assert early.code == 200
    platform.gate.expose(decision, ["bad", "good"])
    at = platform.now - 3 * SECONDS  # what was shown when is the decision's to say
    assert platform.report("s1", decision_id=decision, regions=["bad"], at=at).code == 200
    before = platform.events
    for region in ("idle", "elsewhere"):
        result = platform.report("s2", decision_id=decision, regions=["bad", region])
        assert (result.status, result.code) == ("refused", 422)
        assert repr(region) in result.error
    assert platform.events == before
    platform.tick(3)
    rows = platform.gate.read(lambda state: state.ledger.rows.copy())
    names = platform.gate.read(lambda state: [state.regions.names[r] for r in rows["region"]])
    assert names == ["bad", "bad"]
    assert rows["amount"].tolist() == [UNIT, UNIT]
    assert platform.gate.fields()["good"] == (0.0, 0.0, 1.0)


def test_a_report_counts_once(make: Make) -> None:
    platform = make()
    report = HarmReport("s", "k", 0.5, "user", platform.now, regions=["bad"])
    other = HarmReport("s", "k", 0.6, "user", platform.now, regions=["bad"])
    first, twin, conflict = platform.gate.report([report, report, other])
    assert (first.code, first.duplicate) == (200, False)
    assert (twin.code, twin.duplicate, twin.report_id) == (200, True, first.report_id)
    assert (conflict.code, conflict.status) == (409, "refused")
    platform.tick(5)
    again, conflict = platform.gate.report([report, other])
    assert (again.status, again.duplicate, again.report_id) == ("accepted", True, first.report_id)
    assert conflict.code == 409


def test_a_request_has_one_answer(make: Make) -> None:
    platform = make()
    platform.gate.set_mode("enforce")
    first = platform.gate.decide(["bad", "good"], [0.5, 0.5], "r1")
    unseen = platform.gate.decide(["bad", "good"], [1.0, 0.0], "r2")
    platform.gate.override("good", 0.2, reason="changes answers")
    for way in (platform.gate.decide, lambda *a: platform.gate.decide_logged(*a).result()):
        again = way(["bad", "good"], [0.5, 0.5], "r1")
        assert again.q.tolist() == first.q.tolist() == [0.5, 0.5]
        assert (again.revision, again.decision_id) == (first.revision, first.decision_id)
        with pytest.raises(ConflictError, match="another body"):
            way(["bad", "good"], [0.4, 0.6], "r1")
        assert way(["bad", "good"], [1.0, 0.0], "r2").psi.tolist() == unseen.psi.tolist()


def test_psi_of_a_candidate_without_probability_is_remembered(make: Make) -> None:
    platform = make()
    platform.gate.override("good", 0.2, reason="to see it")
    asked = (["bad", "good"], [1.0, 0.0], "r")
    first = platform.gate.decide_logged(*asked).result()
    again = platform.gate.decide_logged(*asked).result()
    assert again.psi.tolist() == first.psi.tolist() == [1.0, 0.2]


def test_exposures_have_one_answer(make: Make) -> None:
    gate = make().gate
    decision = gate.decide(["bad", "good"], [0.5, 0.5])
    assert gate.expose(decision.decision_id, ["bad"])
    assert gate.expose(decision.decision_id, ["bad"])
    with pytest.raises(ConflictError):
        gate.expose(decision.decision_id, ["good"])
    with pytest.raises(ValueError, match="candidates"):
        gate.expose(gate.decide(["bad"], [1.0]).decision_id, ["good"])


def test_reads_never_write(make: Make) -> None:
    platform = make()
    platform.harm(3, sources=12, signals=2)
    events, gate = platform.events, platform.gate
    before = gate.read(dump)
    for _ in range(3):
        gate.fields(), gate.health(), gate.events(), gate.verify()
        gate.read(lambda state: (state.psi(), state.field_hash()))
    assert gate.read(dump) == before
    assert platform.events == events
