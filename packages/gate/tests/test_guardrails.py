"""Each guardrail of the gate, through `Gate` with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rapo_core.params import FieldParams
from rapo_gate import GateConfig, HarmReport
from rapo_gate.fold.fold import ROW, UNIT, Fold

Make = Callable[..., Any]
SECONDS = 60.0


# --- scars


def test_scars_need_a_trace_above_the_threshold(make: Make) -> None:
    below, above = make(params=FieldParams(alpha=0.01, tau=0.3)), make()
    for platform in (below, above):
        platform.harm(10, sources=12, signals=2)
    assert 0 < below.bad().G < 0.3
    assert below.bad().H == 0.0
    assert above.bad().H > 0


@pytest.mark.parametrize(("sources", "signals"), [(5, 1), (2, 2), (1, 1)])
def test_no_scar_without_agreement(make: Make, sources: int, signals: int) -> None:
    platform = make()
    platform.harm(15, sources, signals)
    field = platform.bad()
    # enough reporters with one signal: it would scar if it were confirmed; too few: not even that
    assert (platform.gate.config.params.tau < field.G) == (sources >= 3)
    assert field.H == 0.0
    assert field.psi >= 0.9
    platform.harm(5, sources=12, signals=2)
    assert platform.bad().H > 0
    assert platform.bad().psi < 0.5


def test_agreement_must_come_within_the_window(make: Make) -> None:
    platform = make(confirm_ticks=3)
    for i in range(6):
        platform.report(f"s{i % 3}", f"g{i % 2}")
        platform.tick(4)
    assert platform.bad().H == 0.0


def test_a_reviewer_may_confirm_alone(make: Make) -> None:
    platform = make()
    platform.harm(3, sources=1, signals=1)
    assert platform.bad().H == 0.0
    platform.gate.confirm(regions=["bad"], reason="seen with my own eyes")
    platform.harm(3, sources=1, signals=1)
    assert platform.bad().H > 0


def test_a_confirmation_names_a_list_of_regions(make: Make) -> None:
    platform = make()
    platform.gate.decide(["b", "a", "d"], [0.5, 0.3, 0.2])
    platform.gate.flush()
    with pytest.raises(ValueError, match="regions must be a list of regions, got 'bad'"):
        platform.gate.confirm(regions="bad", reason="not the letters of it")
    result = platform.report("s0")
    assert platform.gate.confirm(result.report_id, reason="one will do").event is not None


def test_a_rolled_back_report_takes_its_confirmation_along(make: Make) -> None:
    platform = make()
    result = platform.report("s0")
    platform.tick(3)
    platform.gate.confirm(reports=[result.report_id], reason="looks right")
    platform.harm(5, sources=1, signals=1)
    assert platform.bad().H > 0
    platform.gate.rollback(reports=[result.report_id], reason="it was forged")
    assert platform.bad().H == 0.0
    assert platform.gate.verify()["ok"]
    for again in (platform.gate.rollback, platform.gate.confirm):
        with pytest.raises(ValueError, match="no report"):
            again(reports=[result.report_id], reason="again")


def test_a_confirmation_knows_no_later_exposure(make: Make) -> None:
    """What was shown is told after the reviewer's word: reading the log again changes nothing."""
    platform = make()
    decision = platform.gate.decide(["bad", "good"], [0.5, 0.5])
    result = platform.report("s0", decision_id=decision.decision_id)
    platform.gate.confirm(reports=[result.report_id], reason="looks right")
    platform.gate.expose(decision.decision_id, ["good"])
    platform.harm(5, sources=1, signals=1)
    assert platform.bad().H > 0
    assert platform.gate.verify()["ok"]


def poison(reports: int, sources: int, signals: int) -> Fold:
    """One region under a flood: the fold's own view, since a million calls take long."""
    rng = np.random.default_rng(0)
    rows = np.zeros(reports, ROW)
    rows["tick"] = np.sort(rng.integers(1, 1440, size=reports))
    rows["source"], rows["signal"] = np.arange(reports) % sources, np.arange(reports) % signals
    rows["amount"] = UNIT
    fold = Fold(0, GateConfig())
    fold.grow(1)
    fold.count(rows)
    fold.run(1440)
    return fold


