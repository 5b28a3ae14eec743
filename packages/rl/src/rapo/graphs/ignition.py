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


def nominal_masses(
    graph: Graph, setting: Setting, stimuli: npt.NDArray[np.int64], *, runs: int, seed: int = 0
) -> npt.NDArray[np.float64]:
    """(3, runs, Z') sensitive mass of nominal runs, by action, run and stimulus.

    A run's draws depend on its action, number and stimulus alone, and no evaluation uses them.

    Args:
        graph: the network.
        setting: open choices of the platform.
        stimuli: (Z',) indices, from 0.
        runs: of every stimulus under every action, >= 1.
        seed: of the draws.
    """
    numbers = np.repeat(np.arange(runs), len(stimuli)) * graph.stimuli + np.tile(stimuli, runs)
    engine = Cascade(
        graph,
        len(numbers),
        setting=setting.replace(horizons=(STEPS, 1, 1)),
        regions=np.zeros(graph.n, np.int32),  # under P0 regions do not matter
        deformation="off",
    )
    masses = np.empty((len(ACTIONS), runs, len(stimuli)))
    for action in range(len(ACTIONS)):
        keys = derive(derive(seed, _TAG), numbers + action * runs * graph.stimuli)
        engine.start(keys, 1 + np.tile(stimuli, runs))
        trace = engine.run(np.full(len(numbers), action), STEPS)[:, SENSITIVE]
        masses[action] = trace.sum(axis=0, dtype=np.float64).reshape(runs, -1)
    return masses


def with_igniting_stimuli(
    graph: Graph, setting: Setting, draw: Callable[[int], Stimuli], *, seed: int = 0
) -> Graph:
    """The graph with every stimulus that failed in `setting.ignition_runs` runs drawn again.

    A run fails if its sensitive mass is below `IGNITED` of the mean over all stimuli under the same
    action. `meta` counts the stimuli that were drawn (`redrawn_stimuli`), and those that still
    failed after `ROUNDS` draws and stay (`failing_stimuli`).

    Args:
        graph: the network, with stimuli.
        setting: open choices of the platform.
        draw: draws a number of stimuli.
        seed: of the runs.
    """
    runs, tried = setting.ignition_runs, np.arange(graph.stimuli)
    masses = nominal_masses(graph, setting, tried, runs=runs, seed=seed)
    enough = IGNITED * masses.mean(axis=(1, 2), keepdims=True)
    redrawn = 0
    for number in range(ROUNDS + 1):
        tried = tried[(masses < enough).any(axis=(0, 1))]
        if not len(tried) or number == ROUNDS:
            break
        support, weights = graph.support.copy(), graph.weights.copy()
        support[tried], weights[tried] = draw(len(tried))
        redrawn += len(tried)
        graph = graph.replace(support=support, weights=weights)
        masses = nominal_masses(graph, setting, tried, runs=runs, seed=seed)
    counts = {"redrawn_stimuli": redrawn, "failing_stimuli": len(tried)}
    return graph.replace(meta={**graph.meta, **counts})
