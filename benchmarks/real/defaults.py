"""What the recommended settings do to made-up regions, tick of one minute.

python -m benchmarks.real.defaults
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rapo_core.params import FieldParams
from rapo_gate.config import GateConfig
from rapo_gate.shadow_log import Course, History, course

DAY = 1440
"""Ticks."""
RECOMMENDED = GateConfig(
    base_rate=0.01,
    half_life=3 * DAY,
    shrinkage=50.0,
    z=2.0,
    scale=0.2,
    params=FieldParams(
        lam=0.1, alpha=0.1, tau=0.1, eta=0.002, delta=0.999984, w_G=1.0, w_H=2.0, psi_min=0.1
    ),
    min_sources=3,
    min_signals=2,
    confirm_ticks=DAY,
)
"""With alpha = lam a steady trace is the harm itself: 0 at the base rate, 1 at 20 points above it,
tau at 2 points above it, that is at three times the base rate. Scars halve in 30 days."""
SEEDS = 20


@dataclass(frozen=True, slots=True)
class Case:
    """A region: how often it is seen, how often reported, for how long, by how many."""

    name: str
    per_tick: float
    rate: float
    ticks: int = DAY
    reporters: int = 500
    quiet_after: int = 0
    """Ticks with the same exposures and reports at the base rate."""


CASES = (
    Case("1% reported (the base rate), 100 exposures a tick, a day", 100, 0.01),
    Case("2%, 100 a tick, a day", 100, 0.02),
    Case("3%, 100 a tick, a day", 100, 0.03),
    Case("5%, 100 a tick, an hour", 100, 0.05, 60),
    Case("5%, 100 a tick, a day", 100, 0.05),
    Case("10%, 100 a tick, a day", 100, 0.1),
    Case("20%, 100 a tick, an hour", 100, 0.2, 60),
    Case("20%, 100 a tick, a day", 100, 0.2),
    Case("20%, 1000 a tick, a day", 1000, 0.2),
    Case("20%, 1 a tick, a day", 1, 0.2),
    Case("20%, 0.2 a tick, a day", 0.2, 0.2),
    Case("20%, 0.2 a tick, a week", 0.2, 0.2, 7 * DAY),
    Case("1%, 0.2 a tick, a week", 0.2, 0.01, 7 * DAY),
    Case("all of 0.2 a tick reported by one person, a day", 0.2, 1.0, DAY, 1),
    Case("all of 0.2 a tick reported by two people, a day", 0.2, 1.0, DAY, 2),
    Case("20% for a day, then a clean week, 100 a tick", 100, 0.2, DAY, 500, 7 * DAY),
)


def played(case: Case, law: GateConfig, seed: int) -> Course:
    """Fields at every tick of a case, reports counting in the next tick."""
    rng = np.random.default_rng(seed)
    ticks = case.ticks + case.quiet_after
    rate = np.where(np.arange(ticks) < case.ticks, case.rate, law.base_rate)
    seen = rng.poisson(case.per_tick, ticks)
    reports = rng.binomial(seen, rate)
    when = np.repeat(np.arange(ticks), reports)
    nowhere = np.zeros(ticks, np.int64)
    said = (
        when, np.zeros(when.size, np.int64), np.ones(when.size),
        rng.integers(0, case.reporters, when.size), rng.integers(0, 2, when.size),
    )  # fmt: skip
    history = History.of(1, (np.arange(ticks), nowhere, seen), said, delay=1, cap_source=5.0)
    return course(history, law, nowhere, np.arange(ticks) + 1)


def table(law: GateConfig = RECOMMENDED, seeds: int = SEEDS) -> list[dict[str, float | str]]:
    """Of each case the medians over seeds at its end, and the lowest psi of all ticks and seeds."""
    rows: list[dict[str, float | str]] = []
    for case in CASES:
        runs = [played(case, law, seed) for seed in range(seeds)]
        last = {x: float(np.median([getattr(r, x)[-1] for r in runs])) for x in ("G", "H", "psi")}
        lowest = float(min(r.psi.min() for r in runs))
        scarred = sum(bool(r.H[-1] > 0) for r in runs) / seeds
        rows.append({"case": case.name, **last, "lowest_psi": lowest, "scarred": scarred})
    return rows


def main() -> None:
    """Print the table."""
    print(f"{'case':58s}    G      H    psi  lowest  scarred")
    for row in table():
        figures = (row[name] for name in ("G", "H", "psi", "lowest_psi"))
        text = " ".join(f"{value:6.3f}" for value in figures)
        print(f"{row['case']:58s} {text}  {row['scarred']:.0%}")


if __name__ == "__main__":
    main()
