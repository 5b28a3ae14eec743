"""What the engine reports of every step, one row each, and the summaries both backends share."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo_core.jit import inlined
from rapo_core.lanes import root, where

STATS = (
    "reach",  # |A_{t+1}|
    "sensitive",  # |A_{t+1} in V_sens|
    "centroid_x",  # mean position of A_{t+1}; (0.5, 0.5) when empty
    "centroid_y",
    "spread",  # root mean squared distance from the centroid; 0 when empty
    "served",  # sum_v b psi / (b psi + 1 - b): injections that get through
    "harm",  # c_t
    "trace",  # sum_r G_t
    "scar_gain",  # sum_r H_{t+1} - H_t
    "scar",  # sum_r H_{t+1}
    "entry_nominal",  # sum of q over V_sens
    "entry_deformed",  # sum of q psi over V_sens
    "stay_nominal",  # probability that no node of V_sens activates, under P0
    "partition",  # prod of q psi + 1 - q over V_sens: stay_nominal / partition is under P
)
COUNT = len(STATS)
(
    REACH,
    SENSITIVE,
    CENTROID_X,
    CENTROID_Y,
    SPREAD,
    SERVED,
    HARM,
    TRACE,
    SCAR_GAIN,
    SCAR,
    ENTRY_NOMINAL,
    ENTRY_DEFORMED,
    STAY_NOMINAL,
    PARTITION,
) = range(COUNT)

_ZERO, _ONE, _HALF = np.float32(0), np.float32(1), np.float32(0.5)


@inlined
def centroid_and_spread(x: Any, y: Any, squares: Any, reach: Any) -> tuple[Any, Any, Any]:
    """Mean position and root mean squared distance from it, of `reach` nodes.

    Args:
        x: sum of their first coordinates, relative to the centre 0.5.
        y: the same of the second.
        squares: sum of their squared distances from the centre.
        reach: how many they are; the centre and 0 for none.

    Rounding below 0 counts as 0 in the variance.
    """
    count = where(reach > _ZERO, reach, _ONE)
    x, y = x / count, y / count
    variance = squares / count - (x * x + y * y)
    return _HALF + x, _HALF + y, root(where(variance > _ZERO, variance, _ZERO))
