"""The operating point: a region's steady trace against tau, which decides whether scars can form.

Under constant attributed harm the trace of a region settles at `alpha / lambda` times that harm. A
scar grows only while the trace is above tau, so a region whose steady trace lies below it stays as
it is, however long the harm goes on. The functions work on any record of attributed harm: of the
cascade engine, of a platform, or of a log in front of the gate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_core.fields import HARM_PER_NODE, harm_and_shares
from rapo_core.params import FieldParams

Float = npt.NDArray[np.float64]

IDLE_SHARE = 0.1
"""Below this share of harm that can scar the memory hardly acts: of 16 networks with the paper's
constants those below had an OddsRatio of .87 or more, the others (all above .39) of .59 or less."""
LONGEST = 10**9
"""Steps beyond which a scar is said never to bite."""


def attributed_harm(affected: npt.ArrayLike, per_node: float = HARM_PER_NODE) -> Float:
    """Harm `c w(r)` of every region from counts of affected nodes, (..., R) to (..., R).

    The paper's rule: `c = min(0.1 k, 1)` for k affected nodes in all, shared by their numbers.

    >>> attributed_harm([[1, 3], [0, 20]]).tolist()
    [[0.1, 0.30000000000000004], [0.0, 1.0]]
    """
    counts = _checked("affected", affected)
    flat = np.ascontiguousarray(counts.reshape(-1, counts.shape[-1]))
    harm, shares = np.empty(len(flat)), np.empty_like(flat)
    harm_and_shares(flat, float(per_node), harm, shares)
    return np.asarray((harm[:, None] * shares).reshape(counts.shape))


def steady_trace(harm: npt.ArrayLike, params: FieldParams) -> Float:
    """Where the trace settles under a mean attributed harm per step, (..., R) to (..., R).

    `G = (alpha / lambda) E[c w]`; give the mean over the steps of an exposure record.

    >>> float(steady_trace([0.06], FieldParams())[0])
    0.3
    """
    return np.asarray(params.alpha / params.lam * _checked("harm", harm))


def scarring_share(steady: npt.ArrayLike, params: FieldParams) -> float:
    """Share of all harm that falls into regions whose steady trace exceeds tau, in [0, 1].

    Args:
        steady: (..., R) steady traces, one row per stimulus or period; they are proportional to
            the harm. NaN where there is no harm at all.
        params: tau.
    """
    traces = _checked("steady", steady)
    total = float(traces.sum())
    return float(traces[traces > params.tau].sum()) / total if total > 0 else float("nan")


def course(steady: npt.ArrayLike, params: FieldParams, steps: npt.ArrayLike) -> tuple[Float, Float]:
    """G and H after `steps` steps of constant harm from empty fields, in closed form.

    Args:
        steady: steady traces, >= 0; broadcast against `steps`.
        params: constants of the fields.
        steps: whole numbers >= 0.
    """
    top, t = np.broadcast_arrays(_checked("steady", steady), np.asarray(steps, float))
    keep = 1 - params.lam
    G = top * (1 - keep**t)
    # The trace is above tau from step t0 on: top (1 - keep^t0) > tau.
    above = top > params.tau
    room = np.where(above, 1 - params.tau / np.where(above, top, 1.0), np.nan)
    with np.errstate(divide="ignore"):  # a trace a hair above tau takes forever
        t0 = np.floor(np.log(room) / np.log(keep) if keep > 0 else 0 * room) + 1
    m = np.maximum(t - t0, 0)  # updates of H that saw a trace above tau
    ahead = top * keep ** np.nan_to_num(t0)
    if params.delta == 1:
        grown = (top - params.tau) * m - ahead * (1 - keep**m) / params.lam
    else:
        forget = params.delta
        sum_flat = (1 - forget**m) / (1 - forget)
        if np.isclose(forget, keep, rtol=1e-9):
            sum_ahead = m * forget ** np.maximum(m - 1, 0)
        else:
            sum_ahead = (forget**m - keep**m) / (forget - keep)
        grown = (top - params.tau) * sum_flat - ahead * sum_ahead
    H = params.eta * np.where(np.isnan(t0), 0.0, np.maximum(grown, 0.0))
    return G, H


def steps_until_bite(steady: npt.ArrayLike, params: FieldParams, odds: float = 0.5) -> Float:
    """Steps of constant harm until the scar alone contracts the odds to `odds`; inf for never.

    Args:
        steady: (..., R) steady traces.
        params: constants of the fields.
        odds: of the scar, `exp(-w_H H)`, in (0, 1); below psi_min no scar gets there.
    """
    if not 0 < odds < 1:
        raise UserError(f"odds must be in (0, 1), got {odds!r}")
    traces = _checked("steady", steady)
    if params.w_H == 0 or odds < params.psi_min:
        return np.full(traces.shape, np.inf)
    needed = -np.log(odds) / params.w_H
    low, high = np.zeros(traces.shape), np.full(traces.shape, float(LONGEST))
    never = course(traces, params, LONGEST)[1] < needed
    while np.any(high - low > 1):  # the scar never falls under constant harm
        middle = np.floor((low + high) / 2)
        there = course(traces, params, middle)[1] >= needed
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return np.where(never, np.inf, high)


@dataclass(frozen=True)
class OperatingPoint:
    """Steady traces of regions and what they come to."""

    steady: Float
    """(E, R) steady trace of every region in each episode of the record."""
    params: FieldParams

    @property
    def regions(self) -> int:
        """How many regions can carry harm."""
        return int(self.steady.shape[-1])

    @property
    def scarring(self) -> int:
        """Regions whose steady trace exceeds tau in some episode."""
        return int((self.steady > self.params.tau).any(axis=0).sum())

    @property
    def highest(self) -> float:
        """The highest steady trace."""
        return float(self.steady.max(initial=0.0))

    @property
    def share(self) -> float:
        """Share of harm that can scar; NaN without harm."""
        return scarring_share(self.steady, self.params)

    @property
    def idle(self) -> bool:
        """Whether the memory hardly acts: less than a tenth of the harm can scar."""
        return not self.share >= IDLE_SHARE

    @property
    def bite(self) -> float:
        """Median steps of exposure until a scar halves the odds, over the harm; inf for never."""
        weights = self.steady.ravel()
        if not weights.sum() > 0:
            return float("inf")
        steps = steps_until_bite(self.steady, self.params).ravel()
        order = np.argsort(steps, kind="stable")
        reached = np.cumsum(weights[order]) >= 0.5 * weights.sum()
        return float(steps[order][np.argmax(reached)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for manifests."""
        return {
            "regions": self.regions,
            "scarring": self.scarring,
            "share": self.share,
            "highest_steady_trace": self.highest,
            "tau": self.params.tau,
            "idle": self.idle,
            "steps_until_bite": self.bite if np.isfinite(self.bite) else None,
        }

    def __str__(self) -> str:
        side = "above" if self.highest > self.params.tau else "under"
        bites = (
            f"; half of the harm meets halved odds within {self.bite:,.0f} steps"
            if np.isfinite(self.bite)
            else ""
        )
        return (
            f"{self.scarring:,} of {self.regions:,} regions can scar, with "
            f"{np.nan_to_num(self.share):.0%} of the harm; highest steady trace "
            f"{self.highest:.2g} {side} tau {self.params.tau:.2g}{bites}"
        )


def operating_point(harm: npt.ArrayLike, params: FieldParams) -> OperatingPoint:
    """The operating point of a record.

    Args:
        harm: (E, R) mean attributed harm per step of every region, a row per episode (or stimulus,
            or period): scars form within one.
        params: constants of the fields.
    """
    record = np.atleast_2d(_checked("harm", harm))
    return OperatingPoint(steady_trace(record, params), params)


def _checked(name: str, values: npt.ArrayLike) -> Float:
    array = np.asarray(values, np.float64)
    if array.ndim == 0:
        array = array[None]
    wrong = array[~(np.isfinite(array) & (array >= 0))]
    if wrong.size:
        raise UserError(f"{name} must be finite and >= 0, got {wrong.flat[0]}")
    return array
