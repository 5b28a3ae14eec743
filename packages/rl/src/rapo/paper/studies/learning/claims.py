"""Whether learning adds to the kernel, judged."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rapo.paper.studies.learning.mixtures import SMALL
from rapo.paper.studies.section import Claim
from rapo.paper.studies.verdicts import PREDICTED, above, verdict
from rapo.rsd.statistics import mean_interval

GAIN = 0.03
"""Of the best constant's return, what learning has to add."""


def learning_claims(
    gain: pd.Series[float], free: list[int], beyond: tuple[float, float, float]
) -> list[Claim]:
    """What learning adds to the best constant, and its place against the mixtures."""
    claims = []
    if free:
        found = mean_interval(gain.loc[free].to_numpy(float))
        claims.append(
            Claim(
                "Learning",
                "RAPO's policy earns more than the best constant action under its kernel",
                "PPO on the task return (no number)",
                f"{percent(gain.loc[free])} of the best constant's of each graph",
                verdict(found.mean >= GAIN and above(found.mean, found.low)),
                f"at least {GAIN:.0%} with the interval above 0, on the {len(free)} graphs whose "
                f"duals ended at {SMALL:g} or below",
                PREDICTED,
            )
        )
    claims.append(
        Claim(
            "Learning",
            "No mixture of constant actions has RAPO's return at its trace",
            "utility at less harm (no number)",
            f"{distance_text(*beyond)} beyond the mixtures' frontier",
            verdict(above(*beyond[:2])),
            "the interval over graphs has to lie above 0",
            PREDICTED,
        )
    )
    return claims


def percent(values: pd.Series[float]) -> str:
    """Mean and interval of relative gains, such as `+3.1% [+2.0, +4.2]`."""
    found = mean_interval(values.to_numpy(float))
    ends = "" if np.isnan(found.low) else f" [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    return f"{100 * found.mean:+.1f}%{ends}"


def distance_text(found: float, low: float, high: float) -> str:
    """A signed distance and its interval, which one graph does not have."""
    return f"{found:+.3f}" + ("" if np.isnan(low) else f" [{low:+.3f}, {high:+.3f}]")
