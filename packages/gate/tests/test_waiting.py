"""What has been reported but does not count yet can be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rapo_gate import audit

Make = Callable[..., Any]


def test_reports_that_are_not_due_are_in_the_chain_and_with_their_reporter(make: Make) -> None:
    platform = make()
    by_region = platform.report("ann")
    decision = platform.gate.decide(["bad", "good"], [0.5, 0.5])
    by_decision = platform.report("bob", decision_id=decision.decision_id)
    gate = platform.gate
    chain = gate.chain("bad")
    assert chain["reports"] == []
    assert {r["report_id"] for r in chain["due"]} == {by_region.report_id, by_decision.report_id}
    assert all(r["counts_at"] > platform.now for r in chain["due"])
    assert [(r["source"], r["waiting"], r["reports"]) for r in gate.read(audit.reporters)] == [
        ("ann", 1, 0),
        ("bob", 1, 0),
    ]
    platform.tick(gate.config.D + 1)
    chain = gate.chain("bad")
    assert chain["due"] == []
    assert len(chain["reports"]) == 2
    assert {r["waiting"] for r in gate.read(audit.reporters)} == {0}


def test_an_admitted_late_report_counts_in_the_next_tick(make: Make) -> None:
    platform = make()
    exposed_at = platform.now
    platform.tick(platform.gate.config.D + 3)
    late = platform.report("ann", at=exposed_at)
    platform.gate.confirm([late.report_id], reason="it is so")
    (due,) = platform.gate.chain("bad")["due"]
    assert platform.now < due["counts_at"] <= platform.now + 60
