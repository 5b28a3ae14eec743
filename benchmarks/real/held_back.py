"""How much harm a score holds back at a given loss of good, with intervals over regions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LEVELS = (0.01, 0.02, 0.05, 0.1)
"""Shares of the good that may be lost."""

Reals = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def held_at(score: Reals, bad: Bools, levels: tuple[float, ...], weight: Reals) -> Reals:
    """Share of the bad held back when so much of the good is lost, (levels,).

    What ties with the threshold is held back in part, good and bad alike. What scores 0 or less,
    because nobody ever reported it, is never held back: then less is lost than was allowed, and
    the share is that of everything with a score.

    Args:
        score: higher is held back first, (n,).
        bad: (n,).
        levels: in (0, 1).
        weight: of each row, (n,); a bootstrap counts rows so.
    """
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.diff(score[order], append=-np.inf))
    lost = np.cumsum(np.where(bad, 0.0, weight)[order])
    held = np.cumsum(np.where(bad, weight, 0.0)[order])
    if not lost[-1] or not held[-1]:
        return np.full(len(levels), np.nan)
    all_good, all_bad = lost[-1], held[-1]
    ends = ends[score[order][ends] > 0]
    lost, held = lost[ends], held[ends]
    # where a group of ties holds no good, the curve rises straight up: take its upper end
    x, first = np.unique(np.append(0.0, lost)[::-1], return_index=True)
    y = np.append(0.0, held)[::-1][first]
    return np.asarray(np.interp(np.array(levels) * all_good, x, y) / all_bad)


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


def resampled(region: npt.NDArray[np.int64], times: int, seed: int) -> Reals:
    """Weights of rows when regions are drawn with replacement, (times, n)."""
    names, number = np.unique(region, return_inverse=True)
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(names.size, np.full(names.size, 1 / names.size), times)
    return np.asarray(draws[:, number], np.float64)


def interval(values: Reals) -> list[float] | None:
    """95% percentile interval; None where it is not defined."""
    known = values[np.isfinite(values)]
    if known.size < 0.95 * values.size:
        return None
    return [float(v) for v in np.quantile(known, (0.025, 0.975))]
