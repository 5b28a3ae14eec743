"""The task of a graph: its frozen description, and what is observed, rewarded and reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from rapo.cascade import stats
from rapo.cascade.graph import Graph
from rapo.cascade.regions import RegionSpec
from rapo.cascade.setting import Setting
from rapo.graphs.fit import Fit
from rapo_core.deformation import Scope
from rapo_core.params import FieldParams

Float = npt.NDArray[np.floating[Any]]

X_SIZE = 5
"""Size of the observable `x` without the stimulus: |A|/|V|, centroid (2), spread, phase clock."""
X_START = np.array([0, 0.5, 0.5, 0, 0], np.float32)
"""These five at the start of Exposure and Replay: nobody active, clock at 0."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphTask:
    """Everything that makes an environment on a graph but the number of episodes.

    The fields are arguments of `GraphDiffusionVectorEnv`, with regions, constants and fit found.
    """

    graph: Graph
    setting: Setting
    regions: RegionSpec | None
    params: FieldParams | None
    fit: Fit | None
    deformation: str | Scope
    deform_phases: tuple[bool, bool, bool]
    observe: str
    coupled: bool
    harm_region_of: npt.ArrayLike | None
    schedule: str
    autoreset_mode: AutoresetMode | str
    backend: str
    threads: int
    render_mode: str | None


def observable(
    rows: npt.NDArray[np.float32],
    clock: npt.NDArray[np.int64],
    n: int,
    horizon: int,
    entrance: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """`x` of every episode, (E, 5) or (E, 7) float32.

    Args:
        rows: (len(STATS), E) of the last step.
        clock: (E,) step within the phase.
        n: number of nodes.
        horizon: steps of Exposure, the unit of the clock.
        entrance: (E, 2) where the stimulus enters; (E, 0) leaves it out of `x`.
    """
    x = np.empty((rows.shape[1], X_SIZE + entrance.shape[1]), np.float32)
    x[:, 0] = rows[stats.REACH] / np.float32(n)
    x[:, 1] = rows[stats.CENTROID_X]
    x[:, 2] = rows[stats.CENTROID_Y]
    x[:, 3] = rows[stats.SPREAD]
    x[:, 4] = clock / horizon
    x[:, X_SIZE:] = entrance
    return x


def reward_of(
    rows: npt.NDArray[np.float32], served_at_most: Float, setting: Setting
) -> npt.NDArray[np.float64]:
    """Reward of the platform, (E,): served injections and some engagement outside V_sens.

    Served injections count relative to the aggressive action under `P0`, in proportion or, with a
    `kappa_s` above 0, saturating.

    Args:
        rows: (len(STATS), E) of the step.
        served_at_most: (E,) served injections of the aggressive action under `P0`.
        setting: kappa_s, kappa and the weight of engagement.
    """
    served = rows[stats.SERVED] / served_at_most
    outside = rows[stats.REACH] - rows[stats.SENSITIVE]
    task = served
    if setting.kappa_s > 0:
        task = np.expm1(-served / setting.kappa_s) / np.expm1(-1 / setting.kappa_s)
    engagement = -np.expm1(-outside / setting.kappa)
    return np.asarray(task + setting.outside_weight * engagement, np.float64)


def report_of(rows: npt.NDArray[np.float32]) -> dict[str, Float]:
    """`info` of a step, each (E,). A ratio without nominal harmful mass is NaN."""
    nominal, stay = rows[stats.ENTRY_NOMINAL], rows[stats.STAY_NOMINAL].astype(np.float64)
    partition = rows[stats.PARTITION].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds_ratio = rows[stats.ENTRY_DEFORMED] / nominal
        # odds are 1/stay - 1 and stay under P is stay/partition, so the ratio is partition
        # times the ratio of the events' probabilities; a stay too small for float32 does no harm
        stay_deformed = np.where(partition > 0, stay / partition, 0)
        event = partition * (1 - stay_deformed) / (1 - stay)
    return {
        "harm": rows[stats.HARM],
        "cost": rows[stats.HARM],
        "cost_G": rows[stats.TRACE],
        "cost_H": rows[stats.SCAR_GAIN],
        "scar_mass": rows[stats.SCAR],
        "reach": rows[stats.REACH],
        "sensitive_mass": rows[stats.SENSITIVE],
        "served": rows[stats.SERVED],
        "entry_nominal": nominal,
        "entry_deformed": rows[stats.ENTRY_DEFORMED],
        "odds_ratio": odds_ratio,
        "event_odds_ratio": np.where(nominal > 0, event, np.nan),
    }
