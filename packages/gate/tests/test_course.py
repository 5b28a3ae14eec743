"""Regions under any settings: the law written out plainly, and what a gate itself shows."""

from dataclasses import replace

import numpy as np
import pytest

from rapo_core.params import FieldParams
from rapo_gate.config import GateConfig, SimulatedClock
from rapo_gate.fold.exposure import TOLERANCE
from rapo_gate.fold.ledger import UNIT
from rapo_gate.gate import Gate
from rapo_gate.reports import HarmReport
from rapo_gate.shadow_log import History, course

LAW = GateConfig(
    base_rate=0.02, half_life=40.0, shrinkage=5.0, z=0.5, scale=0.3,
    params=FieldParams(
        lam=0.1, alpha=0.1, tau=0.1, eta=0.05, delta=0.999, w_G=1.0, w_H=1.0, psi_min=0.01
    ),
    min_sources=3, min_signals=2, confirm_ticks=60, unconfirmed_floor=0.9,
)  # fmt: skip

RESTING = replace(LAW.params, lam=1.0, alpha=1.0, delta=1.0)
"""A scar that stays, and a trace that does not: time changes nothing between reports."""


def plainly(law, seen, said, ticks, delay, held):
    """Fields of one region at every tick from 0, by the law as it is written; lists and dicts."""
    p, g, K, b = law.params, 2 ** (-1 / law.half_life), law.shrinkage, law.base_rate
    E = used = S = G = H = 0.0
    mass, out, grown = {}, [], 0
    spoke = []  # (tick, reporter, signal)
    for t in range(ticks):
        E, used, S = E * g, used * g, S * g
        mass = {who: m * g for who, m in mass.items()}
        count = sum(n for tick, n in seen if tick + delay == t)
        E += count
        if count and (used == 0 or abs(E - used) > held * (used + K)):
            used = E
        for tick, amount, who, kind in said:
            if tick + delay == t:
                S += amount
                mass[who] = mass.get(who, 0.0) + amount
                spoke.append((t, who, kind))
        recent = [s for s in spoke if s[0] > t - law.confirm_ticks]
        sure = (
            len({s[1] for s in recent}) >= law.min_sources
            and len({s[2] for s in recent}) >= law.min_signals
        )
        A, n = S, used + K
        if law.min_sources > 1:
            m = b + law.scale * min(1, p.tau * p.lam / p.alpha)
            u = (law.z / n**0.5 + (law.z**2 / n + 4 * m) ** 0.5) / 2
            most = max(n * u * u - K * b, 0) / (law.min_sources - 0.5)
            A = sum(min(x, most) for x in mass.values())
        rate = (A + K * b) / n
        harm = min(max((rate - law.z * (rate / n) ** 0.5 - b) / law.scale, 0), 1)
        H = p.delta * H + (p.eta * max(0, G - p.tau) if sure else 0)
        if sure and p.tau < G:
            grown = t
        if law.scar_ticks and t - grown >= law.scar_ticks:
            H = 0.0
        G = (1 - p.lam) * G + p.alpha * harm
        psi = max(np.exp(-p.w_G * G - p.w_H * H), p.psi_min)
        if not sure:
            psi = max(psi, law.unconfirmed_floor * max(np.exp(-p.w_H * H), p.psi_min))
        out.append((G, H, psi, harm))
    return np.array(out).T


def stream(seed, ticks=200, regions=4):
    """Exposures and reports of a few regions, some quiet, some busy; some reporters loud."""
    rng = np.random.default_rng(seed)
    seen = [(t, r, float(n)) for t in range(ticks) for r in range(regions)
            if (n := rng.poisson((0.3, 2, 20, 1)[r % 4]))]  # fmt: skip
    n = 150
    said = (
        rng.integers(0, ticks, n), rng.integers(0, regions, n), rng.uniform(0.1, 1, n),
        np.minimum(rng.geometric(0.4, n), 6), rng.integers(0, 2, n),
    )  # fmt: skip
    return tuple(np.array(x) for x in zip(*seen, strict=True)), said


