"""Zone lock-out by timer: the field's own answer, as another memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.platforms.memory import RegionMemory
from rapo_core.memory import Array, HarmMemory

LEAST, FLOOR = 1e-3, 1e-30
"""Psi of a closed zone, and of a route at least (ten of them): fewer closed zones come first."""


class Timers(HarmMemory):
    """`G` are the steps until a zone opens again, `H` is 1 while it is closed.

    Any report, however small its harm, starts the timer of its zone anew; reports arrive as late
    as ever.
    """

    def __init__(self, regions: int, timer: int, **options: Any) -> None:
        super().__init__(regions, **options)
        self.timer = float(timer)

    def _apply(self, harm: Array, weights: Array) -> None:
        reported = harm[:, None] * weights > 0
        left = np.where(reported, self.timer, np.maximum(self._G - 1, 0))
        self._G, self._H = left, (left > 0).astype(left.dtype)


def locked_out(memory: RegionMemory, timer: int) -> RegionMemory:
    """A memory whose closed zones are avoided for so many steps, others as `P0` says."""
    zones = memory.harm
    timers = Timers(zones.regions, timer, params=zones.params, batch=zones.batch, delay=zones.delay)
    return memory.ruled_by(timers, (0.0, -np.log(LEAST), FLOOR))
