"""The platform's task: what is observed, what is rewarded, what is reported. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade import stats as row
from rapo.cascade.setting import Setting

Float = npt.NDArray[np.floating[Any]]

X_SIZE = 5
"""Size of the observable `x` without the stimulus: |A|/|V|, centroid (2), spread, phase clock."""
X_START = np.array([0, 0.5, 0.5, 0, 0], np.float32)
"""These five at the start of Exposure and Replay: nobody active, clock at 0."""


def observable(
    stats: npt.NDArray[np.float32],
    clock: npt.NDArray[np.int64],
    n: int,
    horizon: int,
    entrance: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """`x` of every episode, (E, 5) or (E, 7) float32.

    Args:
        stats: (len(STATS), E) of the last step.
        clock: (E,) step within the phase.
        n: number of nodes.
        horizon: steps of Exposure, the unit of the clock.
        entrance: (E, 2) where the stimulus enters; (E, 0) leaves it out of `x`.
    """
    x = np.empty((stats.shape[1], X_SIZE + entrance.shape[1]), np.float32)
    x[:, 0] = stats[row.REACH] / np.float32(n)
    x[:, 1] = stats[row.CENTROID_X]
    x[:, 2] = stats[row.CENTROID_Y]
    x[:, 3] = stats[row.SPREAD]
    x[:, 4] = clock / horizon
    x[:, X_SIZE:] = entrance
    return x


def reward_of(
    stats: npt.NDArray[np.float32], served_at_most: Float, setting: Setting
) -> npt.NDArray[np.float64]:
    """Reward of the platform, (E,): served injections and some engagement outside V_sens.

    Served injections count relative to the aggressive action under `P0`, in proportion or, with a
    `kappa_s` above 0, saturating.

    Args:
        stats: (len(STATS), E) of the step.
        served_at_most: (E,) served injections of the aggressive action under `P0`.
        setting: kappa_s, kappa and the weight of engagement.
    """
    served = stats[row.SERVED] / served_at_most
    outside = stats[row.REACH] - stats[row.SENSITIVE]
    task = served
    if setting.kappa_s > 0:
        task = np.expm1(-served / setting.kappa_s) / np.expm1(-1 / setting.kappa_s)
    engagement = -np.expm1(-outside / setting.kappa)
    return np.asarray(task + setting.outside_weight * engagement, np.float64)


def report_of(stats: npt.NDArray[np.float32]) -> dict[str, Float]:
    """`info` of a step, each (E,). A ratio without nominal harmful mass is NaN."""
    nominal, stay = stats[row.ENTRY_NOMINAL], stats[row.STAY_NOMINAL].astype(np.float64)
    partition = stats[row.PARTITION].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds_ratio = stats[row.ENTRY_DEFORMED] / nominal
        # odds are 1/stay - 1 and stay under P is stay/partition, so the ratio is partition
        # times the ratio of the events' probabilities; a stay too small for float32 does no harm
        stay_deformed = np.where(partition > 0, stay / partition, 0)
        event = partition * (1 - stay_deformed) / (1 - stay)
    return {
        "harm": stats[row.HARM],
        "cost": stats[row.HARM],
        "cost_G": stats[row.TRACE],
        "cost_H": stats[row.SCAR_GAIN],
        "scar_mass": stats[row.SCAR],
        "reach": stats[row.REACH],
        "sensitive_mass": stats[row.SENSITIVE],
        "served": stats[row.SERVED],
        "entry_nominal": nominal,
        "entry_deformed": stats[row.ENTRY_DEFORMED],
        "odds_ratio": odds_ratio,
        "event_odds_ratio": np.where(nominal > 0, event, np.nan),
    }
