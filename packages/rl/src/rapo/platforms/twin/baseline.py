"""The high-temperature trip: the field's own answer, in the place of the memory."""

from __future__ import annotations

import numpy as np

from rapo.platforms import kernel
from rapo.platforms.memory import RegionMemory, Turn
from rapo.platforms.proposal import NOBODY_KNOWS, Array, Candidates
from rapo.platforms.twin.setting import Setting

LEAST = 1e-9
"""Psi of what a tripped unit does not get."""


class TrippedUnits(RegionMemory):
    """Above a temperature a unit gets the trip's coolant, below it what `P0` says.

    Harm is counted as ever, and nobody looks at it. Odds of harm are not told: where even the
    trip's coolant leads into it they are infinite.

    Args:
        memory: whose place it takes.
        setting: `trip_above` and `trip_to`.
    """

    def __init__(self, memory: RegionMemory, setting: Setting) -> None:
        self.harm, self.params, self.open_regions = memory.harm, memory.params, memory.open_regions
        self.setting = setting

    def choose(self, found: Candidates, turn: Turn) -> tuple[Array, Array]:
        """Choices (E, m) and `stats` (STATS, E); `found.items` begins with T (E, m) now."""
        E, m, K = found.P0.shape
        given = np.ones((E, m, K))
        given[found.items[0] > self.setting.trip_above] = LEAST
        given[:, :, self.setting.trip_to] = 1
        choice, stats = np.empty((E, m), np.int64), np.empty((kernel.STATS, E))
        kernel.choose_by_psi(
            found.P0, given, NOBODY_KNOWS, np.ones((E, m), np.bool_), turn.deformed, turn.top,
            turn.keys, turn.clock, np.empty(K), choice, stats,
        )  # fmt: skip
        return choice, stats
