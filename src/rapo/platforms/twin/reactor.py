"""The stirred reactor of the textbooks, A -> B with heat, and its integration in time.

Units are those of the textbooks: minutes, mol/L, K. Volume and flow are 100 L and 100 L/min, so a
residence time is one minute and drops out of the balances.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from rapo.core.jit import inlined, lean_kernel

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


LANES = 4
"""Candidates that the processor integrates at once."""


@inlined
def rate_at(T: Any) -> Any:
    """Rate 1/min at T in 250 .. 600 K, to nine digits.

    A series of the 32nd root, squared five times: unlike `exp` it can be done four at a time.
    """
    x = (LOG_RATE - ACTIVATION / T) * 0.03125
    y = 1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320))
    y = 1 + x * (1 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * y))))
    y *= y
    y *= y
    y *= y
    y *= y
    return y * y


@inlined
def advance(
    c: Any, T: Any, heat_in: Any, minutes: Any, feed_c: Any, loss: Any, activity: Any
) -> None:
    """Bring c and T (K,) so many minutes on, by classical Runge-Kutta steps, in place.

    What is left is divided evenly into as many steps as the speed of the moment asks for: an
    ignition is over in seconds, and coarse steps miss its peak. heat_in: (K,) K/min.
    """
    left = minutes
    while left > 0:
        most, hottest = c[0], T[0]
        for k in range(1, c.size):
            most, hottest = max(most, c[k]), max(hottest, T[k])
        feedback = 1 + HEAT * ACTIVATION * most / (hottest * hottest)
        speed = activity * rate_at(hottest) * feedback + loss
        steps = np.ceil(left * speed / FINE)
        h = left / steps
        left = h * (steps - 1)
        half, sixth = 0.5 * h, h / 6
        for k in range(c.size):
            c0, T0, warms = c[k], T[k], heat_in[k]
            r = activity * rate_at(T0) * c0
            c1, T1 = feed_c - c0 - r, warms - loss * T0 + HEAT * r
            cm, Tm = c0 + half * c1, T0 + half * T1
            r = activity * rate_at(Tm) * cm
            c2, T2 = feed_c - cm - r, warms - loss * Tm + HEAT * r
            cm, Tm = c0 + half * c2, T0 + half * T2
            r = activity * rate_at(Tm) * cm
            c3, T3 = feed_c - cm - r, warms - loss * Tm + HEAT * r
            cm, Tm = c0 + h * c3, T0 + h * T3
            r = activity * rate_at(Tm) * cm
            c4, T4 = feed_c - cm - r, warms - loss * Tm + HEAT * r
            c[k] = c0 + sixth * (c1 + 2 * c2 + 2 * c3 + c4)
            T[k] = T0 + sixth * (T1 + 2 * T2 + 2 * T3 + T4)


@lean_kernel
def predict_into(
    c: Any, T: Any, feed: Any, coolant: Any, unit: Any, minutes: float, lanes: Any, to: Any
) -> None:
    """As `predict`; lanes (3, L) is room for the candidates, L >= K, the last ones idle."""
    K = coolant.shape[1]
    cs, Ts, heat_in = lanes[0], lanes[1], lanes[2]
    for e in range(c.shape[0]):
        for w in range(c.shape[1]):
            exchange = TRANSFER * unit[w, 1]
            for k in range(cs.size):
                cs[k], Ts[k] = c[e, w], T[e, w]
                heat_in[k] = feed[e, w, 1] + exchange * coolant[e, min(k, K - 1)]
            advance(cs, Ts, heat_in, minutes, feed[e, w, 0], 1 + exchange, unit[w, 0])
            for k in range(K):
                to[e, w, k, 0], to[e, w, k, 1] = cs[k], Ts[k]


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
    lanes, to = np.empty((3, -(-K // LANES) * LANES)), np.empty((*c.shape, K, 2))
    predict_into(c, T, feed, coolant, unit, minutes, lanes, to)
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
    found = [brentq(warms, grid[i], grid[i + 1]) for i in change]
    return np.array([[left_of(T), T] for T in found])
