"""A nominal exposure record of a graph: how much harm each region is credited with, under `P0`."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import AGGRESSIVE, Setting
from rapo_core.operating_point import OperatingPoint, attributed_harm, operating_point
from rapo_core.params import FieldParams

EPISODES = 20
"""Fewest episodes of a record or a fit; each stimulus has one, up to `MOST`."""
MOST = 64
_SEED, _TAG = 0xF17, 0x0F17
"""Evaluations key their episodes by `derive(derive(seed, 0), ...)`; another counter than 0 keeps
these draws apart from every one of theirs."""


def fit_episodes(
    graph: Graph, purpose: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Keys and 1-based stimuli (E,) of short runs that no evaluation shares draws with.

    Every stimulus comes equally often as far as that goes; of more than `MOST`, as many are taken
    at equal steps. `purpose` (>= 1) tells runs of one kind from those of another.
    """
    episodes = max(EPISODES, min(graph.stimuli, MOST))
    keys = derive(derive(_SEED, _TAG + purpose), np.arange(episodes))
    if graph.stimuli > episodes:
        return keys, 1 + np.arange(episodes) * graph.stimuli // episodes
    return keys, 1 + np.arange(episodes) % graph.stimuli


def nominal_harm(
    graph: Graph,
    regions: npt.ArrayLike,
    setting: Setting | None = None,
    *,
    engine: Cascade | None = None,
) -> npt.NDArray[np.float64]:
    """Mean attributed harm per step of Exposure under `P0` and the aggressive action.

    No constant of the fields plays a part, so the record of a graph and its regions is simulated
    once and remembered.

    Args:
        graph: the network.
        regions: see `make_regions`.
        setting: open choices of the platform.
        engine: an engine of as many episodes on this graph, its regions and its setting, which is
            used in place of a new one; its episodes are started anew.

    Returns:
        (E, R) with a row per episode and a column per region that holds sensitive nodes.
    """
    setting = Setting.default() if setting is None else setting
    ids = make_regions(regions, graph, straddle=setting.straddle)
    key = (graph.hash, sha256(ids.tobytes()).hexdigest(), setting)
    if key not in _RECORDS:
        keys, stimuli = fit_episodes(graph, purpose=1)
        engine = engine or Cascade(graph, len(keys), setting=setting, regions=ids)
        engine.set_deformation(False)
        engine.start(keys, stimuli)
        total = np.zeros((len(keys), len(engine.harm_regions)))
        left = setting.horizons[0]
        while left > 0:  # the delay buffer is the record of the last D steps
            steps = min(left, setting.delay)
            engine.run(AGGRESSIVE, steps)
            total += attributed_harm(engine.snapshot()["affected"][-steps:]).sum(axis=0)
            left -= steps
        engine.set_deformation(True)
        _RECORDS[key] = total / setting.horizons[0]
        while len(_RECORDS) > _MOST_RECORDS:
            _RECORDS.popitem(last=False)
    _RECORDS.move_to_end(key)
    return _RECORDS[key].copy()


_MOST_RECORDS = 64
_RECORDS: OrderedDict[Any, npt.NDArray[np.float64]] = OrderedDict()
"""Records of this process, by graph, regions and setting."""


def exposure_point(
    graph: Graph,
    regions: npt.ArrayLike,
    params: FieldParams | None = None,
    setting: Setting | None = None,
) -> OperatingPoint:
    """The operating point of regions on a graph: their steady traces in a nominal Exposure."""
    setting = Setting.default() if setting is None else setting
    harm = nominal_harm(graph, regions, setting)
    return operating_point(harm, setting.params if params is None else params)
