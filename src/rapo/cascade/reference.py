"""The cascade step in plain NumPy, as obvious as it gets: what the kernels are checked against.

One episode, one loop over edges, the order of operations of the engine. In float32 it reproduces
the engine's trajectories bit by bit; in float64 it tells how much single precision matters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.injection import injection_rates
from rapo.cascade.rng import derive, uniform
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY, Setting
from rapo.core.deformation import Scope, within_scope
from rapo.core.memory import HarmMemory
from rapo.core.params import FieldParams


class ReferenceCascade:
    """One episode on one graph.

    Args:
        graph: the network.
        setting: open choices of the platform.
        regions: (n,) region of each node.
        params: constants of the fields.
        scope: where the deformation applies.
        designated: (regions,) bool, the regions of a `local` scope.
        dtype: float32 for the engine's precision, float64 for more.
    """

    def __init__(
        self,
        graph: Graph,
        setting: Setting,
        regions: npt.NDArray[np.int32],
        params: FieldParams,
        scope: Scope | str = "full",
        designated: npt.NDArray[np.bool_] | None = None,
        dtype: type[np.floating[Any]] = np.float32,
    ) -> None:
        self.graph, self.setting, self.regions = graph, setting, regions
        self.scope, self.dtype = Scope.parse(scope), dtype
        self.designated = None if designated is None else designated[regions]
        self.rates = injection_rates(graph, setting)
        self.memory = HarmMemory(
            int(regions.max()) + 1, params, delay=setting.delay, dtype=self.dtype
        )
        self.active = np.zeros(graph.n, np.bool_)
        self.phase, self.clock = EXPOSURE, 0

    def start(self, key: int, stimulus: int) -> None:
        """Begin an episode: nothing active, nothing remembered."""
        self.key, self.stimulus = key, stimulus
        self.memory.reset()
        self._enter(EXPOSURE)

    def nominal_stay(self, action: int) -> npt.NDArray[np.floating[Any]]:
        """(n,) `1 - q_v = (1 - b_v)(1 - s 1{v in A}) prod_{u in A, u->v} (1 - p_uv)`."""
        one = self.dtype(1)
        stay = np.ones(self.graph.n, self.dtype)
        if self.phase != DECAY:
            seeds = self.graph.support[self.stimulus - 1]
            stay[seeds] = one - self.rates[self.stimulus - 1, action]
        stay[self.active] *= one - self.dtype(self.setting.persistence)
        for u in np.flatnonzero(self.active):
            edges = slice(self.graph.indptr[u], self.graph.indptr[u + 1])
            stay[self.graph.indices[edges]] *= one - self.graph.prob[edges].astype(self.dtype)
        return stay

    def step(self, action: int) -> float:
        """One step of section 2's order; returns the harm that arrived."""
        stay = self.nominal_stay(action)
        q = self.dtype(1) - stay
        psi = self.memory.conductance()[self.regions]
        psi = within_scope(psi, q, self.scope, self.designated)
        u = uniform(self._phase_key, self.clock, np.arange(self.graph.n)).astype(self.dtype)
        passed = q * psi
        after = u * (passed + stay) < passed

        affected = np.bincount(
            self.regions[self.active & self.graph.sensitive], minlength=self.memory.regions
        )
        harm = float(self.memory.advance(affected))
        self.active = after
        self.clock += 1
        if self.phase != REPLAY and self.clock >= self.setting.horizons[self.phase]:
            self._enter(self.phase + 1)
        return harm

    def _enter(self, phase: int) -> None:
        self.phase, self.clock = phase, 0
        self._phase_key = derive(self.key, phase)
        if phase != DECAY:
            self.active = np.zeros(self.graph.n, np.bool_)
