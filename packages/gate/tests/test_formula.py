"""The law of harm: what counts as excess, who is too few, what of exposures is remembered."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from rapo_core.params import FieldParams
from rapo_gate.audit import overview
from rapo_gate.config import GateConfig
from rapo_gate.fold.exposure import TOLERANCE
from rapo_gate.fold.fold import ROW, UNIT, Confirmation, Fold, Plan, Rows
from rapo_gate.fold.formula import harm_of, net_rate, params_of
from rapo_gate.fold.state import State

REFERENCE = runpy.run_path(str(Path(__file__).with_name("reference.py")))
LEDGERS = runpy.run_path(str(Path(__file__).with_name("ledgers.py")))
START, made_up, exposed = LEDGERS["START"], LEDGERS["made_up"], LEDGERS["exposed"]
settings, play, new_fold = LEDGERS["settings"], LEDGERS["play"], LEDGERS["new_fold"]
Shown = dict[int, dict[int, int]]


def steady(rate: float, per_tick: float, ticks: int, config: GateConfig) -> Fold:
    """A region of which a constant share of the exposures is reported, by many."""
    rows = np.zeros(ticks, ROW)
    rows["tick"] = np.arange(START + 1, START + ticks + 1)
    rows["amount"] = int(rate * per_tick * UNIT)
    rows["source"], rows["signal"] = np.arange(ticks) % 50, np.arange(ticks) % 2
    shown = {t: {0: int(per_tick * UNIT)} for t in rows["tick"].tolist()}
    return play(new_fold(1, config), rows, shown, START + ticks)


def test_being_busy_is_no_crime_and_no_shelter() -> None:
    config = GateConfig(half_life=300.0, cap_source=1e6, z=1.0)
    G = [steady(0.2, per_tick, 1500, config).G[0] for per_tick in (1.0, 10.0, 1000.0)]
    assert G[0] > 0.75 * G[2] > 0
    assert G[1] == pytest.approx(G[2], rel=0.1)
    assert [steady(0.009, n, 1500, config).G[0] for n in (1.0, 1000.0)] == [0.0, 0.0]


def test_harm_goes_on_while_the_rate_is_remembered() -> None:
    """A quiet region's harm does not stop between its reports."""
    fold = steady(0.2, 5.0, 200, GateConfig(half_life=500.0))
    fold.run(START + 300)
    assert (fold.course(0)[1]["harm"][-50:] > 0).all()


def test_a_rate_is_net_of_what_chance_may_explain() -> None:
    p = params_of(GateConfig(shrinkage=50.0, z=2.0, base_rate=0.02, scale=0.2))
    assert net_rate(12.0, 50.0, 0.02, p) == pytest.approx((13 - 2 * 13**0.5) / 100)
    assert harm_of(12.0, 50.0, 0.02, p) == pytest.approx(((13 - 2 * 13**0.5) / 100 - 0.02) / 0.2)


def test_a_region_with_one_report_on_few_exposures_cannot_scar() -> None:
    """Its raw rate, a third, is ten times the threshold, and says nothing."""
    rows = np.zeros(201, ROW)
    rows["tick"], rows["amount"] = START + 1, UNIT
    rows["source"], rows["signal"] = np.arange(201), np.arange(201) % 2
    rows["region"][-1] = 1  # 200 reports on the busy one
    shown = {START + 1: {0: 2000 * UNIT, 1: 3 * UNIT, 2: 500 * UNIT}}
    state = State()
    state.fold = play(new_fold(3, GateConfig()), rows, shown, START + 2)
    state.regions.add(["busy", "sparse", "silent"])
    state.traffic.grow(3)
    seen = overview(state)
    assert (seen["can_scar"], seen["regions"], seen["idle"]) == (1, 3, False)


def flood(rng: np.random.Generator, k: int, liars: int) -> tuple[Rows, Shown]:
    """Faint agreement by k others, then `liars` at their loudest; any course of exposure."""
    others = np.zeros(k, ROW)
    others["tick"], others["amount"] = START + 1, 1 + int(rng.choice([0, 1e3]))
    others["source"], others["signal"] = np.arange(k), np.arange(k) % 2
    count = int(rng.integers(20, 400))
    loud = np.zeros(count, ROW)
    loud["tick"] = np.sort(rng.integers(START + 1, START + 300, size=count))
    loud["amount"] = int(rng.choice([1, 50]) * UNIT)
    loud["source"] = k + rng.integers(liars, size=count)
    loud["signal"] = rng.integers(2, size=count)
    rows = np.concatenate((others, loud))
    ticks = np.flatnonzero(rng.random(300) < rng.choice([0.02, 0.3]))
    most = float(rng.choice([0.1, 10.0, 1000.0]))
    shown = {START + 1 + int(t): {0: int(rng.random() * most * UNIT)} for t in ticks}
    return rows[np.argsort(rows["tick"], kind="stable")], shown


@pytest.mark.parametrize("seed", range(120))
def test_too_few_reporters_never_carry_a_trace_over_its_threshold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    config = settings(
        rng, min_sources=k, min_signals=1, confirm_ticks=500, cap_source=50.0,
        half_life=float(rng.choice([5.0, 200.0, 5000.0])),
        params=FieldParams(
            lam=float(rng.choice([0.05, 0.5])), alpha=float(rng.choice([0.5, 3.0])),
            tau=float(rng.choice([0.05, 0.3, 2.0])), eta=0.5,
        ),
    )  # fmt: skip
    rows, shown = flood(rng, k, k - 1)
    fold = play(new_fold(1, config), rows, shown, START + 400)
    course = fold.course(0)[1]
    assert course["G"].max() <= config.params.tau
    assert fold.H[0] == 0.0
    assert fold.conductance()[1][0]  # others agreed: nothing but the bound protects it


