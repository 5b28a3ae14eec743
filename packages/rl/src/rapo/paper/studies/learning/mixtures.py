"""How far a policy is from the frontier of all mixtures of constant actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.paper.studies.learning.plan import DEFORMED

SMALL = 0.1
"""Duals up to this count as small: a policy then is after the return, and can be asked for it."""
RESAMPLES = 2000
ANGLES = np.linspace(0, np.pi / 2, 361)
"""Between all weight on the return and all on the trace."""
Float = npt.NDArray[np.float64]


def gains(returns: pd.DataFrame, who: str, against: str) -> pd.Series[float]:
    """Relative gain in return by graph.

    Args:
        returns: by graph (index) and row.
        who: the row.
        against: `each`, the best constant of each graph, or `one`, the best on average.
    """
    fixed = returns[list(DEFORMED)]
    best = fixed.max(axis=1) if against == "each" else fixed[fixed.mean().idxmax()]
    return returns[who] / best - 1


def unbound(paid: pd.DataFrame, seeds: Any) -> list[int]:
    """Graphs on which the largest of RAPO's duals ended at `SMALL` or below."""
    if paid.empty:
        return [int(seed) for seed in seeds]
    largest = paid.groupby("graph_seed")["dual"].max()
    return [int(seed) for seed in largest.index[largest <= SMALL]]


def signed_distance(point: Float, corners: Float) -> Float:
    """How far points lie beyond what mixtures of corners attain or beat; below 0 inside.

    The set is convex and unbounded towards less return and more trace, so the distance is the
    largest over directions between the two of the point's lead over the best corner.

    Args:
        point: (..., 2) return and trace.
        corners: (..., k, 2).

    >>> signed_distance(np.array([1.0, 1.0]), np.array([[1.0, 1.0], [0.5, 0.5]])).round(6) + 0
    np.float64(0.0)
    """
    toward = np.stack([np.cos(ANGLES), -np.sin(ANGLES)], axis=1)  # (angles, 2)
    lead = point @ toward.T - (corners @ toward.T).max(axis=-2)
    return np.asarray(lead.max(axis=-1))


def place(units: Mapping[str, pd.DataFrame], who: str) -> tuple[float, float, float]:
    """Signed distance of a row's mean point to the mixtures of constants; ends of its interval."""
    names = (who, *DEFORMED)
    points = np.stack([units[n][["ReplayRet", "trace"]].to_numpy(float) for n in names], axis=1)
    points[..., 1] /= points[:, 1, 1].mean() or 1.0
    graphs = len(points)

    def distance_of(means: Float) -> Float:
        return signed_distance(means[..., 0, :], means[..., 1:, :])

    distance = float(distance_of(points.mean(axis=0)))
    if graphs < 2:
        return distance, np.nan, np.nan
    drawn = np.random.default_rng(0).integers(graphs, size=(RESAMPLES, graphs))
    low, high = np.quantile(distance_of(points[drawn].mean(axis=1)), (0.025, 0.975))
    return distance, float(low), float(high)
