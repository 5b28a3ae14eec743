"""How the odds ratio in Replay depends on the trace and the conductance late in Exposure.

A scar that contracts odds to theta by itself grows in Exposure, step by step, with the trace above
tau: `w_H eta sum_t max(0, G_t - tau) = ln(1 / theta)`. In all these steps the same region is gated
by `exp(-w_G G_t - w_H H_t)`. Exposure therefore cannot stay free while Replay is gated: late in
Exposure the conductance is about that of Replay. off@rep compares a free Replay with this gated
Exposure.
"""

from __future__ import annotations

from math import exp, isfinite, log

import numpy as np

from rapo.theory.mean_field import settles_at
from rapo_core.checks import UserError
from rapo_core.params import FieldParams


def _share(theta: float) -> float:
    if not (isfinite(theta) and 0 < theta < 1):
        raise UserError(f"theta must be an odds ratio in (0, 1), got {theta}")
    return theta


def scar_work(theta: float, params: FieldParams) -> float:
    """Sum over steps of the trace above tau that scars a region to odds `theta`.

    The sum is exact for irreversible scars; scars that decay (delta < 1) need more.
    """
    if params.w_H * params.eta == 0:
        return float("inf")
    return -log(_share(theta)) / (params.w_H * params.eta)


def needed_trace(theta: float, params: FieldParams, steps: int) -> float:
    """Least mean trace over `steps` that scars a region to odds `theta`.

    The sum of `max(0, G - tau)` is at least the sum of `G - tau`, so no trace with a smaller mean
    suffices. With the paper's constants and 450 steps the mean is .320 for odds of .41, hardly
    above tau.
    """
    if steps < 1:
        raise UserError(f"steps must be at least 1, got {steps}")
    return params.tau + scar_work(theta, params) / steps


def exposure_conductance(
    theta: float,
    params: FieldParams,
    *,
    steps: int = 450,
    since: float = 0.5,
) -> float:
    """Mean conductance of a region with a steady trace over the last part of Exposure.

    The region scars evenly over `steps` (Exposure without the delay D) and ends at odds `theta` by
    its scar alone. A region that scars faster and then rests below tau is gated more for longer.

    Args:
        theta: odds ratio of the scar at the end, in (0, 1).
        params: constants of the fields.
        steps: over which harm arrives in Exposure, >= 1.
        since: where the last part begins, as a share of `steps` in [0, 1).
    """
    if not 0 <= since < 1:
        raise UserError(f"since must be a share in [0, 1), got {since}")
    gated = exp(-params.w_G * needed_trace(theta, params, steps))
    course = np.linspace(since, 1, 1001)
    psi = np.maximum(gated * _share(theta) ** course, params.psi_min)
    return float(np.trapezoid(psi, course) / (1 - since))


def off_at_replay_at_least(
    R: float, theta: float, params: FieldParams, *, steps: int = 450
) -> float:
    """Sensitive mass of off@rep over that of late Exposure, in mean field; inf if Exposure died.

    Replay is free and settles where `P0` does. Exposure was established free and then gated by the
    conductance that scars of odds `theta` need: near 1 only if activity resists that, which takes
    R > 2, far more than activity needs to live on (see `bistable_conductances`).
    """
    free = settles_at(R, 1.0, established=True)
    gated = settles_at(R, exposure_conductance(theta, params, steps=steps), established=True)
    if free == 0:
        return 1.0
    return free / gated if gated > 0 else float("inf")


def consistent_spread(
    theta: float, params: FieldParams, *, steps: int = 450
) -> tuple[float, float]:
    """Range (low, high) of R in which Exposure lives on and Replay does not ignite.

    Above `low` established activity resists the conductance late in Exposure, so that off@rep is
    near 1. Below `high`, which is 1 / theta, odds contracted to theta keep Replay from igniting.
    The range is empty where low > high. At the paper's odds ratio of .41 it is empty: this odds
    ratio, a suppressed Replay and an off@rep near 1 do not hold together in one well-mixed set.
    Below about .37 they do.
    """
    psi = exposure_conductance(theta, params, steps=steps)
    high = 1 / _share(theta)
    low, most = 2.0, max(1e3, high)
    if settles_at(most, psi, established=True) == 0:
        return most, high
    for _ in range(60):
        middle = (low + most) / 2
        if settles_at(middle, psi, established=True) > 0:
            most = middle
        else:
            low = middle
    return most, high
