"""`Problem`: everything one step needs, as plain arrays, so that each peer solves the same task.

A peer gets the graph, the injection rates, the regions and the constants from here and no code from
the engine: what is compared is how the step is computed, not what it computes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rapo.cascade.engine import Cascade
from rapo_core.params import FieldParams


@dataclass(frozen=True)
class Problem:
    """One graph with its stimuli, regions and constants.

    n nodes, E edges, B episodes, R live regions (those that hold a sensitive node; the fields of
    all others stay 0).
    """

    indptr: npt.NDArray[np.int32]
    """(n + 1,) in-edges of node v are indptr[v]:indptr[v + 1]."""
    sources: npt.NDArray[np.int32]
    """(E,) source of each in-edge."""
    prob: npt.NDArray[np.float32]
    """(E,) activation probability of each in-edge."""
    positions: npt.NDArray[np.float32]
    """(n, 2) in the unit square."""
    sensitive: npt.NDArray[np.bool_]
    """(n,) membership of V_sens."""
    region: npt.NDArray[np.int32]
    """(n,) live region of each node, 0..R - 1; R for a node whose psi is always 1."""
    regions: int
    """R."""
    support: npt.NDArray[np.int32]
    """(k, B) seed nodes of each episode's stimulus."""
    inject: npt.NDArray[np.float32]
    """(3, k, B) injection probability b of those seeds under each action."""
    persistence: float
    """s: probability that an active node stays active by itself."""
    delay: int
    """D: steps between activity and the harm it causes."""
    params: FieldParams
    """Constants of the fields."""

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @property
    def episodes(self) -> int:
        """Episodes stepped together."""
        return int(self.support.shape[1])

    @property
    def members(self) -> npt.NDArray[np.int64]:
        """Nodes of V_sens, ascending."""
        return np.flatnonzero(self.sensitive)

    @property
    def features(self) -> npt.NDArray[np.float32]:
        """(5, n): what is summed over active nodes: 1, V_sens, x, y, x^2 + y^2.

        Positions relative to the centre, which keeps the variance from cancelling in float32.
        """
        x, y = (self.positions - np.float32(0.5)).T
        rows = (np.ones_like(x), self.sensitive, x, y, x * x + y * y)
        return np.stack(rows).astype(np.float32)


def problem_of(engine: Cascade) -> Problem:
    """The problem that a started engine steps, with the stimuli its episodes have now."""
    graph = engine.graph
    live = np.full(engine.region_count, len(engine.harm_regions), np.int32)
    live[engine.harm_regions] = np.arange(len(engine.harm_regions))
    z = engine.stimulus - 1
    return Problem(
        *graph.incoming,
        positions=graph.positions,
        sensitive=graph.sensitive,
        region=live[engine.regions],
        regions=len(engine.harm_regions),
        support=np.ascontiguousarray(graph.support[z].T),
        inject=np.ascontiguousarray(engine.rates[z].transpose(1, 2, 0)),
        persistence=engine.setting.persistence,
        delay=engine.setting.delay,
        params=engine.params,
    )
