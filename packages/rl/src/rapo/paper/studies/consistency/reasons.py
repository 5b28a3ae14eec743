"""Why some of the paper's numbers do not hold together: statements with premises and numbers.

Each statement says what it rests on. A *proven* one follows from the definitions under its premise.
A *mean field* one holds for one large, well-mixed set: it is a guide for graphs and proves nothing
about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from rapo.paper.paper import ODDS_RATIO, TABLE1
from rapo.theory import (
    bistable_conductances,
    consistent_spread,
    exposure_conductance,
    needed_trace,
    off_at_replay_at_least,
    scar_work,
)
from rapo_core.params import FieldParams

PROVEN, MEAN_FIELD = "proven", "mean field"
HARMED = 450
"""Steps of Exposure in which harm arrives: 500 less the delay of 50."""
SEEDS = 10
"""Number of seeds that the paper's stds are taken to be over, for a standard error."""
OTHER = 0.14
"""Odds ratio of the bistable reading."""


@dataclass(frozen=True)
class Reason:
    """One statement."""

    name: str
    kind: str
    """`proven` or `mean field`."""
    statement: str
    premise: str
    numbers: dict[str, float]
    rules_out: str

    def numbers_text(self) -> str:
        """Format the numbers in one line."""
        return "; ".join(f"{name} {value:.3g}" for name, value in self.numbers.items())


def opens_at(params: FieldParams) -> float:
    """Find the odds ratio below which `consistent_spread` is not empty."""

    def gap(theta: float) -> float:
        low, high = consistent_spread(theta, params)
        return low - high

    return float(brentq(gap, 0.15, 0.8))


def spread_curve(params: FieldParams, points: int = 31) -> pd.DataFrame:
    """Tabulate `consistent_spread`: columns theta, low and high, theta from .1 to .6."""
    thetas = np.linspace(0.1, 0.6, points)
    ends = [consistent_spread(float(theta), params) for theta in thetas]
    return pd.DataFrame(
        {"theta": thetas, "low": [a for a, _ in ends], "high": [b for _, b in ends]}
    )


def reasons(params: FieldParams | None = None, theta: float = ODDS_RATIO) -> list[Reason]:
    """List all statements.

    Args:
        params: constants of the fields, default the paper's.
        theta: odds ratio in Replay, default the paper's.
    """
    params = params or FieldParams()
    low, high = consistent_spread(theta, params)
    at_other = consistent_spread(OTHER, params)
    two = bistable_conductances(high) if high > 2 else None
    below = {
        f"{m} in standard errors below 1": (1 - mean) / (std / sqrt(SEEDS))
        for m, (mean, std) in TABLE1["off@rep"].items()
        if m != "ReplayRet"
    }
    off = " / ".join(f"{TABLE1['off@rep'][m][0]:.2f}" for m in ("RAG", "AUC_R", "SM_R"))
    returns = {m: TABLE1[m]["ReplayRet"][0] for m in ("RAPO", "off@rep")}
    return [
        *_of_scars(params, theta),
        Reason(
            "Activity resists only where Replay ignites",
            MEAN_FIELD,
            "With R nodes reached by an active one, established activity resists the conductance "
            f"of late Exposure for R above the first number; odds of {theta:g} keep Replay from "
            "igniting for R below the second. No R does both. The range opens at a smaller odds "
            "ratio, where the scar lies further below the conductance that ignites.",
            "One large well-mixed set, equal regions, a steady trace. Two stable states, quiet and "
            "active, exist for R > 2 alone.",
            {
                "Exposure resists above R =": low,
                "Replay stays quiet below R =": high,
                "two states at that R from psi =": two[0] if two else float("nan"),
                "to psi =": two[1] if two else float("nan"),
                "range opens at an odds ratio of": opens_at(params),
                f"at {OTHER:g} from R =": at_other[0],
                "to R =": at_other[1],
                "off@rep mass at R = 3": off_at_replay_at_least(3.0, theta, params, steps=HARMED),
                "at R = 4": off_at_replay_at_least(4.0, theta, params, steps=HARMED),
            },
            f"OddsRatio {theta:g}, a suppressed Replay and off@rep near 1 in one such set.",
        ),
        Reason(
            "The gated set lies inside the nominal one",
            PROVEN,
            "Under the same draws and actions every node active in RAPO's Exposure is active in "
            "that of P0, at every step: the gate lowers probabilities, and fewer active nodes "
            "activate fewer. off@rep's Replay is P0's own. So its expected peak, mass and "
            "sensitive mass are at least those of RAPO's Exposure. With independent draws that "
            "holds for the mean of ratios as well: E[Y / X] = E[Y] E[1 / X] >= E[Y] / E[X] for "
            "each stimulus.",
            "The actions depend on stimulus and step alone, and are the same in both phases. A "
            "policy that sees activity or scars may act otherwise in Replay, and then the bound "
            "does not hold; the paper reports a low action shift.",
            {"least off@rep expected": 1.0, **below},
            f"off@rep of {off} on average without an action shift. If the paper's stds "
            f"are over {SEEDS} seeds these lie about two standard errors below 1: near the bound, "
            "not far from it.",
        ),
        Reason(
            "Without the gate everything is served",
            PROVEN,
            "Under the same draws and actions off@rep serves each injection that RAPO serves, and "
            "all that the gate held back: its return is at least RAPO's, and equal only if what "
            "was held back earned nothing.",
            "As before, and a reward that does not fall with served injections or activity.",
            {f"the paper's {name} ReplayRet": value for name, value in returns.items()},
            "One return for both while the gate costs return. They can be equal if the policy "
            "itself asks for less and the gate costs nothing.",
        ),
    ]


def _of_scars(params: FieldParams, theta: float) -> list[Reason]:
    """List what a scar that contracts odds to theta asks of Exposure."""
    trace = needed_trace(theta, params, HARMED)
    return [
        Reason(
            "A scar is made of trace",
            PROVEN,
            f"To contract odds to {theta:g} by itself, a region's scar takes a sum of "
            "max(0, G - tau) over Exposure of ln(1 / theta) / (w_H eta). Over the steps in which "
            "the trace exceeds tau its mean is tau plus that work over their number, so at least "
            "the value given here; and in each of them it gates its region by less than "
            "exp(-w_G tau).",
            f"Scars do not decay; harm arrives in {HARMED} of 500 steps; the odds ratio in Replay "
            "is the scar's (in a suppressed Replay the trace adds little).",
            {
                "work": scar_work(theta, params),
                "mean trace": trace,
                "gate by the trace alone, at most": exp(-params.w_G * params.tau),
            },
            "An Exposure in which regions scar and stay free.",
        ),
        Reason(
            "Late Exposure is gated like Replay",
            PROVEN,
            "With a steady trace the conductance averaged over the second half of Exposure lies "
            f"below the {theta:g} of Replay, as scar and trace act together.",
            "As before, and the trace is steady. A burst of harm early on gates longer; only harm "
            "that comes late leaves Exposure free.",
            {
                "late conductance": exposure_conductance(theta, params, steps=HARMED),
                "Replay": theta,
            },
            "off@rep near 1 by way of an Exposure that is hardly deformed; it takes activity that "
            "resists the gate.",
        ),
    ]
