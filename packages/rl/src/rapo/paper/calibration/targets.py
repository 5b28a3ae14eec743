"""What a setting is judged by: all the paper's numbers at once, and requirements before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, sqrt

from rapo.paper.paper import (
    ACTIVITY_KEPT,
    CONTAINMENT,
    ODDS_RAG_CORRELATION,
    ODDS_RATIO,
    SIZES_REDUCTION,
    SLOW_DECAY_RAG,
    TABLE1,
)

UNMET = 5.0
"""What breaking a requirement by one of its units adds to a score: worse than any target missed."""
WORST = 6.0
"""Units after which a broken requirement costs no more, so that a search still sees the others."""


@dataclass(frozen=True)
class Target:
    """A number of the paper, and how far from it counts as one unit."""

    name: str
    low: float
    high: float
    """The distance is 0 between the two: the paper's number itself, or its range."""
    unit: float
    """One of the paper's stds where it gives one."""

    def distance(self, numbers: Mapping[str, float]) -> float:
        """How far a setting's number is from the target, in units, >= 0."""
        value = numbers[self.name]
        return max(self.low - value, value - self.high, 0.0) / self.unit

    def loss(self, numbers: Mapping[str, float]) -> float:
        """`2 (sqrt(1 + z^2) - 1)` of the distance z: a square near 0, linear far away."""
        return 2 * (sqrt(1 + self.distance(numbers) ** 2) - 1)


def _of_table(method: str, metric: str, name: str) -> Target:
    mean, std = TABLE1[method][metric]
    return Target(name, mean, mean, std)


TARGETS = (
    _of_table("RAPO", "RAG", "RAG"),
    _of_table("RAPO", "AUC_R", "AUC_R"),
    _of_table("RAPO", "SM_R", "SM_R"),
    _of_table("RAPO", "ReplayRet", "ReplayRet"),
    _of_table("off@rep", "RAG", "off_RAG"),
    _of_table("off@rep", "AUC_R", "off_AUC_R"),
    _of_table("off@rep", "SM_R", "off_SM_R"),
    Target("OddsRatio", ODDS_RATIO, ODDS_RATIO, 0.08),
    Target("slow_RAG", SLOW_DECAY_RAG, SLOW_DECAY_RAG, 0.08),
    Target("R_c_P0", CONTAINMENT[0], CONTAINMENT[0], 3.0),
    Target("R_c_kept", CONTAINMENT[1] / CONTAINMENT[0], CONTAINMENT[1] / CONTAINMENT[0], 0.05),
    Target("served", *ACTIVITY_KEPT, 0.03),
    Target("outside", *ACTIVITY_KEPT, 0.03),
    Target("correlation", ODDS_RAG_CORRELATION, ODDS_RAG_CORRELATION, 0.1),
    Target("RAG_P0", 1.0, 1.0, 0.1),
    Target("RAG_P0_std", 0.08, 0.16, 0.03),
)
"""Judged with constant actions and the greedy policy. OddsRatio and slow decay have no std in the
paper, theirs is RAG's; the other units are ours."""

REQUIREMENTS = (
    Target("low", 0.0, 0.0, 0.002),  # no Exposure without its cascade
    Target("failing", 0.0, 0.0, 0.05),
    Target("redrawn", 0.0, 0.5, 0.5),
    Target("low_P0", 0.9, 10.0, 0.05),  # under P0 no constant's ratios are far from 1
    Target("high_P0", 0.0, 1.1, 0.05),
    Target("off_RAG", 0.8, 1.15, 0.05),
    Target("off_AUC_R", 0.8, 1.15, 0.05),
    Target("off_SM_R", 0.8, 1.15, 0.05),
    Target("RAG", 0.27, 0.43, 0.03),
    Target("AUC_R", 0.30, 0.43, 0.03),
    Target("SM_R", 0.21, 0.41, 0.03),
    Target("ReplayRet", 0.77, 0.87, 0.02),
    Target("outside", 0.77, 0.93, 0.03),
    Target("gain", 0.045, 10.0, 0.01),  # there is something to learn
    Target("moderate_P0", 0.0, 0.98, 0.02),  # aggressive is best under P0
    Target("conservative_P0", 0.0, 0.98, 0.02),
    Target("capped", 0.0, 0.01, 0.02),  # Beta(2, 5) stays recognisable
    Target("sensitive", 0.15, 0.25, 0.01),
)
"""Before closeness to the paper; narrower than what must hold on other graphs, to leave room."""

SIZE_TARGETS = tuple(Target(f"reduction_{n}", *SIZES_REDUCTION, 0.08) for n in (50, 100, 500, 1000))
"""Of the finalists, which are also tried at other sizes."""


def held(numbers: Mapping[str, float]) -> int:
    """How many targets a setting holds within two units."""
    return sum(target.distance(numbers) <= 2 for target in _targets(numbers))


def unmet(numbers: Mapping[str, float]) -> list[str]:
    """Which requirements a setting breaks, as text."""
    return [
        f"{rule.name} {numbers[rule.name]:.3g} not in {rule.low:g}..{rule.high:g}"
        for rule in REQUIREMENTS
        if rule.distance(numbers) > 0
    ]


def score(numbers: Mapping[str, float]) -> float:
    """The mean of the targets' losses, and a price for each unmet requirement; less is better."""
    targets = _targets(numbers)
    total = sum(target.loss(numbers) for target in targets) / len(targets)
    total += UNMET * sum(min(rule.distance(numbers), WORST) for rule in REQUIREMENTS) / 10
    return total if isfinite(total) else float("inf")


def _targets(numbers: Mapping[str, float]) -> list[Target]:
    return [*TARGETS, *(target for target in SIZE_TARGETS if target.name in numbers)]
