"""Do peers and engine compute the same step? Their mean statistics must agree within noise.

Peers draw from other generators, so trajectories differ and only distributions can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rapo.cascade.stats import STATS

AGREE = 4.5
"""Largest difference in standard errors; over 14 statistics and 3 peers, chance exceeds it once
in some 3,000 comparisons of programs that do agree."""


def largest_difference(
    ours: npt.NDArray[np.float32], peers: Mapping[str, npt.NDArray[np.float32]]
) -> tuple[float, str]:
    """The largest difference of means in standard errors, and where it is.

    Args:
        ours: (steps, len(STATS), B) trace of the engine; an episode is the unit.
        peers: traces of the same shape.
    """
    mine = ours.mean(axis=0, dtype=np.float64)
    worst, where = 0.0, "all equal"
    for name, trace in peers.items():
        theirs = np.asarray(trace).mean(axis=0, dtype=np.float64)
        error = np.sqrt((mine.var(axis=1, ddof=1) + theirs.var(axis=1, ddof=1)) / mine.shape[1])
        gap = np.abs(mine.mean(axis=1) - theirs.mean(axis=1)) / np.maximum(error, 1e-12)
        if gap.max() > worst:
            worst, where = float(gap.max()), f"{STATS[int(gap.argmax())]}, {name}"
    return worst, where