def test_enough_reporters_do_scar() -> None:
    for k in (2, 3, 6):
        config = GateConfig(min_sources=k, min_signals=1, confirm_ticks=500, half_life=200.0)
        rows = np.zeros(40 * k, ROW)
        rows["tick"] = np.repeat(np.arange(START + 1, START + 41), k)
        rows["source"], rows["amount"] = np.arange(rows.size) % k, UNIT
        fold = play(new_fold(1, config), rows, {}, START + 200)
        assert fold.H[0] > 0


def test_a_reviewers_word_lifts_the_bound() -> None:
    rows = np.zeros(30, ROW)
    rows["tick"], rows["amount"] = np.arange(START + 1, START + 31), UNIT
    found = []
    for confirmations in ([], [Confirmation(START, 0, START + 500)]):
        fold = new_fold(1, GateConfig(half_life=200.0))
        fold.confirm(confirmations)
        play(fold, rows.copy(), {}, START + 60)
        found.append((fold.G[0], fold.H[0]))
    assert found[0][0] <= 0.3 < found[1][0]
    assert found[0][1] == 0.0 < found[1][1]


def test_a_topic_has_a_prior_of_its_own_also_backwards() -> None:
    rng = np.random.default_rng(2)
    rows, shown = made_up(rng, 2, 60, 200), exposed(rng, 2, 60, 1.0)
    config = settings(
        rng, base_rate=0.05, base_rates={"diets": 0.1}, z=1.0, shrinkage=10.0, half_life=30.0,
        min_sources=1,
    )  # fmt: skip
    fold = play(new_fold(2, config), rows, shown, START + 70)
    plain = fold.G.copy()
    topics = {0: "diets", 1: "chess"}
    would = fold.preview(Plan(np.arange(2), topics=topics))
    assert fold.label(topics).tolist() == [0]  # nothing is known of chess
    fold.refold(np.array([0]))
    np.testing.assert_array_equal(would.G, fold.G[:2])
    assert fold.G[0] > plain[0]
    assert fold.G[1] == plain[1]
    wanted = REFERENCE["fold"](
        fold.ledger.rows, 2, START, fold.tick, fold.changes, shown, topics=topics
    )
    np.testing.assert_allclose(fold.G[:2], wanted.G, rtol=1e-10)


def test_a_topic_alone_is_no_harm() -> None:
    with pytest.raises(ValueError, match="without a single report"):
        GateConfig(base_rates={"diets": 0.2})
    config = GateConfig(base_rates={"diets": 0.03}, half_life=5.0, min_sources=1, min_signals=1)
    fold = new_fold(1, config)
    fold.label({0: "diets"})
    rows = np.zeros(20, ROW)
    rows["tick"], rows["amount"] = START + 1, UNIT
    play(fold, rows, {}, START + 30)
    assert fold.G[0] > 0
    fold.run(START + 3000)
    assert fold.G[0] == 0.0
    assert fold.live.size == 0


# --- exposure


@pytest.mark.parametrize("seed", range(6))
def test_the_held_exposure_is_near_the_real_one_and_rarely_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half_life, K, ticks = 200.0, float(rng.choice([1.0, 50.0])), 2000
    shown = {
        START + t: {0: int(rng.random() * float(rng.choice([0.0, 1.0, 30.0])) * UNIT)}
        for t in range(1, ticks)
    }
    rows = np.zeros(1, ROW)
    rows["tick"], rows["amount"] = START + 1, 1
    fold = play(new_fold(1, GateConfig(half_life=half_life, shrinkage=K)), rows, shown, START + 1)
    real, worst = 0.0, 0.0
    for tick in range(START + 1, START + ticks):
        if tick > START + 1:
            play(fold, rows[:0], {tick: shown[tick]}, tick)
        real = real * 2 ** (-1 / half_life) + shown[tick][0] / UNIT
        e = fold.exposure
        held = e.held[0] * 2 ** (-(tick - int(e.held_tick[0])) / half_life)
        worst = max(worst, abs(real - held) / (held + K))
    assert worst <= TOLERANCE * 1.000001
    assert len(fold.exposure.points[0]) < 80 * ticks / half_life


def test_exposures_may_be_corrected_until_they_count() -> None:
    fold = new_fold(3, GateConfig())
    e, one = fold.exposure, np.array([UNIT])
    for tick in (START, START + 1, START, START + 2, START + 1):  # also of ticks that are past
        e.add(tick, np.array([1], np.int32), one)
    for _ in range(200):
        e.add(START, np.array([2, 0], np.int32), np.array([3, 5]))
    e.add(START, np.array([0], np.int32), np.array([-1000]))
    regions, units = e.of_tick(START)
    assert regions.tolist() == [0, 1, 2]
    assert units.tolist() == [0, 2 * UNIT, 600]
    fold.expose(START, START + 5)
    assert e.of_tick(START)[0].size == 0
    assert e.ticks() == [START + 1, START + 2]
    assert e.E[:3].tolist() == [0.0, 2.0, 600 / UNIT]
    assert e.held_tick[:3].tolist() == [0, START + 5, START + 5]
