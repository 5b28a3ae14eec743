"""`FalseRateMemory`: the field's own baseline, the popularity-normalised false rate of regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rapo.platforms.candidates import Harmed
from rapo.platforms.memory import Array, RegionMemory
from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

PRIOR = 20.0
"""Serves that every region begins with, so that one report does not shut the region."""


class FalseRateMemory(RegionMemory):
    """Demotes a region by its reports over its serves: psi = clip((1 - rate)^strength, psi_min, 1).

    rate = false serves / (serves + PRIOR). Both counts are known after the delay of harm, and
    decay by 1 / window a step. `G` holds -strength ln(1 - rate) and `H` is 0, so RAPO's own kernel
    samples the baseline.

    Args:
        like: memory with the shape, delay and psi_min of this one.
        scope: where the deformation applies.
        strength: >= 0.
        window: mean age in steps of the counted serves, >= 1.
    """

    def __init__(self, like: RegionMemory, scope: Any, strength: float, window: float) -> None:
        episodes, regions = like.harm.G.shape
        params = replace(like.params, eta=0.0, w_G=1.0, w_H=0.0)
        super().__init__(episodes, regions, params, like.harm.delay, scope)
        self.strength = strength
        summed = FieldParams(lam=1 / window, alpha=1.0, eta=0.0)
        self.counts = HarmMemory(2 * regions, summed, batch=episodes, delay=like.harm.delay)

    def affected(self, harmed: Harmed, shape: tuple[int, int]) -> Array:
        """False serves, then serves, per region, then the number of users: (E, 2 R + 1)."""
        everybody = Harmed(np.asarray(harmed.where) >= 0, harmed.where)
        counts = [super(FalseRateMemory, self).affected(who, shape) for who in (harmed, everybody)]
        return np.concatenate([*counts, np.full((shape[0], 1), shape[1])], axis=1)

    def advance(self, affected: Array, per_walker: float) -> Array:
        """Take one step of delayed reports; the harm that arrived, (E,)."""
        regions, users = self.harm.regions, affected[0, -1]
        harm = self.harm.advance(affected[:, :regions] * per_walker)
        self.counts.advance(affected[:, :-1] * (5 / users))  # at most 10 in all: no saturation
        false, served = np.split(2 * users * self.counts.G, 2, axis=1)
        demotion = -self.strength * np.log1p(-false / (served + PRIOR))
        self.harm.restore({**self.harm.snapshot(), "G": demotion})
        return harm

    def reset(self, rows: Array) -> None:
        """Forget some episodes."""
        super().reset(rows)
        self.counts.reset(rows)

    def snapshot(self) -> dict[str, Array]:
        """Everything that evolves."""
        return {**super().snapshot(), **{f"n.{n}": a for n, a in self.counts.snapshot().items()}}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take over a snapshot."""
        counts = {n.removeprefix("n."): a for n, a in state.items() if n.startswith("n.")}
        self.counts.restore(counts)
        super().restore({n: a for n, a in state.items() if not n.startswith("n.")})
