"""What down-weights come to: harm held back, good lost, with intervals over regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]


def held_at(score: Reals, good: Reals, bad: Reals, losses: Sequence[float]) -> Reals:
    """Share of the bad held back when so much of the good is lost, (losses,).

    What scores highest is held back first; what ties with the threshold is held back in part, good
    and bad alike. What scores 0 or less, because nobody ever reported it, is never held back: then
    less is lost than was allowed, and the share is that of everything with a score.

    Args:
        score: (n,).
        good: good exposures of each row, (n,).
        bad: reported ones, (n,).
        losses: shares of the good, in (0, 1).
    """
    order = np.argsort(-score, kind="stable")
    lost, held = np.cumsum(good[order]), np.cumsum(bad[order])
    if not order.size or not lost[-1] > 0 or not held[-1] > 0:
        return np.full(len(losses), np.nan)
    all_good, all_bad = lost[-1], held[-1]
    ends = np.flatnonzero(np.diff(score[order], append=-np.inf))
    ends = ends[score[order][ends] > 0]
    # where a group of ties holds no good, the curve rises straight up: take its upper end
    x, first = np.unique(np.append(0.0, lost[ends])[::-1], return_index=True)
    y = np.append(0.0, held[ends])[::-1][first]
    return np.asarray(np.interp(np.array(losses) * all_good, x, y) / all_bad)


def shares(weight: Reals, good: Reals, bad: Reals) -> tuple[float, float]:
    """Shares of the bad held back and of the good lost by down-weights (n,) in [0, 1]."""
    return (
        float((weight * bad).sum() / max(float(bad.sum()), 1e-300)),
        float((weight * good).sum() / max(float(good.sum()), 1e-300)),
    )


def resampled(region: npt.NDArray[np.int64], times: int, seed: int) -> Reals:
    """Weights of rows when regions are drawn with replacement, (times, n)."""
    names, number = np.unique(region, return_inverse=True)
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(names.size, np.full(names.size, 1 / names.size), times)
    return np.asarray(draws[:, number], np.float64)


def interval(values: npt.ArrayLike) -> tuple[float, float] | None:
    """95% percentile interval; None where it is not defined."""
    given = np.asarray(values, np.float64)
    known = given[np.isfinite(given)]
    if not known.size or known.size < 0.95 * given.size:
        return None
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)
