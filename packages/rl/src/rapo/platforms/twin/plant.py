"""`Plant`: the units of a platform, which differ a little, and the disturbances of their feed."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rapo.platforms.twin.reactor import FEED_C, FEED_T, Array, steady_states
from rapo.platforms.twin.setting import Setting
from rapo_core.checks import UserError

KINDLED = 360.0
"""K, between the cold and the hot steady states."""


class Plant(NamedTuple):
    """Constants that the seed of a platform draws."""

    unit: Array
    """(m, 2) factors on the rate (activity) and on the exchange with the jacket (fouling)."""
    rest: Array
    """(m, 2) mol/L and K of every unit's hot steady state at the middle set-point."""
    swing: Array
    """(Z, 2) mol/L and K by which the feed of a stimulus swings up and down."""
    period: Array
    """(Z,) minutes."""
    lag: Array
    """(m,) lag of a unit behind the first, in periods."""

    def feed(self, stimulus: Array, minutes: Array) -> Array:
        """(E, m, 2) mol/L and K of the feed, nominal for stimulus 0.

        Args:
            stimulus: (E,) 1-based while it is on, else 0.
            minutes: (E,) since it began.
        """
        periods = minutes / self.period[stimulus - 1]
        wave = np.sin(2 * np.pi * (periods[:, None] - self.lag))
        wave *= (stimulus > 0)[:, None]
        swing = self.swing[stimulus - 1]
        return np.asarray([FEED_C, FEED_T] + wave[:, :, None] * swing[:, None, :])


@lru_cache(maxsize=64)
def plant_of(seed: int, s: Setting) -> Plant:
    """The plant of a platform seed.

    Raises:
        UserError: a unit has no hot steady state; the set-points are too cold for the unit.
    """
    rng = np.random.default_rng([seed, 394])
    unit = np.exp(rng.normal(size=(s.units, 2)) * [s.activity, s.fouling])
    middle = s.set_points[len(s.set_points) // 2]
    rest = np.array([steady_states(middle, *u)[-1] for u in unit])
    if rest[:, 1].min() < KINDLED:
        raise UserError(
            f"unit {int(rest[:, 1].argmin())} has no hot steady state at {middle:g} K of coolant, "
            f"only {rest[:, 1].min():.0f} K; raise set_points or lower activity and fouling"
        )
    part = rng.uniform(*s.mix, s.stimuli)
    swing = np.stack([s.swing_c * part, s.swing_T * (1 - part)], axis=1)
    period = rng.uniform(*s.period, s.stimuli)
    return Plant(unit, rest, swing, period, rng.uniform(0, s.lag, s.units))
