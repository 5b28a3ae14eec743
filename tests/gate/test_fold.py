"""The fold's kernel against the slow reference and against `HarmMemory`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rapo.core.memory import HarmMemory
from rapo.core.params import FieldParams
from rapo.gate import reference
from rapo.gate.config import GateConfig
from rapo.gate.fold import MOST, ROW, UNIT, Fold, Rows
from rapo.gate.ledger import Ledger
from rapo.gate.state import Act

START = 1000


def ledger(rng: np.random.Generator, regions: int, ticks: int, count: int) -> Ledger:
    """Random rows; some ticks are crowded, some empty, some rows do not count."""
    rows = np.zeros(count, ROW)
    rows["tick"] = np.sort(START + 1 + (ticks * rng.random(count) ** 2).astype(np.int64))
    rows["report"] = np.arange(count)
    rows["region"] = rng.integers(regions, size=count)
    rows["source"] = rng.integers(5, size=count)
    rows["signal"] = rng.integers(3, size=count)
    rows["amount"] = np.rint(rng.random(count) ** 3 * UNIT) + 1
    exposed = np.rint(rng.random((ticks + 2, regions)) * 20 * UNIT).astype(np.int64)
    rows["exposure"] = exposed[rows["tick"] - START - 1, rows["region"]]
    rows["use"] = rng.random(count) < 0.9
    rows["bystander"] = rng.random(count) < 0.3
    book = Ledger()
    book.append(rows)
    return book


def settings(rng: np.random.Generator, **given: Any) -> GateConfig:
    """Random settings at which things happen within 60 ticks."""
    params = FieldParams(
        lam=float(rng.choice([0.1, 0.5])), alpha=float(rng.choice([0.5, 3.0])),
        eta=float(rng.choice([0.05, 0.0])), tau=float(rng.choice([0.0, 0.05, 0.3])),
        delta=float(rng.choice([1.0, 0.95])),
    )  # fmt: skip
    drawn: dict[str, Any] = {
        "params": params,
        "normalise": bool(rng.integers(2)),
        "prior_exposures": float(rng.choice([0.5, 10.0])),
        "cap_source": float(rng.choice([0.3, 5.0])),
        "cap_region": float(rng.choice([0.2, 1.0])),
        "min_signals": int(rng.integers(1, 4)),
        "min_sources": int(rng.integers(1, 6)),
        "confirm_ticks": int(rng.choice([1, 4, 20])),
        "scar_ticks": None if rng.random() < 0.5 else int(rng.integers(1, 15)),
    }
    return GateConfig(**{**drawn, **given})


def fold(book: Ledger, regions: int, segments: list[tuple[int, GateConfig, Act | None]]) -> Fold:
    """What the kernel makes of it."""
    made = Fold(START)
    made.grow(regions, 5, *book.pairs)
    for until, config, act in segments:
        made.run(book.rows, until, config)
        if act is not None:
            act.on(made, config)
    return made


def same(book: Ledger, regions: int, segments: list[tuple[int, GateConfig, Act | None]]) -> Fold:
    """Both, bit by bit."""
    found = fold(book, regions, segments)
    wanted = reference.fold(book.rows, regions, START, segments)
    psi, sure = found.conductance(segments[-1][1])
    for name, mine, theirs in (
        ("G", found.G, wanted.G), ("H", found.H, wanted.H), ("psi", psi, wanted.psi),
        ("sure", sure, wanted.sure),
    ):  # fmt: skip
        np.testing.assert_array_equal(mine[:regions], theirs, err_msg=name)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_kernel_is_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    regions = int(rng.integers(1, 6))
    book = ledger(rng, regions, 60, int(rng.integers(1, 250)))
    segments: list[tuple[int, GateConfig, Act | None]] = []
    config, until = settings(rng), START
    for _ in range(int(rng.integers(4))):
        until = min(until + int(rng.integers(25)), START + 70)
        if rng.random() < 0.5:
            segments.append((until, config, Act(until, config=(new := settings(rng)))))
            config = new
        else:
            vouched = ((3, int(rng.integers(regions))),) if rng.random() < 0.5 else ()
            chosen = tuple(rng.permutation(regions)[:2].tolist())
            segments.append((until, config, Act(until, chosen, until + 9, None, vouched)))
    same(book, regions, [*segments, (START + 70, config, None)])


def test_scars_are_the_memorys_own() -> None:
    """Everything confirmed, no cap reached: each region is a `HarmMemory` of its own."""
    rng = np.random.default_rng(0)
    book = ledger(rng, 3, 60, 300)
    book.rows["use"] = True
    config = GateConfig(
        normalise=False, cap_source=1e3, cap_region=1e3, min_signals=1, min_sources=1,
        confirm_ticks=10**6,
    )  # fmt: skip
    found = fold(book, 3, [(START + 80, config, None)])
    memory = HarmMemory(3, config.params, batch=None)
    rows = book.rows
    for tick in range(START + 1, START + 81):
        due = rows[rows["tick"] == tick]
        harm = np.bincount(due["region"], due["amount"] / UNIT, minlength=3)
        total = harm.sum()
        memory.step(total, harm / total if total else harm)
    np.testing.assert_allclose(found.G[:3], memory.G, rtol=1e-13)  # shares are divided, multiplied
    np.testing.assert_allclose(found.H[:3], memory.H, rtol=1e-13)
    assert memory.H.min() > 0


def test_many_segments_are_one() -> None:
    """Where ticks are grouped does not matter, nor does a pause in which nothing lives."""
    rng = np.random.default_rng(3)
    config = GateConfig(min_sources=1, min_signals=1, confirm_ticks=3, prior_exposures=0.5,
                        params=FieldParams(lam=1.0, tau=0.0, alpha=3.0))  # fmt: skip
    book = ledger(rng, 4, 50, 40)
    whole = fold(book, 4, [(START + 60, config, None)])
    parts = fold(book, 4, [(START + i, config, None) for i in range(61)])
    np.testing.assert_array_equal(whole.G, parts.G)
    np.testing.assert_array_equal(whole.H, parts.H)
    np.testing.assert_array_equal(whole.sources, parts.sources)
    assert whole.H.max() > 0


def test_what_rows_added_is_what_their_region_got() -> None:
    rng = np.random.default_rng(5)
    book = ledger(rng, 3, 10, 200)
    config = GateConfig(cap_source=0.3, cap_region=0.2)
    rows = book.rows
    tick = int(rows["tick"][0])
    found = fold(book, 3, [(tick, config, None)])
    first = rows[rows["tick"] == tick]
    by_region = np.bincount(first["region"], first["dG"], minlength=3)
    np.testing.assert_allclose(by_region, found.G[:3], rtol=1e-12)
    assert not rows["dG"][~rows["use"]].any()


def test_reports_of_one_tick_may_come_in_any_order() -> None:
    rng = np.random.default_rng(6)
    book = ledger(rng, 3, 4, 300)
    config = settings(rng, min_sources=2, min_signals=2)
    order = np.lexsort((rng.random(300), book.rows["tick"]))
    other = Ledger()
    other.append(book.rows[order])
    ways = [fold(b, 3, [(START + 20, config, None)]) for b in (book, other)]
    np.testing.assert_array_equal(ways[0].G, ways[1].G)
    np.testing.assert_array_equal(ways[0].H, ways[1].H)


def test_sums_of_harm_do_not_overflow() -> None:
    count = 3000
    rows = np.zeros(count, ROW)
    rows["tick"], rows["use"], rows["amount"] = START + 1, True, 10**6 * UNIT
    rows["source"] = np.arange(count) % 2
    book = Ledger()
    book.append(rows)
    config = GateConfig(cap_source=1e6, cap_region=1e6, normalise=False)
    found = same(book, 1, [(START + 1, config, None)])
    assert 0 < found.G[0] <= config.params.alpha * MOST / UNIT


def test_a_resting_scar_heeds_new_settings() -> None:
    """A scar that nothing has changed for long still expires, or decays, when told to."""
    rows: Rows = np.zeros(1, ROW)
    rows["tick"], rows["use"], rows["amount"] = START + 1, True, UNIT
    book = Ledger()
    book.append(rows)
    config = GateConfig(
        min_sources=1, min_signals=1, prior_exposures=0.5, params=FieldParams(lam=0.5, tau=0.1)
    )  # fmt: skip
    for change in ({"scar_ticks": 10}, {"params": FieldParams(delta=0.9)}):
        new = GateConfig.from_dict({**config.to_dict(), **change})
        still = START + 150
        segments = [(still, config, Act(still, config=new)), (still + 50, new, None)]
        before = fold(book, 1, segments[:1])
        assert before.H[0] > 0
        assert before.G[0] == 0.0  # nothing lives any more
        assert same(book, 1, segments).H[0] < 0.01 * before.H[0]
