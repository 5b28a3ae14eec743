"""Guardrails that people hold: overrides, the allow-list, modes, and bands that call them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]
SECONDS = 60.0


def test_an_override_holds_until_it_expires(make: Make) -> None:
    platform = make()
    until = platform.now + 3 * SECONDS
    platform.gate.override("good", 0.3, expires_at=until, reason="under review")
    assert platform.gate.fields()["good"].psi == 0.3
    platform.tick(2)
    assert platform.gate.fields()["good"].psi == 0.3
    platform.tick(1)
    assert platform.gate.fields()["good"].psi == 1.0
    platform.gate.override("good", 0.3, reason="for good")
    platform.gate.override("good", None, reason="enough")
    assert platform.gate.fields()["good"].psi == 1.0


def test_an_override_expires_though_nothing_else_happens(make: Make) -> None:
    platform = make()
    platform.tick(5)
    platform.gate.override("good", 0.3, expires_at=platform.now + SECONDS, reason="short")
    assert platform.gate.read(lambda state: not state.pending and not state.fold.live.size)
    assert platform.gate.engine.needs_tick()


def test_an_override_heeds_a_raised_floor(make: Make) -> None:
    platform = make()
    platform.gate.set_mode("enforce")
    first = platform.gate.decide_logged(["bad", "good"], [0.5, 0.5], "again").result()
    platform.gate.override("bad", 0.1, reason="closed")
    gated = platform.gate.decide_logged(["bad", "good"], [0.5, 0.5], "gated").result()
    platform.gate.configure({"params": {"psi_min": 0.5}}, reason="too harsh")
    decision = platform.gate.decide(["bad", "good"], [0.5, 0.5])
    assert decision.psi.tolist() == [0.5, 1.0]
    again = platform.gate.decide_logged(["bad", "good"], [0.5, 0.5], "gated").result()
    assert again.q.tolist() == gated.q.tolist() != first.q.tolist()


def test_the_allow_list_works_backwards_and_can_be_left(make: Make) -> None:
    platform = make()
    platform.harm(5, sources=12, signals=2)
    before = platform.hash()
    assert platform.bad().H > 0
    platform.gate.allow("bad", reason="a hospital")
    assert platform.bad() == (0.0, 0.0, 1.0)
    platform.gate.allow("bad", remove=True, reason="closed down")
    assert platform.hash() == before


def test_human_actions_need_reasons(make: Make) -> None:
    gate = make().gate
    actions: list[Callable[[], Any]] = [
        lambda: gate.allow("bad"), lambda: gate.override("bad", 0.5),
        lambda: gate.confirm(regions=["bad"]), lambda: gate.rollback(start=0.0),
        lambda: gate.configure({"cap_source": 2.0}), lambda: gate.allow("bad", reason="  "),
    ]  # fmt: skip
    for act in actions:
        with pytest.raises(ValueError, match="a reason of 1 to"):
            act()


def test_a_rollback_of_nothing_is_not_one_of_everything(make: Make) -> None:
    platform = make()
    platform.harm(5, sources=12, signals=2)
    before = platform.hash()
    with pytest.raises(ValueError, match="none"):
        platform.gate.rollback(reports=[], reason="nothing")
    assert platform.hash() == before


def test_dry_runs_change_nothing(make: Make) -> None:
    platform = make()
    platform.harm(5, sources=12, signals=2)
    gate, before, events = platform.gate, platform.hash(), platform.events
    effects = [
        gate.rollback(source="s0", dry_run=True), gate.allow("bad", dry_run=True),
        gate.override("bad", 0.7, dry_run=True), gate.confirm(regions=["good"], dry_run=True),
        gate.rollback(start=0.0, dry_run=True), gate.configure({"cap_source": 1.0}, dry_run=True),
    ]  # fmt: skip
    assert platform.hash() == before
    assert platform.events == events
    assert all(effect.dry_run and effect.revision is None for effect in effects)
    (changed,) = effects[0].regions
    assert changed.region == "bad"
    assert changed.psi[0] < changed.psi[1]
    assert effects[0].reports == 5
    done = gate.rollback(source="s0", reason="compromised")
    assert done.regions == effects[0].regions


def test_senseless_actions_leave_the_gate_whole(make: Make) -> None:
    gate: Any = make().gate
    actions: list[Callable[[], Any]] = [
        lambda: gate.override("bad", 10**400, reason="x"),
        lambda: gate.override("bad", 0.5, expires_at=10**400, reason="x"),
        lambda: gate.rollback(reports=[2**70], reason="x"),
        lambda: gate.rollback(start=10**400, reason="x"),
        lambda: gate.rollback(source=7, reason="x"),
        lambda: gate.configure({"cap_source": 10**400}, reason="x"),
        lambda: gate.configure({"params": 5}, reason="x"),
        lambda: gate.configure({"D": 3}, reason="x"),
        lambda: gate.set_mode("enforce", 10**400),
        lambda: gate.confirm(regions=5, reason="x"),
        lambda: gate.label([("bad", "x")], reason="x"),
        lambda: gate.allow("nowhere", reason="x"),
        lambda: gate.expose("nowhere", ["bad"]),
    ]
    for act in actions:
        with pytest.raises((ValueError, TypeError, LookupError)):
            act()
    assert gate.health()["status"] == "ok"
    gate.decide(["bad"], [1.0])
    gate.flush()


# --- modes


def test_a_new_gate_watches_only(make: Make) -> None:
    platform = make()
    platform.harm(5, sources=12, signals=2)
    decision = platform.gate.decide(["bad", "good"], [0.5, 0.5])
    assert decision.mode == "shadow"
    assert decision.q.tolist() == [0.5, 0.5]
    assert decision.psi[0] < 0.5
    platform.gate.set_mode("enforce")
    decision = platform.gate.decide(["bad", "good"], [0.5, 0.5])
    assert decision.mode == "enforce"
    assert decision.q[0] < 0.35


@pytest.mark.parametrize("percent", [0.0, 1.0, 30.0, 100.0])
def test_the_enforcing_percentage(make: Make, percent: float) -> None:
    platform = make()
    platform.gate.override("bad", 0.1, reason="to see it")
    platform.gate.set_mode("enforce", percent)
    view, count = platform.gate.engine.view, 20_000
    for name in ("0123456789ab{:x}", "{:024x}", "request {}"):
        share = sum(view.enforces(name.format(i)) for i in range(count)) / count
        spread = math.sqrt(percent / 100 * (1 - percent / 100) / count)
        assert abs(share - percent / 100) <= 5 * spread
    first = platform.gate.decide(["bad", "good"], [0.5, 0.5], "a request")
    second = platform.gate.decide(["bad", "good"], [0.5, 0.5], "a request")
    assert first.mode == second.mode
    assert first.decision_id == second.decision_id


# --- bands


def bands(platform: Any) -> list[str]:
    return [e["band"] for e in platform.gate.read(lambda state: list(state.escalations))]


def test_saturation_is_told(make: Make) -> None:
    platform = make()
    platform.gate.set_mode("enforce")
    for region in ("bad", "good"):
        platform.gate.override(region, 0.1, reason="to saturate")
    decision = platform.gate.decide(["bad", "good"], [0.5, 0.5])
    assert decision.q.tolist() == [0.5, 0.5]  # the gate cannot help here
    platform.tick()
    assert bands(platform) == ["saturation"]
    assert [e.kind for e in platform.gate.events() if e.kind == "Escalation"] == ["Escalation"]
    platform.gate.decide(["bad", "good"], [0.5, 0.5])
    platform.tick()
    assert bands(platform) == ["saturation"]  # once, until it has been within its band again
    platform.tick()
    platform.gate.decide(["bad", "good"], [0.5, 0.5])
    platform.tick()
    assert bands(platform) == ["saturation", "saturation"]


def test_scar_mass_has_a_band(make: Make) -> None:
    platform = make(band_scar_mass=0.05)
    platform.harm(5, sources=12, signals=2)
    assert bands(platform) == ["scar mass"]


def test_gating_has_a_band(make: Make) -> None:
    platform = make(band_gating=0.2)
    platform.gate.override("bad", 0.1, reason="to gate")
    platform.gate.decide(["bad", "good"], [0.5, 0.5])
    platform.tick()
    assert bands(platform) == ["gating"]


def test_report_volume_has_a_band(make: Make) -> None:
    platform = make()
    for _ in range(25):
        platform.report("s0", harm=0.01)
        platform.tick()
    assert bands(platform) == []
    for _ in range(20):
        platform.report("s0", harm=0.01)
    platform.tick()
    assert bands(platform) == ["reports"]
