"""Means over graphs, the unit of every table, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rapo.paper.jobs import Evaluation, Policy
from rapo.paper.paper import METRICS
from rapo.paper.presets import Preset
from rapo.paper.results import Results
from rapo.rsd.bootstrap import Bootstrap, ratio_bootstrap
from rapo.rsd.pooled import RESAMPLES
from rapo.rsd.statistics import by_unit, mean_interval

TITLES = {
    "RAG": "RAG",
    "AUC_R": "AUC-R",
    "SM_R": "SM-R",
    "ReplayRet": "ReplayRet",
    "OddsRatio": "OddsRatio",
}
"""Columns as tables and axes call them."""
PARTS = {"RAG": "peak", "AUC_R": "reach", "SM_R": "inside"}
"""What each ratio divides in Replay by the same in Exposure."""
FEW = 5
"""Below as many graphs figures leave intervals out: they would hide everything else."""


def unit_means(
    results: Results,
    evaluations: Sequence[Evaluation],
    base: float,
    columns: Sequence[str] = METRICS,
) -> pd.DataFrame:
    """Graph means (graphs, columns); ReplayRet is the Replay return over `base`."""
    frame = results.episodes(evaluations)
    frame = frame.assign(ReplayRet=frame["ReplayReturn"] / base)
    return pd.DataFrame({name: by_unit(frame, name) for name in columns})


def ratios_of_means(frame: pd.DataFrame) -> dict[str, Bootstrap]:
    """Ratios of means, of all episodes together, with a bootstrap over graphs.

    A mean of ratios is carried by the few episodes whose Exposure hardly touches V_sens.
    """
    found = {}
    for metric, part in PARTS.items():
        after, before = (by_unit(frame, f"{part}_{phase}") for phase in ("replay", "exposure"))
        found[metric] = ratio_bootstrap(after, before, 0.95, RESAMPLES, rng=0)
    return found


def interval_text(middle: float, low: float, high: float, form: str = ".2f", unit: str = "") -> str:
    """Format a number with its interval; without an interval the number alone, `-` without both.

    >>> interval_text(3.1, 2.0, 4.2, "+.1f", "%"), interval_text(0.5, float("nan"), float("nan"))
    ('+3.1% [+2.0, +4.2]', '0.50')
    """
    if np.isnan(middle):
        return "-"
    ends = "" if np.isnan(low) else f" [{low:{form}}, {high:{form}}]"
    return f"{middle:{form}}{unit}{ends}"


def with_interval(values: Any, digits: int = 2) -> str:
    """Format the mean of graph means with its 95% interval, such as `0.33 [0.30, 0.36]`."""
    interval = mean_interval(np.asarray(values, float))
    return interval_text(interval.mean, interval.low, interval.high, f".{digits}f")


def mean_of(values: Any) -> float:
    """Mean of what is defined; NaN of nothing."""
    return mean_interval(np.asarray(values, float)).mean


def retrained(preset: Preset, **changes: Any) -> tuple[Evaluation, ...]:
    """RAPO trained anew with changes of its config, for the steps that all retraining has."""
    return tuple(
        Evaluation(
            Policy(preset.config("RAPO", seed, steps=preset.retrain_steps, **changes)),
            "RAPO",
            episodes=preset.episodes,
            label="retrained",
        )
        for seed in preset.retrain_seeds
    )
