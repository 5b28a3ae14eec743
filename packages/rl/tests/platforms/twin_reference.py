"""A stirred reactor and one step of its units, slow and obvious, in float64 and textbook units."""

import math

import numpy as np
from scipy.integrate import solve_ivp

from rapo.platforms.twin import Twin

# As the textbooks print them: L, L/min, g/L, J/g K, J/mol, K, 1/min, J/min K.
V, Q, RHO, CP, DH, E_OVER_R, K0, UA = 100.0, 100.0, 1000.0, 0.239, -5e4, 8750.0, 7.2e10, 5e4


def balances(c, T, feed_c, feed_T, coolant, activity=1.0, exchange=1.0):
    """Time derivatives of mol/L and K, a minute being the unit of time."""
    r = activity * K0 * math.exp(-E_OVER_R / T) * c
    dc = Q / V * (feed_c - c) - r
    dT = (
        Q / V * (feed_T - T)
        + (-DH) / (RHO * CP) * r
        + exchange * UA / (V * RHO * CP) * (coolant - T)
    )
    return dc, dT


def led(c, T, minutes, *feed_and_unit):
    """(mol/L, K) after so many minutes, by scipy's stiff solver."""
    found = solve_ivp(
        lambda _, y: balances(y[0], y[1], *feed_and_unit), (0, minutes), (c, T), method="LSODA",
        rtol=1e-9, atol=1e-10,
    )  # fmt: skip
    assert found.success
    return found.y[:, -1]


def feed_of(plant, stimulus, minutes, unit):
    """mol/L and K of one unit's feed."""
    if stimulus == 0:
        return 1.0, 350.0
    swing_c, swing_T = plant.swing[stimulus - 1]
    turn = minutes / plant.period[stimulus - 1] - plant.lag[unit]
    wave = math.sin(2 * math.pi * turn)
    return 1.0 + swing_c * wave, 350.0 + swing_T * wave


def cell_of(c, T, setting):
    """Number of a point's cell, mol/L slowest; what lies beyond the window is in its edge cells."""
    number = 0
    for at, (low, high), n in zip((c, T), setting.window, setting.cells, strict=True):
        inside = min(max(math.floor((at - low) / (high - low) * n), 0), n - 1)
        number = number * n + inside
    return number


def offered(twin, c, T, stimulus, clock, action, unit):
    """P0 (K,), places (K, 2) and cells (K,) of one unit's candidates."""
    s = twin.setting
    offsets = np.linspace(-s.farthest, s.farthest, s.candidates)
    law = np.array([math.exp(-((o / s.spread) ** 2) / 2) for o in offsets])
    feed = feed_of(twin.plant, stimulus, clock * s.minutes, unit)
    places = [
        led(c, T, s.minutes, *feed, s.set_points[action] + o, *twin.plant.unit[unit])
        for o in offsets
    ]
    return law / law.sum(), np.array(places), [cell_of(*place, s) for place in places]


def started(episodes=3, **options):
    """A twin of a seed that is scored nowhere, every episode with a stimulus of its own."""
    twin = Twin(episodes, **{"seed": 1001, "scheduled": False, **options})
    twin.start(np.arange(episodes, dtype=np.uint64), np.arange(episodes) % twin.stimuli + 1)
    return twin