@pytest.mark.parametrize(("sources", "signals"), [(1000, 1), (2, 1000)])
def test_a_million_reports_do_not_scar(sources: int, signals: int) -> None:
    fold = poison(1_000_000, sources, signals)
    assert fold.H.tolist() == [0.0]
    assert fold.conductance()[0].tolist() >= [0.9]


def test_ten_thousand_reports_through_the_gate_do_not_scar(make: Make) -> None:
    platform = make()
    for tick in range(10):
        batch = [
            HarmReport("one", f"{tick} {i}", 1.0, f"g{i % 50}", platform.now, regions=["bad"])
            for i in range(1000)
        ]
        assert {r.status for r in platform.gate.report(batch)} == {"accepted"}
        platform.tick()
    platform.tick(3)
    assert platform.bad().H == 0.0
    assert 0.9 <= platform.bad().psi < 1


# --- bounded injection


def test_one_reporter_has_a_cap(make: Make) -> None:
    few, many, two = (make(cap_source=2.0) for _ in range(3))
    for platform, count in ((few, 2), (many, 50)):
        for _ in range(count):
            platform.report("s0")
    for i in range(50):
        two.report(f"s{i % 2}")
    for platform in (few, many, two):
        platform.tick(3)
    reports = [p.gate.read(lambda s: float(s.fold.cell(0)["S"])) for p in (few, many, two)]
    assert reports == pytest.approx([reports[0], reports[0], 2 * reports[0]], rel=1e-6)
    assert reports[0] > 0


def test_harm_of_a_tick_is_at_most_one(make: Make) -> None:
    platform = make()
    for i in range(400):
        platform.report(f"s{i}")
    platform.tick(2)
    assert platform.bad().G == 2.0  # alpha


# --- scars that end


def test_scars_expire_at_a_time_of_their_own(make: Make) -> None:
    platform = make(scar_ticks=5, params=FieldParams(alpha=2.0, eta=0.2, lam=1.0))
    platform.harm(3, sources=12, signals=2)
    assert platform.bad().H > 0

    def grown() -> int:
        return int(platform.gate.read(lambda state: state.fold.cell(0)["grown"]))

    while platform.gate.tick() < grown() + 4:
        platform.tick()
    assert platform.bad().H > 0
    platform.tick()
    assert platform.bad().H == 0.0


def test_slow_decay(make: Make) -> None:
    platform = make(params=FieldParams(alpha=2.0, eta=0.2, lam=1.0, delta=0.9))
    platform.harm(3, sources=12, signals=2)
    platform.tick(10)
    before = platform.bad().H
    platform.tick(10)
    assert pytest.approx(before * 0.9**10) == platform.bad().H


# --- exposure


