"""What the constant aggressive policy costs under `P0`: the unit of all budgets on a graph.

Budgets relative to a method's own kernel would make RAPO more aggressive than its baselines, and a
method could not be trained alone.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rapo.cascade import stats as row
from rapo.cascade.draws import STIMULUS, derive, uniform
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.regions import RegionSpec
from rapo.cascade.setting import AGGRESSIVE, Setting
from rapo_core.params import FieldParams

EPISODES = 256
"""RSD schedules that the means are taken over."""
_SEED = 0x5AFE
"""Seed of those episodes; tables begin at 0, tuning at 1,000,000, training at 2^40."""


@lru_cache(maxsize=8)
def reference_costs(
    graph: Graph,
    setting: Setting,
    params: FieldParams,
    regions: RegionSpec | None,
    action: int = AGGRESSIVE,
) -> dict[str, float]:
    """Mean per step over whole RSD schedules under `P0` with one constant action.

    Returns:
        By `info` key: `cost`, `cost_G`, `cost_H`; and `sensitive_mass` over Exposure and Replay.
    """
    engine = Cascade(
        graph, EPISODES, setting=setting, params=params, regions=regions, deformation="off"
    )
    keys = derive(derive(_SEED, np.arange(EPISODES)), 0)
    stimuli = 1 + (uniform(keys, 0, STIMULUS).astype(np.float64) * graph.stimuli).astype(np.int64)
    engine.start(keys, stimuli)
    trace = engine.run(action, sum(setting.horizons)).astype(np.float64)
    mean = trace.mean(axis=(0, 2))
    exposure, decay, _ = setting.horizons
    fed = np.r_[trace[:exposure, row.SENSITIVE], trace[exposure + decay :, row.SENSITIVE]]
    return {
        "cost": float(mean[row.HARM]),
        "cost_G": float(mean[row.TRACE]),
        "cost_H": float(mean[row.SCAR_GAIN]),
        "sensitive_mass": float(fed.mean()),
    }
