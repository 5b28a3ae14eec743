"""Made-up ledgers and exposures, and a fold that is played through them.

Loaded by path: test files cannot import each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo_core.params import FieldParams
from rapo_gate.config import GateConfig
from rapo_gate.fold.fold import ROW, UNIT, Fold, Rows

START = 1000
Shown = dict[int, dict[int, int]]


def made_up(rng: np.random.Generator, regions: int, ticks: int, count: int) -> Rows:
    """Random rows; some ticks are crowded, some empty, some rows were rolled back."""
    rows = np.zeros(count, ROW)
    rows["tick"] = np.sort(START + 1 + (ticks * rng.random(count) ** 2).astype(np.int64))
    rows["report"] = np.arange(count)
    rows["region"] = rng.integers(regions, size=count)
    rows["source"] = rng.integers(5, size=count)
    rows["signal"] = rng.integers(3, size=count)
    rows["amount"] = np.rint(rng.random(count) ** 3 * UNIT) + 1
    rows["rolled_back"] = rng.random(count) < 0.1
    rows["bystander"] = rng.random(count) < 0.3
    return rows


def exposed(rng: np.random.Generator, regions: int, ticks: int, most: float = 5.0) -> Shown:
    """Random exposures by the tick in which they count; more and more of them."""
    return {
        START + 1 + t: {
            r: int(rng.random() * most * (1 + t / 10) * UNIT)
            for r in range(regions) if rng.random() < 0.5
        }
        for t in range(ticks)
    }  # fmt: skip


def settings(rng: np.random.Generator, **given: Any) -> GateConfig:
    """Random settings at which things happen within 60 ticks."""
    params = FieldParams(
        lam=float(rng.choice([0.1, 0.5])), alpha=float(rng.choice([0.5, 3.0])),
        eta=float(rng.choice([0.05, 0.0])), tau=float(rng.choice([0.0, 0.05, 0.3])),
        delta=float(rng.choice([1.0, 0.95])),
    )  # fmt: skip
    drawn: dict[str, Any] = {
        "params": params,
        "base_rate": float(rng.choice([0.01, 0.1])),
        "half_life": float(rng.choice([2.0, 30.0])),
        "shrinkage": float(rng.choice([0.5, 10.0])),
        "z": float(rng.choice([0.0, 0.3, 1.0])),
        "scale": float(rng.choice([0.1, 1.0])),
        "cap_source": float(rng.choice([0.3, 5.0])),
        "min_signals": int(rng.integers(1, 4)),
        "min_sources": int(rng.integers(1, 6)),
        "confirm_ticks": int(rng.choice([1, 4, 20])),
        "scar_ticks": None if rng.random() < 0.5 else int(rng.integers(1, 15)),
    }
    return GateConfig(**{**drawn, **given})


def play(
    fold: Fold, rows: Rows, shown: Shown, until: int, stops: tuple[int, ...] = ()
) -> Fold:  # fmt: skip
    """Take everything in, in the order of time, and go on to `until`, with stops on the way."""
    begun = fold.tick
    for stop in (*stops, until):
        here = rows[(rows["tick"] > fold.tick) & (rows["tick"] <= stop)]
        for tick in sorted({*here["tick"].tolist(), *(t for t in shown if begun < t <= stop)}):
            if tick <= fold.tick:
                continue
            if tick in shown:
                regions = np.array(list(shown[tick]), np.int32)
                fold.exposure.add(tick, regions, np.array(list(shown[tick].values()), np.int64))
                fold.expose(tick, tick)
            fold.count(here[here["tick"] == tick])
            fold.run(tick)
        fold.run(stop)
    return fold


def new_fold(regions: int, config: GateConfig) -> Fold:
    fold = Fold(START, config)
    fold.grow(regions)
    return fold
