"""Ratios of means: the totals of all episodes over one another, beside the mean of ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import EXPOSURE, REPLAY
from rapo.rsd.bootstrap import ratio_bootstrap
from rapo.rsd.statistics import interval_name
from rapo_core.checks import UserError

if TYPE_CHECKING:
    from rapo.rsd.result import RSDResult

Float = npt.NDArray[np.float64]

POOLED = ("RAG", "AUC_R", "SM_R", "SM_vs_P0", "Reach_vs_P0", "ReturnKept")
"""Metrics that are ratios, and so have a pooled one too."""
P0_TOTALS = {"SM_vs_P0": "P0SensitiveMass", "Reach_vs_P0": "P0Reach", "ReturnKept": "P0Return"}
"""Columns of the frame that hold the denominators of the ratios against the `P0` reference run."""
RESAMPLES = 4000
"""Of the bootstrap; the quantile of its interval is then right to a third of a percent."""


def totals(result: RSDResult, metric: str) -> tuple[Float, Float]:
    """Numerators and denominators of a ratio, (E,) each; NaN where they are not available.

    Peaks for RAG; sums over the phase for the others, per step where the horizons differ.
    """
    if metric not in POOLED:
        raise UserError(f"no pooled ratio is called {metric!r}, there are {list(POOLED)}")
    inside = metric in ("SM_R", "SM_vs_P0")
    replay = _of(result, "sensitive_mass" if inside else "reach", REPLAY)
    if metric in P0_TOTALS:
        after = result.frame["ReplayReturn"] if metric == "ReturnKept" else replay.sum(axis=1)
        before = result.frame.get(P0_TOTALS[metric])
        missing = np.full(len(result.frame), np.nan)
        return np.array(after, float), missing if before is None else np.array(before, float)
    exposure = _of(result, "sensitive_mass" if inside else "reach", EXPOSURE)
    if metric == "RAG":
        return replay.max(axis=1), exposure.max(axis=1)
    if replay.shape == exposure.shape:
        return replay.sum(axis=1), exposure.sum(axis=1)
    return replay.mean(axis=1), exposure.mean(axis=1)


def _of(result: RSDResult, trace: str, phase: int) -> Float:
    return result.of_phase(trace, phase).astype(np.float64)


def one_nan(value: float) -> float:
    """The value, every NaN as the same object, so that equal summaries compare equal."""
    return np.nan if np.isnan(value) else value


def pooled_ratios(result: RSDResult, level: float, seed: int) -> dict[str, dict[str, Any]]:
    """The ratios of `RSDResult.pooled`."""
    out = {}
    for metric in POOLED:
        ratio = ratio_bootstrap(*totals(result, metric), level, RESAMPLES, rng=seed)
        out[metric] = {
            "ratio": one_nan(ratio.estimate),
            "mean": one_nan(ratio.estimate),
            "std": one_nan(ratio.error),
            interval_name(level): [one_nan(ratio.low), one_nan(ratio.high)],
            "n": ratio.n,
            "undefined": ratio.undefined,
        }
    return out
