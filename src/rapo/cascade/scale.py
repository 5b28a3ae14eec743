"""Scaling: one factor per graph so that nominal cascades have the same size on every graph."""

from __future__ import annotations

import numpy as np

from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.rng import derive
from rapo.cascade.setting import MODERATE, Setting
from rapo.cascade.stats import REACH

FIRST, LAST = 50, 400
"""Steps over which |A_t| is averaged: after the start, before the end of Exposure."""
_ROUNDS = 10
"""Nominal runs per stimulus in the search."""
_TOLERANCE = 0.005
"""Relative distance to the target at which the search stops."""
_SMALLEST_FACTOR, _GROWTH, _LARGEST_FACTOR = 0.01, 1.6, 100.0


def cascade_size(graph: Graph, setting: Setting, *, seed: int = 0, rounds: int = _ROUNDS) -> float:
    """Mean |A_t| over steps 50..400 of nominal runs under the moderate action.

    Every stimulus runs `rounds` times: the standard stimulus is one drawn as in `reset`.
    """
    episodes = rounds * graph.stimuli
    engine = Cascade(
        graph,
        episodes,
        setting=setting.replace(horizons=(LAST, 1, 1)),
        regions=np.zeros(graph.n, np.int32),  # under P0 regions do not matter
        deformation="off",
    )
    keys = derive(derive(seed, 0xCA5CADE), np.arange(episodes))
    engine.start(keys, 1 + np.arange(episodes) % graph.stimuli)
    trace = engine.run(np.full(episodes, MODERATE), LAST)
    return float(trace[FIRST - 1 :, REACH].mean(dtype=np.float64))  # row t holds |A_{t+1}|


def scaled(graph: Graph, factor: float) -> Graph:
    """The graph with every probability times `factor`, at most 1; clipped edges are counted."""
    prob = graph.prob.astype(np.float64) * factor
    meta = {**graph.meta, "scale": factor, "clipped_edges": int((prob > 1).sum())}
    return graph.replace(prob=np.minimum(prob, 1), meta=meta)


def scale_to_target(graph: Graph, setting: Setting, *, seed: int = 0) -> Graph:
    """The graph scaled so that `cascade_size` is `setting.cascade_target`.

    Bisection on the factor; with the draws fixed, the active set grows with every probability, so
    the size is a monotone function of it.
    """
    target = setting.cascade_target

    def size(factor: float) -> float:
        return cascade_size(scaled(graph, factor), setting, seed=seed)

    floor = size(0.0)
    if floor >= target:
        raise ValueError(
            f"cascade_target {target} is not above the {floor:.2f} nodes that injection alone "
            "keeps active; raise the target or lower the rates"
        )
    low, high = 0.0, _SMALLEST_FACTOR  # from below, where runs are short of nodes and cheap
    while (reached := size(high)) < target:
        if high >= _LARGEST_FACTOR:
            raise ValueError(
                f"cascade_target {target} is out of reach: probabilities x{high:g} give cascades "
                f"of {reached:.1f} of {graph.n} nodes; lower the target or raise the rates"
            )
        low, high = high, _GROWTH * high
    for _ in range(40):
        middle = (low + high) / 2
        reached = size(middle)
        if abs(reached / target - 1) <= _TOLERANCE:
            break
        low, high = (middle, high) if reached < target else (low, middle)
    return scaled(graph, middle)
