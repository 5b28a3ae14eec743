"""How much harm a score holds back at a given loss of good; rows are either good or bad."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rapo_gate import shadow_log
from rapo_gate.shadow_log import interval, resampled

__all__ = ["LEVELS", "auc", "held_at", "interval", "resampled"]

LEVELS = (0.01, 0.02, 0.05, 0.1)
"""Shares of the good that may be lost."""

Reals = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def held_at(score: Reals, bad: Bools, levels: tuple[float, ...], weight: Reals) -> Reals:
    """Share of the bad held back when so much of the good is lost, (levels,).

    Args:
        score: higher is held back first, 0 never, (n,).
        bad: (n,).
        levels: in (0, 1).
        weight: of each row, (n,); a bootstrap counts rows so.
    """
    return shadow_log.held_at(score, np.where(bad, 0.0, weight), np.where(bad, weight, 0.0), levels)


def auc(score: Reals, bad: Bools, weight: Reals) -> float:
    """Chance that a bad row scores above a good one, ties half."""
    order = np.argsort(score, kind="stable")
    _, group = np.unique(score[order], return_inverse=True)
    good = np.bincount(group, np.where(bad, 0.0, weight)[order])
    ill = np.bincount(group, np.where(bad, weight, 0.0)[order])
    if not good.sum() or not ill.sum():
        return float("nan")
    below = np.cumsum(good) - good / 2
    return float((ill * below).sum() / (good.sum() * ill.sum()))
