"""Harm that is reported at random: our environment with noise between harm and trace.

Noise is put on what enters the trace, region by region and step by step, and leaves the cascade's
own draws alone, so runs with and without it compare.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import derive, uniform
from rapo.envs.episodes import Info, Obs
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo_core.checks import UserError

SALT = 0x5EED
"""Sets these draws apart from the cascade's."""


class NoisyReportsEnv(GraphDiffusionVectorEnv):
    """Lost reports, and reports that say too much or too little.

    Args:
        num_envs: as in `GraphDiffusionVectorEnv`, like all other options.
        lost: share of the (step, region) reports that never arrive, in [0, 1].
        spread: what arrives is multiplied by 1 + spread or 1 - spread, each half of the time, so it
            is right on average; in [0, 1].
    """

    def __init__(
        self, num_envs: int = 1, *, lost: float = 0.0, spread: float = 0.0, **options: Any
    ) -> None:
        for name, value in (("lost", lost), ("spread", spread)):
            if not 0 <= value <= 1:
                raise UserError(f"{name} must be in [0, 1], got {value!r}")
        super().__init__(num_envs, **options)
        self.lost, self.spread = float(lost), float(spread)

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Obs, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Info]:
        """A step of the environment; then the trace takes up only what was reported."""
        engine = self.engine
        keys, clock = engine.keys, engine.clock
        kept = (1 - engine.params.lam) * engine.G[:, engine.harm_regions].astype(np.float64)
        _, reward, over, cut, info = super().step(actions)
        state = engine.snapshot()
        inflow = state["G"] - kept
        factor = self._factors(keys, clock)
        # the scar of this step was made from the trace before it: only G has to change
        changed = (inflow > 0) & (factor != 1)
        state["G"] = np.where(changed, kept + factor * inflow, state["G"]).astype(np.float32)
        engine.restore(state)
        return self._observation(), reward, over, cut, info

    def _factors(
        self, keys: npt.NDArray[np.uint64], clock: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """(E, R_live) what each report is multiplied by."""
        salted = derive(keys, SALT)[:, None]
        regions = np.arange(len(self.engine.harm_regions))
        arrives = uniform(salted, clock[:, None], regions) >= self.lost
        up = uniform(salted, clock[:, None], len(regions) + regions) < 0.5
        return np.where(arrives, np.where(up, 1 + self.spread, 1 - self.spread), 0.0)
