"""Zone lock-out by timer: the field's own baseline, as a memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.platforms.memory import RegionMemory
from rapo_core.memory import Array, HarmMemory

LEAST, FLOOR = 1e-3, 1e-30
"""Psi of a closed zone, and least psi of a route (that of ten closed zones): a route through fewer
closed zones comes first."""


class Timers(HarmMemory):
    """`G` holds the steps until a zone opens again, `H` is 1 while the zone is closed.

    Any report, however small its harm, restarts the timer of its zone. Reports arrive after the
    delay.
    """

    def __init__(self, regions: int, timer: int, **options: Any) -> None:
        super().__init__(regions, **options)
        self.timer = float(timer)

    def _apply(self, harm: Array, weights: Array) -> None:
        reported = harm[:, None] * weights > 0
        left = np.where(reported, self.timer, np.maximum(self._G - 1, 0))
        self._G, self._H = left, (left > 0).astype(left.dtype)


def locked_out(memory: RegionMemory, timer: int) -> RegionMemory:
    """A memory under which robots avoid a reported zone for so many steps and else follow `P0`."""
    zones = memory.harm
    timers = Timers(zones.regions, timer, params=zones.params, batch=zones.batch, delay=zones.delay)
    return memory.ruled_by(timers, (0.0, -np.log(LEAST), FLOOR))
