"""What a setting is judged by: all the paper's numbers at once, and requirements before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, log, sqrt

from rapo.paper.paper import (
    ACTIVITY_KEPT,
    CONTAINMENT,
    ODDS_RATIO,
    SIZES_REDUCTION,
    SLOW_DECAY_RAG,
    TABLE1,
)

UNMET = 8.0
"""What breaking a requirement by one of its units adds to a score: worse than any target missed."""


@dataclass(frozen=True)
class Target:
    """A number of the paper, and how far from it counts as one."""

    name: str
    """In what was found."""
    low: float
    high: float
    """Where the distance is 0; the paper's number itself, or its range."""
    unit: float
    """One of the paper's stds where it gives one. Of a ratio that may be several: of its log."""
    ratio: bool = False
    weight: float = 1.0
    """In the score; what conflicts with most of the rest weighs less."""

    def loss(self, found: Mapping[str, float]) -> float:
        """`weight 2 (sqrt(1 + z^2) - 1)` with z the distance: a square near 0, linear far away."""
        return self.weight * 2 * (sqrt(1 + self.distance(found) ** 2) - 1)

    def distance(self, found: Mapping[str, float]) -> float:
        """In units, >= 0."""
        value = found[self.name]
        low, high = self.low, self.high
        if self.ratio:
            if value <= 0:
                return float("inf")
            value, low, high = log(value), log(low), log(high)
        return max(low - value, value - high, 0.0) / self.unit


def _row(
    method: str, metric: str, name: str, weight: float, ratio: bool = False, unit: float = 0.0
) -> Target:
    mean, std = TABLE1[method][metric]
    return Target(name, mean, mean, unit or std, ratio, weight)


TARGETS = (
    _row("RAPO", "RAG", "RAG", 2),
    _row("RAPO", "AUC_R", "AUC_R", 2),
    _row("RAPO", "SM_R", "SM_R", 2),
    _row("RAPO", "ReplayRet", "ReplayRet", 2),
    _row("off@rep", "RAG", "off_RAG", 1.5, ratio=True),
    # without the gate Replay is P0's, and Exposure is not: factors, not differences
    _row("off@rep", "AUC_R", "off_AUC_R", 0.5, ratio=True, unit=0.35),
    _row("off@rep", "SM_R", "off_SM_R", 0.5, ratio=True, unit=0.35),
    Target("alive", 0.2, 10.0, 0.05),
    Target("OddsRatio", ODDS_RATIO, ODDS_RATIO, 0.08),
    Target("slow_RAG", SLOW_DECAY_RAG, SLOW_DECAY_RAG, 0.08, weight=0.7),
    Target("R_c_P0", CONTAINMENT[0], CONTAINMENT[0], 3.0, weight=0.7),
    Target("R_c_kept", CONTAINMENT[1] / CONTAINMENT[0], CONTAINMENT[1] / CONTAINMENT[0], 0.05),
    Target("served", *ACTIVITY_KEPT, 0.04),
    Target("outside", *ACTIVITY_KEPT, 0.08),
)
"""Judged with fixed and greedy policies; OddsRatio and slow decay have no std in the paper, theirs
is RAG's. `alive`, Exposure's second half over that under `P0`, is our own: not crushed."""

SIZE_TARGETS = tuple(Target(f"reduction_{n}", *SIZES_REDUCTION, 0.08) for n in (50, 100, 500, 1000))
"""Of the second look, which also tries other sizes."""

REQUIREMENTS = (
    Target("conservative_cost", 0.0, 0.6, 0.1),  # there is something to trade
    Target("conservative_return", 0.0, 0.97, 0.03),  # and a price: aggressive is best under P0
    Target("moderate_return", 0.0, 0.99, 0.03),
    Target("clipped", 0.0, 0.01, 0.01),  # Beta(2, 5) stays recognisable
    Target("sensitive", 0.15, 0.255, 0.01),
    Target("gain", 0.03, 10.0, 0.01),  # greedy beats every constant: learning can matter
    Target("RAG_P0", 0.9, 1.1, 0.05),
    Target("RAG_P0_std", 0.08, 0.16, 0.02),
)
"""Before closeness to the paper."""


def shortfalls(found: Mapping[str, float]) -> list[str]:
    """Which requirements a screened setting breaks, in words."""
    return [
        f"{rule.name} {found[rule.name]:.3g} not in {rule.low:g}..{rule.high:g}"
        for rule in REQUIREMENTS
        if rule.distance(found) != 0
    ]


def completed(found: Mapping[str, float]) -> dict[str, float]:
    """With what follows from the rest: how much of the containment radius is kept."""
    return {**found, "R_c_kept": found["R_c"] / found["R_c_P0"] if found["R_c_P0"] else 1.0}


def score(found: Mapping[str, float]) -> float:
    """Sum of the targets' losses and a price for each shortfall.

    Linear far away, as targets that cannot hold together must not decide everything.
    """
    whole = completed(found)
    targets = [*TARGETS, *(t for t in SIZE_TARGETS if t.name in whole)]
    total = sum(target.loss(whole) for target in targets)
    total += UNMET * sum(min(rule.distance(whole), 5.0) for rule in REQUIREMENTS)
    return total if isfinite(total) else float("inf")
