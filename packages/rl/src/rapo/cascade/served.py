"""What the gate would let through under each action, which a policy that sees psi can choose by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rapo.cascade.engine import Cascade
from rapo_core.deformation import conductance


def served_by_action(engine: Cascade) -> npt.NDArray[np.float64]:
    """(E, 3) injections that would get through the present fields under each action.

    The sum over seeds of `b psi / (b psi + 1 - b)`, whether or not the stimulus is on and the
    kernel deformed at present.
    """
    z = engine.stimulus - 1
    psi = conductance(engine.G, engine.H, engine.params)
    at_seeds = np.take_along_axis(psi, engine.regions[engine.graph.support[z]], axis=1)[:, None]
    b = engine.rates[z].astype(np.float64)
    through = b * at_seeds
    return np.asarray((through / (through + 1 - b)).sum(axis=2))


def greedy(engine: Cascade) -> npt.NDArray[np.int64]:
    """(E,) the action of which most gets through."""
    return np.asarray(served_by_action(engine).argmax(axis=1))
