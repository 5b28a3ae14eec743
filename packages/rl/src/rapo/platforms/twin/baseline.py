"""The high-temperature trip: the field's own baseline, in place of the memory."""

from __future__ import annotations

import numpy as np

from rapo.platforms import kernel
from rapo.platforms.candidates import UNTOLD, Array, Candidates
from rapo.platforms.memory import RegionMemory, Sampling
from rapo.platforms.twin.setting import Setting

LEAST = 1e-9
"""Psi of coolants that a tripped unit does not get."""


class TrippedUnits(RegionMemory):
    """Above a temperature a unit gets the trip's coolant, below it one drawn from `P0`.

    Harm is counted as in the memory and has no effect. The odds of harm stay undefined: they are
    infinite where even the trip's coolant leads into harm.

    Args:
        memory: the memory to replace.
        setting: `trip_above` and `trip_to`.
    """

    def __init__(self, memory: RegionMemory, setting: Setting) -> None:
        self.harm, self.params, self.never_gated = memory.harm, memory.params, memory.never_gated
        self.setting = setting

    def choose(self, proposed: Candidates, sampling: Sampling) -> tuple[Array, Array]:
        """Choices (E, m) and `stats` (STATS, E); `proposed.items` begins with T (E, m)."""
        E, m, K = proposed.P0.shape
        psi = np.ones((E, m, K))
        psi[proposed.items[0] > self.setting.trip_above] = LEAST
        psi[:, :, self.setting.trip_to] = 1
        choice, stats = np.empty((E, m), np.int64), np.empty((kernel.STATS, E))
        everybody = np.ones((E, m), np.bool_)
        kernel.choose_by_psi(
            proposed.P0, psi, UNTOLD, everybody, *sampling, np.empty(K), choice, stats
        )
        return choice, stats
