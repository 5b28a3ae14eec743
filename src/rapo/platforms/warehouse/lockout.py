"""Zone lock-out by timer: the field's own answer, as another memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.core.memory import Array, HarmMemory
from rapo.platforms.memory import RegionMemory

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


class LockedZones(RegionMemory):
    """The memory of a platform whose closed zones are avoided, others as `P0` says.

    Args:
        memory: whose place it takes.
        timer: steps that a zone stays closed.
    """

    def __init__(self, memory: RegionMemory, timer: int) -> None:
        self.params, self.open_regions = memory.params, memory.open_regions
        self.harm = Timers(
            memory.harm.regions, timer, params=memory.params, batch=memory.harm.batch,
            delay=memory.harm.delay,
        )  # fmt: skip
        self._weights = np.array([0.0, -np.log(LEAST), FLOOR])
        self._table = np.empty(memory.harm.regions + 1)
