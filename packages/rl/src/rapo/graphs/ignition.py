"""Stimuli that always start a cascade in V_sens; one that may fail is drawn again.

RSD divides Replay by Exposure. An Exposure whose stimulus never took hold in V_sens would make a
ratio of forty or more, and a few of them would decide every mean. Where a node is activated at most
once in a phase there is no second chance within it, so a stimulus must not fail.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.setting import ACTIONS, Setting
from rapo.cascade.stats import SENSITIVE

IGNITED = 0.25
"""Share of the mean sensitive mass below which a run counts as one that did not ignite V_sens."""
STEPS = 200
"""Steps of a run, by whose end an outbreak is over."""
ROUNDS = 20
"""How often the stimuli that failed are drawn again."""
_TAG = 0x19417E

Stimuli = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]
"""Seed nodes (Z, k) and weights (Z, k)."""


def failures(graph: Graph, setting: Setting, *, runs: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """(Z,) nominal runs of each stimulus, over all actions, that did not ignite V_sens.

    The mean that a run is compared with is that of its action over all stimuli.

    Args:
        graph: the network.
        setting: open choices of the platform.
        runs: of every stimulus under every action, >= 1.
        seed: of the draws, which no evaluation uses.
    """
    episodes = runs * graph.stimuli
    engine = Cascade(
        graph,
        episodes,
        setting=setting.replace(horizons=(STEPS, 1, 1)),
        regions=np.zeros(graph.n, np.int32),  # under P0 regions do not matter
        deformation="off",
    )
    failed = np.zeros(graph.stimuli, np.int64)
    for action in range(len(ACTIONS)):
        keys = derive(derive(seed, _TAG), np.arange(episodes) + action * episodes)
        engine.start(keys, 1 + np.arange(episodes) % graph.stimuli)
        trace = engine.run(np.full(episodes, action), STEPS)
        mass = trace[:, SENSITIVE].sum(axis=0, dtype=np.float64).reshape(runs, graph.stimuli)
        failed += (mass < IGNITED * mass.mean()).sum(axis=0)
    return failed


def with_igniting_stimuli(
    graph: Graph, setting: Setting, draw: Callable[[int], Stimuli], *, seed: int = 0
) -> Graph:
    """The graph with every stimulus that failed in `setting.ignition_runs` runs drawn again.

    `meta` counts the stimuli that were drawn (`redrawn_stimuli`), and those that still failed after
    `ROUNDS` draws and stay (`failing_stimuli`).

    Args:
        graph: the network, with stimuli.
        setting: open choices of the platform.
        draw: draws a number of stimuli.
        seed: of the runs.
    """
    support, weights = graph.support.copy(), graph.weights.copy()
    redrawn = 0
    for number in range(ROUNDS + 1):
        failing = np.flatnonzero(failures(graph, setting, runs=setting.ignition_runs, seed=seed))
        if not len(failing) or number == ROUNDS:
            break
        support[failing], weights[failing] = draw(len(failing))
        redrawn += len(failing)
        graph = graph.replace(support=support.copy(), weights=weights.copy())
    counts = {"redrawn_stimuli": redrawn, "failing_stimuli": len(failing)}
    return graph.replace(meta={**graph.meta, **counts})
