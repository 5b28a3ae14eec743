"""The stirred reactor of the textbooks, A -> B with heat, and its integration in time.

Units are those of the textbooks: minutes, mol/L, K. Volume and flow are 100 L and 100 L/min, so a
residence time is one minute and drops out of the balances.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from rapo_core.jit import inlined, lean_kernel
from rapo_core.lanes import LANES, load, store, where, whole_above

Array = npt.NDArray[Any]

RATE = 7.2e10
"""1/min, pre-exponential factor."""
LOG_RATE = float(np.log(RATE))
ACTIVATION = 8750.0
"""K, activation energy over the gas constant."""
HEAT = 5e4 / (1000 * 0.239)
"""K per mol/L, rise of a mixture (1000 g/L, 0.239 J/g K) in which a mole (5e4 J) reacts."""
TRANSFER = 5e4 / (100 * 1000 * 0.239)
"""1/min, exchange with the jacket (5e4 J/min K) over the heat capacity of 100 L."""
FEED_C, FEED_T = 1.0, 350.0
"""mol/L and K of the nominal feed."""
FINE = 1.25
"""Product of a substep and the speed of the reaction, at most; RK4 is stable up to 2.8."""


@inlined
def rate_at(T: Any) -> Any:
    """Rate 1/min at T in 250 .. 600 K, a float64 or lanes of it, to eight digits.

    A series of the 32nd root, squared five times: unlike `exp` it can be done in lanes.
    """
    x = (LOG_RATE - ACTIVATION / T) * 0.03125
    y = 1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320.0))
    y = 1.0 + x * (1.0 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * y))))
    y = y * y
    y = y * y
    y = y * y
    y = y * y
    return y * y


LEFT, FEED, LOSS, ACTIVITY, CANDIDATES = (LANES * i for i in range(5))
"""Starts of the rows of `room`, in which a lane holds a unit: minutes left, mol/L of the feed, the
loss by flow and jacket in 1/min, the factor on the rate; from CANDIDATES on three per candidate:"""
LEFT_C, LEFT_T, HEAT_IN, OF_ONE = (LANES * i for i in range(4))
"""mol/L, K, and K/min that feed and jacket bring."""


@inlined
def slopes(c: Any, T: Any, heat_in: Any, feed_c: Any, loss: Any, activity: Any) -> Any:
    """Time derivatives of mol/L and K."""
    r = activity * rate_at(T) * c
    return feed_c - c - r, heat_in - loss * T + HEAT * r


@inlined
def advance(room: Any, K: int) -> None:
    """One classical Runge-Kutta step of the K candidates of the units in all lanes.

    The time that a unit has left is divided evenly into as many steps as its present speed needs:
    an ignition is over in seconds, and coarse steps miss its peak.
    """
    most, hottest = load(room, CANDIDATES + LEFT_C), load(room, CANDIDATES + LEFT_T)
    for k in range(1, K):
        at = CANDIDATES + k * OF_ONE
        c, T = load(room, at + LEFT_C), load(room, at + LEFT_T)
        most, hottest = where(c > most, c, most), where(hottest < T, T, hottest)
    left, feed_c = load(room, LEFT), load(room, FEED)
    loss, activity = load(room, LOSS), load(room, ACTIVITY)
    feedback = 1.0 + HEAT * ACTIVATION * most / (hottest * hottest)
    speed = activity * rate_at(hottest) * feedback + loss
    steps = whole_above(left * speed / FINE)
    h = left / steps
    store(room, LEFT, h * (steps - 1.0))
    half, sixth = 0.5 * h, h / 6.0
    for k in range(K):
        at = CANDIDATES + k * OF_ONE
        c, T, heat_in = load(room, at + LEFT_C), load(room, at + LEFT_T), load(room, at + HEAT_IN)
        c1, T1 = slopes(c, T, heat_in, feed_c, loss, activity)
        c2, T2 = slopes(c + half * c1, T + half * T1, heat_in, feed_c, loss, activity)
        c3, T3 = slopes(c + half * c2, T + half * T2, heat_in, feed_c, loss, activity)
        c4, T4 = slopes(c + h * c3, T + h * T3, heat_in, feed_c, loss, activity)
        store(room, at + LEFT_C, c + sixth * (c1 + 2.0 * c2 + 2.0 * c3 + c4))
        store(room, at + LEFT_T, T + sixth * (T1 + 2.0 * T2 + 2.0 * T3 + T4))


@lean_kernel
def predict_into(
    c: Any, T: Any, feed: Any, coolant: Any, unit: Any, minutes: float, room: Any, of: Any, to: Any
) -> None:
    """As `predict`. A unit that has arrived leaves its lane to the next unit.

    room: CANDIDATES + K OF_ONE float64. of: (LANES,) int64, room for the numbers of the units.
    """
    m, K = c.shape[1], coolant.shape[1]
    begun, arrived = 0, 0
    for i in range(LANES):
        room[LEFT + i], of[i] = 0.0, -1
    while True:
        for i in range(LANES):
            if room[LEFT + i] > 0:
                continue
            if of[i] >= 0:
                e, w = of[i] // m, of[i] % m
                for k in range(K):
                    at = CANDIDATES + k * OF_ONE + i
                    to[e, w, k, 0], to[e, w, k, 1] = room[at + LEFT_C], room[at + LEFT_T]
                arrived += 1
            of[i] = begun if begun < c.size else -1
            e, w = min(begun, c.size - 1) // m, min(begun, c.size - 1) % m  # the last ones idle
            exchange = TRANSFER * unit[w, 1]
            room[LEFT + i], room[FEED + i] = minutes, feed[e, w, 0]
            room[LOSS + i], room[ACTIVITY + i] = 1 + exchange, unit[w, 0]
            for k in range(K):
                at = CANDIDATES + k * OF_ONE + i
                room[at + LEFT_C], room[at + LEFT_T] = c[e, w], T[e, w]
                room[at + HEAT_IN] = feed[e, w, 1] + exchange * coolant[e, k]
            begun += 1
        if arrived == c.size:
            return
        advance(room, K)


def predict(c: Array, T: Array, feed: Array, coolant: Array, unit: Array, minutes: float) -> Array:
    """(E, m, K, 2) mol/L and K to which every candidate coolant leads a unit within a step.

    Args:
        c: (E, m) mol/L.
        T: (E, m) K.
        feed: (E, m, 2) mol/L and K, constant over the step.
        coolant: (E, K) K of the candidates.
        unit: (m, 2) factors on the rate and on the exchange with the jacket.
        minutes: of a step.
    """
    K = coolant.shape[1]
    room, of = np.empty(CANDIDATES + K * OF_ONE), np.empty(LANES, np.int64)
    to = np.empty((*c.shape, K, 2))
    predict_into(c, T, feed, coolant, unit, minutes, room, of, to)
    return to


def steady_states(coolant: float, activity: float = 1.0, exchange: float = 1.0) -> Array:
    """(n, 2) mol/L and K of the steady states of the nominal feed, the coldest first."""
    passed = TRANSFER * exchange

    def left_of(T: float) -> float:
        return float(FEED_C / (1 + RATE * activity * np.exp(-ACTIVATION / T)))

    def warms(T: float) -> float:
        return FEED_T - T + HEAT * (FEED_C - left_of(T)) + passed * (coolant - T)

    grid = np.linspace(250, 600, 1401)
    change = np.flatnonzero(np.diff(np.sign([warms(T) for T in grid])))
    steady = [brentq(warms, grid[i], grid[i + 1]) for i in change]
    return np.array([[left_of(T), T] for T in steady])
