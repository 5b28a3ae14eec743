"""Replay metrics of the paper as pure functions: arrays of one or many episodes in, numbers out.

Time is the last axis. A ratio whose Exposure is empty is undefined and comes out as NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.floating[Any]]

EPSILON = 1e-8
"""The paper's epsilon in every denominator."""


def _ratio(replay: Float, exposure: Float) -> Float:
    return np.asarray(np.where(exposure > 0, replay / (exposure + EPSILON), np.nan))


def ratio_of(after: npt.ArrayLike, before: npt.ArrayLike) -> Float:
    """One total over another with the paper's epsilon; NaN unless `before` is above 0.

    Equal totals give exactly 1: epsilon keeps a quotient finite and must not make equals differ.

    Args:
        after: of any shape.
        before: of the same shape.

    >>> ratio_of([3.0, 2.0, 1.0], [3.0, 4.0, 0.0]).round(6).tolist()
    [1.0, 0.5, nan]
    """
    x, y = np.asarray(after, float), np.asarray(before, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(x == y, 1.0, x / (y + EPSILON))
    return np.asarray(np.where(y > 0, ratio, np.nan))


def rag(exposure: npt.ArrayLike, replay: npt.ArrayLike) -> Float:
    """Re-amplification gain: peak reach in Replay over peak reach in Exposure.

    Args:
        exposure: reach in Exposure, (..., T_exp).
        replay: reach in Replay, (..., T_rep).

    >>> round(float(rag([0, 4, 2], [0, 1, 1])), 2)
    0.25
    """
    return _ratio(np.max(replay, axis=-1), np.max(exposure, axis=-1))


def auc_ratio(exposure: npt.ArrayLike, replay: npt.ArrayLike) -> Float:
    """AUC-R of reach, or SM-R of sensitive mass: total in Replay over total in Exposure.

    Per step where the horizons differ.

    Args:
        exposure: reach or sensitive mass in Exposure, (..., T_exp).
        replay: the same in Replay, (..., T_rep).
    """
    before, after = np.asarray(exposure, float), np.asarray(replay, float)
    if before.shape[-1] == after.shape[-1]:
        return _ratio(after.sum(axis=-1), before.sum(axis=-1))
    return _ratio(after.mean(axis=-1), before.mean(axis=-1))


def discounted(rewards: npt.ArrayLike, gamma: float = 0.99) -> Float:
    """Discounted return of rewards (..., T), gamma in (0, 1]."""
    values = np.asarray(rewards, float)
    # neither BLAS nor a vectorised power: their last digits depend on the processor
    weights = np.cumprod([1.0, *[gamma] * (values.shape[-1] - 1)])
    return np.asarray((values * weights).sum(axis=-1))
