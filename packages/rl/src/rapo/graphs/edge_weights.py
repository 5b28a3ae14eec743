"""How a setting makes V_sens an amplifier: weights of edges at its border, seeds on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import Setting


def edge_weights(
    sensitive: npt.NDArray[np.bool_],
    source: npt.NDArray[np.integer[Any]],
    target: npt.NDArray[np.integer[Any]],
    setting: Setting,
) -> npt.NDArray[np.float64]:
    """(E,) factor on the probability of each edge: inside V_sens, entering, leaving, or 1."""
    starts, ends = sensitive[source], sensitive[target]
    out = np.where(starts & ends, setting.inside_weight, 1.0)
    out[~starts & ends] = setting.entering_weight
    out[starts & ~ends] = setting.leaving_weight
    return out


def stimulus_shares(setting: Setting, *, loaded: bool = False) -> tuple[float, float] | None:
    """Smallest and largest share of a stimulus' seeds inside V_sens; None: balls, as they fall."""
    if setting.seeding == "ball":
        return None
    mean, spread = setting.inside_share, setting.inside_spread
    if loaded:
        mean, spread = setting.loaded_share, setting.loaded_spread
    return mean - spread, mean + spread