def test_a_busy_region_with_the_same_rate_is_treated_alike(make: Make) -> None:
    platform = make(shrinkage=1e-6, cap_source=1e6, D=1, min_sources=1)
    gate = platform.gate
    for region, decisions in (("quiet", 20), ("busy", 400)):
        made = [gate.decide([region], [1.0]).decision_id for _ in range(decisions)]
        for i in range(decisions // 10):
            platform.report(f"s{i}", decision_id=made[i])
    platform.tick(2)
    fields = gate.fields()
    assert fields["quiet"].G > 0
    assert pytest.approx(fields["quiet"].G, rel=1e-4) == fields["busy"].G


def test_being_busy_is_no_crime(make: Make) -> None:
    platform = make(D=1)
    made = [platform.gate.decide(["busy"], [1.0]).decision_id for _ in range(1000)]
    for i in range(5):
        platform.report(f"s{i}", f"g{i % 2}", decision_id=made[i])
    platform.gate.decide(["quiet"], [1.0])
    for i in range(12):
        platform.report(f"s{i}", f"g{i % 2}", regions=["quiet"])
    platform.tick(8)
    fields = platform.gate.fields()
    assert fields["busy"].psi == 1.0
    assert fields["quiet"].psi < 0.6


def test_what_was_shown_counts_not_what_was_proposed(make: Make) -> None:
    platform = make()
    decision = platform.gate.decide(["bad", "good"], [0.5, 0.5])
    assert platform.gate.expose(decision.decision_id, ["bad"])
    for i in range(3):
        platform.report(f"s{i}", f"g{i % 2}", decision_id=decision.decision_id)
    platform.tick(3)
    fields = platform.gate.fields()
    assert fields["bad"].G > 0
    assert fields["good"].G == 0.0
    assert not platform.gate.expose(decision.decision_id, ["bad"])  # too late by now


def test_an_exposure_takes_out_exactly_what_the_decision_put_in(make: Make) -> None:
    platform = make()
    rng = np.random.default_rng(0)
    names = [f"r{i}" for i in range(300)]
    for _ in range(20):
        decision = platform.gate.decide(names, rng.dirichlet(np.ones(300)))
        platform.gate.expose(decision.decision_id, ["r0"])
    tick = int(platform.now // SECONDS)
    exposed = platform.gate.read(lambda state: state.fold.exposure.of_tick(tick))
    where = platform.gate.read(lambda state: [state.regions.number(n) for n in names])
    units = dict(zip(exposed[0].tolist(), exposed[1].tolist(), strict=True))
    assert [units[r] for r in where] == [20 * UNIT] + [0] * 299


# --- too few


def test_whoever_was_only_a_candidate_is_not_confirmed_by_a_report(make: Make) -> None:
    """Many reporters on one region must not vouch for the others that were listed beside it."""
    platform = make(agree_share=0.2, min_sources=2)
    for _ in range(20):
        made = platform.gate.decide(["guilty", "beside"], [0.85, 0.15]).decision_id
        for i in range(3):
            platform.report(f"s{i}", f"g{i % 2}", decision_id=made)
        platform.tick()
    fields = platform.gate.fields()
    assert fields["guilty"].H > 0
    assert (
        platform.gate.config.params.tau < fields["beside"].G
    )  # it would scar if it were confirmed
    assert fields["beside"].H == 0
    assert fields["beside"].psi >= 0.9


@pytest.mark.parametrize("liars", [1, 2])
def test_too_few_reporters_cannot_scar_a_region_that_others_once_agreed_on(
    make: Make, liars: int
) -> None:
    """A faint agreement confirms a region for a while; a flood must not make use of that."""
    platform = make()
    for i in range(4):
        platform.report(f"honest-{i}", f"g{i % 2}", harm=1e-6)
    for _ in range(20):
        for i in range(liars):
            for _ in range(30):
                platform.report(f"liar-{i}", f"g{i % 2}")
        platform.tick()
    platform.tick(platform.gate.config.D)
    field = platform.bad()
    assert platform.gate.read(lambda state: state.fold.conductance()[1]).any()
    assert 0 < field.G < platform.gate.config.params.tau
    assert field.H == 0.0
    platform.harm(10, sources=12, signals=2)  # enough of them still can
    assert platform.bad().H > 0


@pytest.mark.parametrize(("needed", "prior"), [(3, 0.01), (10, 10.0), (10, 0.01), (32, 0.1)])
def test_one_reporter_too_few_cannot_scar_whatever_is_needed(
    make: Make, needed: int, prior: float
) -> None:
    """Those who are too few must not lift each other, however loud and however many they are."""
    platform = make(min_sources=needed, shrinkage=prior, cap_source=50.0)
    gate = platform.gate

    def say(who: str, count: int, harm: float, times: int) -> None:
        items = [
            HarmReport(f"{who}-{i}", f"{platform.now}-{k}", harm, f"g{i % 2}", platform.now,
                       regions=["bad"])
            for i in range(count) for k in range(times)
        ]  # fmt: skip
        assert {r.status for r in gate.report(items)} == {"accepted"}

    say("honest", needed, 1e-6, 1)
    for _ in range(4):
        say("liar", needed - 1, 1.0, 5)
        platform.tick()
    platform.tick(gate.config.D)
    assert gate.read(lambda state: state.fold.conductance()[1]).any()
    assert 0 < platform.bad().G < gate.config.params.tau
    assert platform.bad().H == 0.0
