"""Activity behind a gate, in mean field: when it dies, when it stays, when both are possible.

In a large well-mixed set a share x is active and a node is reached by R x active ones, so that it
activates with probability `q = 1 - exp(-R x)` under `P0`. The gate contracts its odds by psi:

    x / (1 - x) = psi (exp(R x) - 1)

Nobody active is always a fixed point; it is stable for psi < 1 / R. For R > 2 an active state stays
stable below that: activity, once established, resists a gate that keeps it from igniting.
"""

from __future__ import annotations

from math import expm1, isfinite, log

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar

from rapo_core.checks import UserError

_EDGE = 1e-12
"""Distance from 0 and 1 at which roots are still told from the ends."""


def _held(R: float, psi: float) -> None:
    if not (isfinite(R) and R > 0):
        raise UserError(f"R must be a positive number of nodes reached, got {R}")
    if not 0 <= psi <= 1:
        raise UserError(f"psi must be in [0, 1], got {psi}")


def _holding(x: float, R: float) -> float:
    """Log of the conductance at which a share x in (0, 1) is a fixed point."""
    rise = R * x
    grown = log(expm1(rise)) if rise < 700 else rise
    return log(x) - log(1 - x) - grown


def _least(R: float) -> tuple[float, float]:
    """The share at which the least conductance holds activity, and the log of that conductance."""
    if R <= 2:
        return 0.0, -log(R)  # rises with x from 1 / R on
    minimum = minimize_scalar(_holding, bounds=(_EDGE, 1 - _EDGE), args=(R,), method="bounded")
    return float(minimum.x), float(minimum.fun)


def fixed_points(R: float, psi: float = 1.0) -> npt.NDArray[np.float64]:
    """Shares x in [0, 1) at which gated activity stays as it is, ascending; one, two or three.

    Args:
        R: nodes that an active one reaches while few are active, > 0.
        psi: conductance in [0, 1].
    """
    _held(R, psi)
    points = [0.0]
    if psi == 0:
        return np.array(points)
    x, least = _least(R)
    goal = log(psi)

    def gap(share: float) -> float:
        return _holding(share, R) - goal

    if x > _EDGE and least < goal < -log(R):  # a state that activity must exceed to ignite
        points.append(float(brentq(gap, _EDGE, x)))
    start = max(x, _EDGE)
    if gap(start) < 0:
        end = 1 - _EDGE
        points.append(float(brentq(gap, start, end)) if gap(end) > 0 else end)
    return np.array(points)


def settles_at(R: float, psi: float, *, established: bool) -> float:
    """The share at which activity settles under a gate.

    Args:
        R: nodes that an active one reaches.
        psi: conductance.
        established: whether most are active when the gate closes, as late in Exposure; else next
            to nobody, as when Replay begins.
    """
    points = fixed_points(R, psi)
    if established or psi * R > 1:
        return float(points[-1])
    return 0.0


def bistable_conductances(R: float) -> tuple[float, float] | None:
    """Conductances (low, high) between which quiet and active states are both stable, or None.

    `high` is 1 / R, below which nothing ignites; `low` is where established activity breaks down
    too. There is such a range exactly if R > 2.
    """
    _held(R, 1.0)
    if R <= 2:
        return None
    return float(np.exp(_least(R)[1])), 1 / R
