"""Scaling under the laws of a single wave: the factor by which a wave reaches a share of all nodes.

Under `outbreak` and `cascade` activity ends by itself, so its mean size says nothing. The share of
nodes that a nominal wave reaches takes its place. It must be large enough that every stimulus takes
hold and small enough that V_sens is not swamped.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rapo.cascade.draws import derive
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.setting import MODERATE, Setting
from rapo.graphs.spectral_radius import spectral_radius
from rapo_core.checks import UserError, whole_number

STEPS = 400
"""Steps of a run, by whose end a wave is over."""
ROUNDS = 10
"""Runs of every stimulus, as a stimulus is drawn in `reset`."""
TOLERANCE = 0.03
"""Relative distance to the target at which the search stops. The share is not quite monotone in the
factor: a node that is activated earlier also stops earlier."""
LARGEST_FACTOR, GROWTH = 1e4, 1.6
TRIALS = 40


def reached_share(graph: Graph, setting: Setting, *, seed: int = 0, rounds: int = ROUNDS) -> float:
    """Mean share of all nodes that a nominal wave under the moderate action reaches.

    Args:
        graph: the network, with stimuli.
        setting: open choices; its law is `outbreak` or `cascade`.
        seed: of the draws.
        rounds: runs of every stimulus, >= 1.
    """
    episodes = whole_number("rounds", rounds, 1) * graph.stimuli
    engine = Cascade(
        graph,
        episodes,
        setting=setting.replace(horizons=(STEPS + 1, 1, 1)),
        regions=np.zeros(graph.n, np.int32),  # under P0 regions do not matter
        deformation="off",
    )
    keys = derive(derive(seed, 0x4EAC4), np.arange(episodes))
    engine.start(keys, 1 + np.arange(episodes) % graph.stimuli)
    engine.run(np.full(episodes, MODERATE), STEPS)
    return float((engine.active | engine.spent).mean())


def factor_for_reach(graph: Graph, setting: Setting, *, seed: int = 0) -> float:
    """The factor on all probabilities by which a wave reaches `setting.reach_target` of the nodes.

    Probabilities stay at most `setting.edge_cap`. The search starts a little under the factor at
    which an active node activates one other in the mean, and bisects its logarithm.

    Raises:
        UserError: injection alone reaches the target, or no factor does.
    """
    target, prob = setting.reach_target, graph.prob.astype(np.float64)

    def share(factor: float) -> float:
        scaled = graph.replace(prob=np.minimum(prob * factor, setting.edge_cap))
        return reached_share(scaled, setting, seed=seed)

    alone = share(0.0)
    if alone >= target:
        raise UserError(
            f"reach_target {target:g} is not above the {alone:.2g} of the nodes that injection "
            "alone reaches; raise the target, or lower the rates or the support"
        )
    radius = spectral_radius(graph.adjacency)
    low, high = _bracket(share, 0.85 * setting.stopping / radius if radius > 0 else 1.0, target)
    middle = high
    for _ in range(TRIALS):
        middle = math.sqrt(low * high)
        reached = share(middle)
        if abs(reached / target - 1) <= TOLERANCE:
            break
        low, high = (middle, high) if reached < target else (low, middle)
    return middle


def _bracket(share: Callable[[float], float], factor: float, target: float) -> tuple[float, float]:
    """Factors a step of `GROWTH` apart whose shares lie on both sides of the target."""
    reached = share(factor)
    if reached >= target:
        while reached >= target:
            factor /= GROWTH
            reached = share(factor)
        return factor, factor * GROWTH
    while reached < target:
        if factor > LARGEST_FACTOR:
            raise UserError(
                f"reach_target {target:g} is out of reach: even with probabilities at the cap a "
                f"wave reaches {reached:.2g} of the nodes; lower the target, or choose stimuli "
                "from which more of the graph can be reached"
            )
        factor *= GROWTH
        reached = share(factor)
    return factor / GROWTH, factor
