"""Means over graphs, the unit of every table, and how tables and files show them."""

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
"""Titles of columns in tables and on axes."""
PARTS = {"RAG": "peak", "AUC_R": "reach", "SM_R": "inside"}
"""Quantity whose Replay each ratio divides by its Exposure."""
FEW = 5
"""Fewest graphs for which figures draw intervals; wider ones would hide everything else."""


def unit_means(
    results: Results,
    evaluations: Sequence[Evaluation],
    base: float,
    columns: Sequence[str] = METRICS,
) -> pd.DataFrame:
    """Average over each graph, (graphs, columns); ReplayRet is the Replay return over `base`."""
    frame = results.episodes(evaluations)
    frame = frame.assign(ReplayRet=frame["ReplayReturn"] / base)
    return pd.DataFrame({name: by_unit(frame, name) for name in columns})


def ratios_of_means(frame: pd.DataFrame) -> dict[str, Bootstrap]:
    """Divide means of all episodes together, with a bootstrap over graphs.

    A mean of ratios is carried by the few episodes whose Exposure hardly touches V_sens.
    """
    ratios = {}
    for metric, part in PARTS.items():
        after, before = (by_unit(frame, f"{part}_{phase}") for phase in ("replay", "exposure"))
        ratios[metric] = ratio_bootstrap(after, before, 0.95, RESAMPLES, rng=0)
    return ratios


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


def interval_columns(means: pd.DataFrame) -> dict[str, float]:
    """Flatten graph means into columns of a file: `NAME`, `NAME_low` and `NAME_high` of each."""
    row: dict[str, float] = {}
    for name in means.columns:
        interval = mean_interval(means[name])
        row |= {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
    return row


def mean_of(values: Any) -> float:
    """Return the mean of the defined values; NaN if there are none."""
    return mean_interval(np.asarray(values, float)).mean


def retrained(preset: Preset, **changes: Any) -> tuple[Evaluation, ...]:
    """Evaluate RAPO trained with changes of its config, for the steps of all retraining."""
    return tuple(
        Evaluation(
            Policy(preset.config("RAPO", seed, steps=preset.retrain_steps, **changes)),
            "RAPO",
            episodes=preset.episodes,
            label="retrained",
        )
        for seed in preset.retrain_seeds
    )
