"""What reports on a region make of it in one tick: harm, and how much of it one reporter may cause.

Harm is the excess of a region's report rate over the base rate. `A` reports and `E` exposures in
memory, `K` more exposures at the prior rate `b_p`, give the rate `r = (A + K b_p) / (E + K)`, which
is known to within `sd = sqrt(r / (E + K))`; harm is `(r - z sd - b) / scale`, clipped to [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo_core.fields import psi_of
from rapo_core.jit import inlined
from rapo_gate.config import GateConfig


class Params(NamedTuple):
    """Settings as kernels want them."""

    keep: float
    """Of the trace in a tick, 1 - lambda."""
    alpha: float
    delta: float
    eta: float
    tau: float
    w_G: float
    w_H: float
    psi_min: float
    floor: float
    """An unconfirmed region's trace takes its psi to this share at most."""
    fade: float
    """Of reports and exposures in memory in a tick."""
    base: float
    shrinkage: float
    z: float
    scale: float
    goal: float
    """Rate, net of its uncertainty, whose harm in every tick would hold the trace at tau."""
    part: float
    """Of the reports that reach `goal`, what one reporter may count for."""
    min_sources: int
    min_signals: int
    window: int
    """Ticks for which a report agrees with others."""
    lifetime: int
    """Ticks after which a scar that does not grow expires; 0 for never."""


def params_of(config: GateConfig) -> Params:
    """Settings for kernels."""
    p = config.params
    steady = p.tau * p.lam / p.alpha if p.alpha > 0 else inf
    goal = config.base_rate + config.scale * min(1.0, steady)
    # fewer than k reporters stay short of it, and k of them do not
    part = 1 / (config.min_sources - 0.5)
    return Params(
        1 - p.lam, p.alpha, p.delta, p.eta, p.tau, p.w_G, p.w_H, p.psi_min,
        config.unconfirmed_floor, float(2.0 ** (-1 / config.half_life)), config.base_rate,
        config.shrinkage, config.z, config.scale, goal, part, config.min_sources,
        config.min_signals, config.confirm_ticks, config.scar_ticks or 0,
    )  # fmt: skip


def rates_of(config: GateConfig, topics: Iterable[str]) -> npt.NDArray[np.float64]:
    """Prior rate of regions without a topic, then of each topic."""
    base = config.base_rate
    return np.array([base, *(config.base_rates.get(t, base) for t in topics)])


def numbered(names: dict[str, int], topics: Mapping[int, str | None]) -> dict[int, int]:
    """Number of each region's topic, 0 for none; new names are added."""
    return {
        region: 0 if topic is None else names.setdefault(topic, len(names) + 1)
        for region, topic in topics.items()
    }


@inlined
def net_rate(A: Any, E: Any, prior: Any, p: Any) -> Any:
    """Rate of a region with A reports and E exposures in memory, net of its uncertainty."""
    reports = A + p.shrinkage * prior  # n r, and n sd is the root of it
    return (reports - p.z * np.sqrt(reports)) / (E + p.shrinkage)


@inlined
def harm_of(A: Any, E: Any, prior: Any, p: Any) -> Any:
    """Harm in [0, 1] of a tick in which a region has A reports and E exposures in memory."""
    return min(max((net_rate(A, E, prior, p) - p.base) / p.scale, 0.0), 1.0)


@inlined
def enough(n: float, prior: float, shrinkage: float, z: float, goal: float) -> float:
    """Reports in memory at which a region's rate, net of its uncertainty, reaches `goal`.

    `A = n r - K b_p`, where `r - z sqrt(r / n) = goal`; it grows with n, the exposures with `K`.
    """
    root = (z + sqrt(z * z + 4 * goal * n)) / 2
    return max(root * root - shrinkage * prior, 0.0)


@inlined
def psi_at(G: Any, H: Any, sure: Any, p: Any) -> Any:
    """Conductance; the trace of an unconfirmed region takes it down by `floor` at most."""
    value = psi_of(G, H, p.w_G, p.w_H, p.psi_min)
    if not sure:
        value = max(value, p.floor * psi_of(0.0, H, p.w_G, p.w_H, p.psi_min), p.psi_min)
    return value


@dataclass(frozen=True, slots=True)
class Acting:
    """Which regions settings can scar."""

    able: int
    """Regions whose steady trace, at their present rates, is above tau."""
    regions: int
    threshold: float
    """Reports per exposure above which a region scars in the long run; inf if none can."""

    def __str__(self) -> str:
        text = f"{self.able:,} of {self.regions:,} regions can scar"
        if not np.isfinite(self.threshold):
            return f"{text}: no rate of reports takes a trace over tau"
        return f"{text}: those above {self.threshold:.3g} reports per exposure"


def can_act(config: GateConfig, rates: npt.ArrayLike) -> Acting:
    """Whether settings can do anything: the steady trace of every region against tau.

    Args:
        config: of a gate.
        rates: harm per exposure of every region, net of its uncertainty (`net_rate`), (n,).
    """
    p, net_rates = config.params, np.asarray(rates, np.float64)
    steady = p.alpha / p.lam  # of a region whose harm is 1
    if not (p.eta > 0 and p.w_H > 0 and steady > p.tau):
        return Acting(0, net_rates.size, float("inf"))
    threshold = config.base_rate + config.scale * p.tau / steady
    return Acting(int((net_rates > threshold).sum()), net_rates.size, float(threshold))
