"""Heavy tails: when a mean of per-episode ratios cannot be trusted, decided by one number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rapo.rsd.statistics import defined, std_of

HEAVY = 0.35
"""Largest coefficient of variation of Exposure at which the mean of ratios still comes first."""


@dataclass(frozen=True)
class Tails:
    """What was decided, and on what."""

    heavy: bool
    metric: str | None
    """The ratio whose Exposure varies most; None where nothing could be looked at."""
    variation: float
    """Its coefficient of variation over the episodes, >= 0; NaN where there is none."""


def variation(values: npt.ArrayLike) -> float:
    """Coefficient of variation (std with ddof 1 over mean) of values (n,) >= 0, NaN left out.

    NaN below two values, or where all are 0.

    >>> round(variation([9.0, 10.0, 11.0]), 3)
    0.1
    """
    kept, _ = defined(values)
    mean = float(kept.mean()) if kept.size else 0.0
    return float(std_of(kept) / mean) if mean > 0 else np.nan


def judge_tails(exposure: Mapping[str, npt.ArrayLike]) -> Tails:
    """Whether Exposure varies so much between episodes that ratios should be pooled.

    An episode's ratio divides by what its own Exposure happened to be, so by Jensen's inequality
    the mean of ratios is too large by up to the squared coefficient of variation of the
    denominators, and no number of episodes mends that. The largest coefficient decides: tails are
    heavy above `HEAVY`, where that bias may pass an eighth. Under `P0`, where the truth is 1, the
    t interval of 100 such ratios covered 1 in .82-.98 of the blocks on graphs below the bound and
    in .45-.72 on those above it (`python -m benchmarks pooled_coverage --rounds 100`). Nothing is
    drawn: the same episodes are always judged alike.

    Args:
        exposure: by ratio, its denominators, (n,) each: peak reach, total reach, sensitive mass.

    >>> judge_tails({"RAG": [20.0, 21.0, 19.0, 20.0]}).heavy
    False
    >>> judge_tails({"RAG": [20.0, 21.0, 19.0, 90.0]}).heavy
    True
    """
    found = {metric: variation(values) for metric, values in exposure.items()}
    known = {metric: value for metric, value in found.items() if np.isfinite(value)}
    if not known:
        return Tails(False, None, np.nan)
    metric = max(known, key=lambda name: known[name])
    return Tails(known[metric] > HEAVY, metric, known[metric])
