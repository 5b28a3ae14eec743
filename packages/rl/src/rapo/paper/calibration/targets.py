"""How a setting is scored: by requirements first, then by all the paper's numbers at once."""

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
"""Price of breaking a requirement by one of its units: it is worse than any target missed."""


@dataclass(frozen=True)
class Target:
    """A number of the paper, with the distance that counts as 1."""

    name: str
    """Name of the measured value."""
    low: float
    high: float
    """Ends of the range in which the distance is 0: the paper's number twice, or its range."""
    unit: float
    """Distance that counts as 1: one of the paper's stds where it gives one."""
    ratio: bool = False
    """Whether distances are those of logarithms, for ratios that may be several times too large."""
    weight: float = 1.0
    """Weight in the score; a target that conflicts with most of the others weighs less."""

    def loss(self, values: Mapping[str, float]) -> float:
        """Return `2 weight (sqrt(1 + z^2) - 1)` of the distance z: a square near 0, then linear."""
        return self.weight * 2 * (sqrt(1 + self.distance(values) ** 2) - 1)

    def distance(self, values: Mapping[str, float]) -> float:
        """Return how far the measured value is from the range, in units, >= 0."""
        value = values[self.name]
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
"""Targets for fixed and greedy policies. OddsRatio and slow decay have no std in the paper and take
RAG's. `alive`, reach in Exposure's second half over that under `P0`, is a target of our own: the
memory may not crush the cascade before Replay."""

SIZE_TARGETS = tuple(Target(f"reduction_{n}", *SIZES_REDUCTION, 0.08) for n in (50, 100, 500, 1000))
"""Targets of the second look, which also tries other sizes."""

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
"""Conditions that come before closeness to the paper."""


def shortfalls(values: Mapping[str, float]) -> list[str]:
    """Name the requirements that a screened setting breaks."""
    return [
        f"{rule.name} {values[rule.name]:.3g} not in {rule.low:g}..{rule.high:g}"
        for rule in REQUIREMENTS
        if rule.distance(values) != 0
    ]


def completed(values: Mapping[str, float]) -> dict[str, float]:
    """Add the share of the containment radius that is kept, which follows from two values."""
    return {**values, "R_c_kept": values["R_c"] / values["R_c_P0"] if values["R_c_P0"] else 1.0}


def score(values: Mapping[str, float]) -> float:
    """Sum the targets' losses and the prices of broken requirements.

    A loss is linear far away, so that targets which cannot hold together do not decide everything.
    """
    whole = completed(values)
    targets = [*TARGETS, *(t for t in SIZE_TARGETS if t.name in whole)]
    total = sum(target.loss(whole) for target in targets)
    total += UNMET * sum(min(rule.distance(whole), 5.0) for rule in REQUIREMENTS)
    return total if isfinite(total) else float("inf")