@pytest.mark.parametrize(("change", "rtol"), [
    ({}, 0.03), ({"min_sources": 1, "min_signals": 1}, 1e-7),
    ({"min_sources": 1, "scar_ticks": 20}, 1e-7), ({"z": 0.0, "confirm_ticks": 5}, 0.03),
    ({"min_sources": 1, "half_life": 2.0, "confirm_ticks": 9, "params": RESTING}, 1e-7),
], ids=str)  # fmt: skip
def test_the_course_is_the_law_written_out(change, rtol):
    # with k > 1 the fold holds its bound on reporters in steps; here it is exact in every tick
    law = replace(LAW, **change)
    scarred = 0
    for seed in range(4):
        seen, said = stream(seed)
        history = History.of(4, seen, said, delay=3)
        ticks = 260
        for r in range(4):
            mine, of = seen[1] == r, said[1] == r
            wanted = plainly(
                law, list(zip(seen[0][mine], seen[2][mine], strict=True)),
                list(zip(*(x[of] for x in (said[0], said[2], said[3], said[4])), strict=True)),
                ticks, 3, TOLERANCE,
            )  # fmt: skip
            found = course(history, law, np.full(ticks, r), np.arange(ticks))
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol / 10)
            scarred += wanted[1].max() > 0
    assert scarred > 4


def test_questions_may_come_in_any_order():
    seen, said = stream(0)
    history = History.of(4, seen, said, delay=3)
    rng = np.random.default_rng(0)
    where, when = rng.integers(0, 4, 500), rng.integers(-5, 400, 500)
    found = course(history, LAW, where, when)
    one = [course(history, LAW, [r], [t]) for r, t in zip(where, when, strict=True)]
    np.testing.assert_allclose(np.array(found), np.array(one)[:, :, 0].T, rtol=1e-9, atol=1e-15)


def test_fewer_than_k_reporters_never_bring_a_trace_over_the_threshold():
    rng = np.random.default_rng(1)
    law = GateConfig(
        LAW.params, base_rate=0.01, half_life=100.0, shrinkage=10.0, z=1.0, scale=0.2,
        min_sources=3, min_signals=1, confirm_ticks=10**9,
    )  # fmt: skip
    for _ in range(50):
        n = int(rng.integers(1, 400))
        seen = (np.arange(300), np.zeros(300, int), rng.poisson(rng.choice([0.1, 3, 50]), 300))
        loud = (rng.integers(0, 300, n), np.zeros(n, int), np.full(n, 5.0), rng.integers(0, 2, n))
        history = History.of(1, seen, loud)
        assert course(history, law, np.zeros(600, int), np.arange(600)).G.max() <= LAW.params.tau
    loud = (loud[0], loud[1], loud[2], np.arange(n) % 3)
    many = History.of(1, seen, tuple(np.tile(x, 5) for x in loud))
    assert course(many, law, np.zeros(600, int), np.arange(600)).H.max() > 0


def test_one_reporter_is_capped_per_tick():
    said = ([4, 4, 4, 5], [0, 0, 1, 0], [3.0, 3.0, 2.0, 3.0], [7, 7, 7, 7])
    history = History.of(2, ([0], [0], [1.0]), said, cap_source=4.0)
    np.testing.assert_allclose(history.ledger.taken / UNIT, [1.5, 1.5, 1.0, 3.0])


@pytest.mark.parametrize(("k", "rtol"), [(1, 1e-6), (3, 0.03)])
def test_the_gates_own_fold_agrees(tmp_path, k, rtol):
    law = replace(LAW, min_sources=k)
    delay, ticks = 3, 120
    config = replace(law, D=delay, D_max=1000, cap_source=1e6)
    seen, said = stream(3, ticks=ticks)
    seen = (seen[0], seen[1], np.minimum(seen[2], 4.0))
    known = [(0, r, 1.0) for r in range(4)]  # a region is known from its first decision on
    seen = tuple(
        np.concatenate([x, y]) for x, y in zip(zip(*known, strict=True), seen, strict=True)
    )
    history = History.of(4, seen, said, delay=delay)
    clock = SimulatedClock(0.0)
    asked, found = [], []
    with Gate.open(tmp_path / "gate.db", config, clock=clock) as gate:
        for t in range(ticks + delay + 20):
            clock.now = (t + 0.5) * config.tick_seconds
            gate.tick()
            state = gate.fields()
            asked += [(r, t) for r in range(4) if r in state]
            found += [tuple(state[r]) for r in range(4) if r in state]
            for i in np.flatnonzero(seen[0] == t):
                for _ in range(int(seen[2][i])):
                    gate.decide(np.array([int(seen[1][i])]), [1.0])
            gate.flush()
            gate.report([
                HarmReport(f"u{said[3][i]}", f"k{i}", float(said[2][i]), f"s{said[4][i]}",
                           clock.now, regions=[int(said[1][i])])
                for i in np.flatnonzero(said[0] == t)
            ])  # fmt: skip
    where, when = np.array(asked).T
    wanted = course(history, law, where, when)
    for column, values in enumerate((wanted.G, wanted.H, wanted.psi)):
        np.testing.assert_allclose(np.array(found)[:, column], values, rtol=rtol, atol=rtol / 10)
    assert wanted.H.max() > 0
