"""The fold's kernels against the slow reference and against `HarmMemory`."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams
from rapo_gate.chains import parts_of
from rapo_gate.config import GateConfig
from rapo_gate.fold.fold import MOST, ROW, UNIT, Confirmation, Fold, Rows

REFERENCE = runpy.run_path(str(Path(__file__).with_name("reference.py")))
LEDGERS = runpy.run_path(str(Path(__file__).with_name("ledgers.py")))
START, made_up, exposed = LEDGERS["START"], LEDGERS["made_up"], LEDGERS["exposed"]
settings, play, new_fold = LEDGERS["settings"], LEDGERS["play"], LEDGERS["new_fold"]
Shown = dict[int, dict[int, int]]


def same(fold: Fold, regions: int, shown: Shown, topics: dict[int, str] | None = None) -> Any:
    """Both, to the last digits."""
    wanted = REFERENCE["fold"](
        fold.ledger.rows,
        regions,
        START,
        fold.tick,
        fold.changes,
        shown,
        fold.confirmations,
        (),
        topics,
    )
    psi, sure = fold.conductance()
    for name, mine, theirs in (
        ("G", fold.G, wanted.G), ("H", fold.H, wanted.H), ("psi", psi, wanted.psi),
        ("sure", sure, wanted.sure),
    ):  # fmt: skip
        np.testing.assert_allclose(mine[:regions], theirs, rtol=1e-10, atol=1e-13, err_msg=name)
    return wanted


@pytest.mark.parametrize("seed", range(40))
def test_kernels_are_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    regions = int(rng.integers(1, 5))
    rows, shown = made_up(rng, regions, 60, int(rng.integers(1, 200))), exposed(rng, regions, 60)
    fold, until = new_fold(regions, settings(rng)), START
    for _ in range(int(rng.integers(4))):
        until = min(until + int(rng.integers(25)), START + 70)
        play(fold, rows, shown, until)
        if rng.random() < 0.5:
            fold.configure(settings(rng))
        else:
            chosen = rng.permutation(regions)[:2].tolist()
            fold.confirm([Confirmation(until, r, until + 9, int(rng.integers(3))) for r in chosen])
    play(fold, rows, shown, START + 70)
    same(fold, regions, shown)
    before = fold.G.copy(), fold.H.copy(), fold.psi.copy(), fold.f.cells.copy()
    fold.refold(fold.ledger.regions)
    for old, new in zip(before, (fold.G, fold.H, fold.psi, fold.f.cells), strict=True):
        np.testing.assert_array_equal(old, new)


def test_scars_are_the_memorys_own() -> None:
    """Everything confirmed: each region is a `HarmMemory` of its own, fed with its harm."""
    rng = np.random.default_rng(0)
    rows, shown = made_up(rng, 3, 60, 300), exposed(rng, 3, 60)
    config = GateConfig(
        min_signals=1, min_sources=1, confirm_ticks=10**6, half_life=20.0, shrinkage=2.0
    )
    fold = play(new_fold(3, config), rows, shown, START + 80)
    for region in range(3):
        memory = HarmMemory(1, config.params, batch=None)
        first, course = fold.course(region)
        assert first == START + 1
        for harm in course["harm"]:
            memory.step(harm, np.ones(1))
        assert fold.G[region] == memory.G[0]
        assert fold.H[region] == memory.H[0] > 0


def test_many_stops_are_one() -> None:
    """Where ticks are grouped does not matter, nor does a pause in which nothing lives."""
    rng = np.random.default_rng(3)
    config = GateConfig(min_sources=1, min_signals=1, confirm_ticks=3, half_life=2.0, shrinkage=1.0,
                        z=1.0, params=FieldParams(lam=1.0, tau=0.0, alpha=3.0))  # fmt: skip
    rows, shown = made_up(rng, 4, 50, 12), exposed(rng, 4, 50)
    whole = play(new_fold(4, config), rows, shown, START + 60)
    stops = tuple(range(START, START + 61))
    parts = play(new_fold(4, config), rows, shown, START + 60, stops)
    for one, other in ((whole.G, parts.G), (whole.H, parts.H)):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(whole.f.cells["agreed_until"], parts.f.cells["agreed_until"])
    assert whole.H.max() > 0
    assert whole.live.size < 4


@pytest.mark.parametrize("seed", range(12))
def test_the_parts_of_reports_sum_to_the_fields(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, shown = made_up(rng, 3, 60, 250), exposed(rng, 3, 60, 2.0)
    given = {
        "min_sources": 2, "min_signals": 1, "half_life": 15.0, "base_rate": 0.01,
        "scar_ticks": 30 if seed % 2 else None, "confirm_ticks": 20,
    }  # fmt: skip
    fold = new_fold(3, settings(rng, **given))
    play(fold, rows, shown, START + 25)
    fold.configure(settings(rng, **given, params=FieldParams(alpha=3.0, eta=0.2, tau=0.05)))
    play(fold, rows, shown, START + 70)
    assert fold.H.max() > 0
    for region in range(3):
        parts = parts_of(fold, region, fold.tick)
        assert parts.G.sum() == pytest.approx(fold.G[region], rel=1e-9)
        assert parts.H.sum() == pytest.approx(fold.H[region], rel=1e-9)
        gone = fold.ledger.rows["rolled_back"][parts.rows]
        assert not parts.G[gone].any()
        assert (parts.G[~gone] > 0).any()
        earlier = parts_of(fold, region, START + 40)
        assert earlier.G.sum() == pytest.approx(fold.course(region, START + 40)[1]["G"][-1])


def test_reports_of_one_tick_may_come_in_any_order() -> None:
    rng = np.random.default_rng(6)
    rows, shown = made_up(rng, 3, 8, 300), exposed(rng, 3, 8)
    config = settings(rng, min_sources=3, min_signals=2, cap_source=5.0, half_life=30.0)
    order = np.lexsort((rng.random(300), rows["tick"]))
    ways = [play(new_fold(3, config), r.copy(), shown, START + 20) for r in (rows, rows[order])]
    assert ways[0].f.cells["loud"].max() > 0  # else there is nothing to add up in another order
    np.testing.assert_array_equal(ways[0].G, ways[1].G)
    np.testing.assert_array_equal(ways[0].H, ways[1].H)


def test_sums_of_harm_do_not_overflow() -> None:
    count = 3000
    rows = np.zeros(count, ROW)
    rows["tick"], rows["amount"] = START + 1, 10**6 * UNIT
    rows["source"] = np.arange(count) % 2
    config = GateConfig(cap_source=1e6, min_sources=1, min_signals=1)
    fold = play(new_fold(1, config), rows, {}, START + 1)
    assert 2e6 <= fold.cell(0)["S"] <= MOST / UNIT
    assert fold.G[0] == config.params.alpha


def test_a_resting_scar_heeds_new_settings() -> None:
    """A scar that nothing has changed for long still expires, or decays, when told to."""
    rows: Rows = np.zeros(5, ROW)
    rows["tick"], rows["amount"] = START + 1, UNIT
    config = GateConfig(
        min_sources=1, min_signals=1, shrinkage=0.5, half_life=3.0, confirm_ticks=20,
        params=FieldParams(lam=0.5, tau=0.1),
    )  # fmt: skip
    for change in ({"scar_ticks": 10}, {"params": FieldParams(delta=0.9)}):
        fold = play(new_fold(1, config), rows.copy(), {}, START + 150)
        before = fold.H[0]
        assert before > 0
        assert fold.G[0] == 0.0
        assert fold.live.size == 0
        fold.configure(GateConfig.from_dict({**config.to_dict(), **change}))
        fold.run(START + 200)
        assert fold.H[0] < 0.01 * before
        same(fold, 1, {})


def test_a_shorter_agreement_holds_from_the_next_tick_on_however_it_is_folded() -> None:
    rows: Rows = np.zeros(2, ROW)
    rows["tick"], rows["amount"], rows["region"] = START + 1, UNIT, [0, 1]
    given = {"min_sources": 1, "min_signals": 1}
    fold = play(new_fold(2, GateConfig(confirm_ticks=20, **given)), rows, {}, START + 5)
    fold.configure(GateConfig(confirm_ticks=2, **given))
    fold.confirm([Confirmation(START + 5, 0, START + 6)])
    assert fold.f.cells["agreed_until"][:2].tolist() == [START + 5] * 2
    before = fold.f.cells.copy()
    fold.refold(fold.ledger.regions)
    np.testing.assert_array_equal(fold.f.cells, before)
    fold.run(START + 6)
    assert fold.conductance()[1].tolist() == [True, False]


def test_a_word_that_is_taken_back_leaves_later_ones_of_other_regions_in_force() -> None:
    rng = np.random.default_rng(3)
    rows, shown = made_up(rng, 2, 10, 40), exposed(rng, 2, 10)
    fold = new_fold(2, GateConfig(min_sources=32, min_signals=1))  # sure by a reviewer's word alone
    play(fold, rows, shown, START + 10)
    fold.confirm([Confirmation(fold.tick, 0, fold.tick + 1, 7)])
    fold.confirm([Confirmation(fold.tick, 1, fold.tick + 1, 8)])
    play(fold, rows, shown, START + 20)
    rows = fold.ledger.rows["rolled_back"].copy()
    assert fold.without(rows, {6}).regions.tolist() == []
    assert [v.report for v in fold.confirmations] == [7, 8]
    plan = fold.without(rows, {7})
    assert plan.regions.tolist() == [0]
    fold.carry_out(plan)
    assert [v.report for v in fold.confirmations] == [8]
    fold.confirm([Confirmation(fold.tick, 1, fold.tick + 5, 9)])
    assert fold.conductance()[1].tolist() == [False, True]
    same(fold, 2, shown)
