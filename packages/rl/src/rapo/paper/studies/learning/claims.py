"""Judge whether learning adds to what the kernel does alone."""

from __future__ import annotations

import pandas as pd

from rapo.paper.studies.graph_means import interval_text, mean_of
from rapo.paper.studies.learning.mixtures import SMALL
from rapo.paper.studies.verdicts import PREDICTED, Claim, above, judge, mean_above
from rapo.rsd.statistics import mean_interval

GAIN = 0.03
"""Share of the best constant's return that learning has to add."""


def learning_claims(
    gain: pd.Series[float], free: list[int], beyond: tuple[float, float, float]
) -> list[Claim]:
    """Judge RAPO's gain over the best constant, and its distance beyond the mixtures.

    Args:
        gain: relative gain in return over the best constant of each graph, by graph seed.
        free: graphs on which no dual binds; only there can RAPO be asked for return.
        beyond: distance beyond the mixtures' frontier, and the ends of its interval.
    """
    claims = []
    if free:
        claims.append(
            judge(
                "Learning",
                "RAPO's policy earns more than the best constant action under its kernel",
                "PPO on the task return (no number)",
                f"{percent(gain.loc[free])} of the best constant's of each graph",
                mean_of(gain.loc[free]) >= GAIN and mean_above(gain.loc[free]),
                PREDICTED,
                f"at least {GAIN:.0%} with the interval above 0, on the {len(free)} graphs whose "
                f"duals ended at {SMALL:g} or below",
            )
        )
    claims.append(
        judge(
            "Learning",
            "No mixture of constant actions has RAPO's return at its trace",
            "utility at less harm (no number)",
            f"{interval_text(*beyond, '+.3f')} beyond the mixtures' frontier",
            above(*beyond[:2]),
            PREDICTED,
            "the interval over graphs has to lie above 0",
        )
    )
    return claims


def percent(values: pd.Series[float]) -> str:
    """Format the mean and interval of relative gains, such as `+3.1% [+2.0, +4.2]`."""
    gain = mean_interval(100 * values.to_numpy(float))
    return interval_text(gain.mean, gain.low, gain.high, "+.1f", "%")
