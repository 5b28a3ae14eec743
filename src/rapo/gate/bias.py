"""Bias audit: who is gated, who is reported, and whether the harm signals treat groups alike."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, norm

from rapo.gate.state import State

LEVEL = 0.95
UNLABELLED = "unlabelled"

Interval = tuple[float, float]
Values = dict[str, Any]


def bias(state: State) -> Values:
    """Rates by group and by topic, each with a 95% interval and the rate of everybody else.

    Returns:
        `group` and `topic`, each a list with one entry per label:
        `gating_rate`, the share of the proposed exposure that the gate takes away (negative if
        the label gains; the region is the unit of its interval, so one region alone has none);
        `report_rate`, reports per exposure (exact Poisson interval);
        `signals`, the same for every signal, with the share that was rolled back (Wilson
        interval): a signal that is often wrong about one group is a biased proxy.
        `differs` says that the interval leaves out the rate of the rest.
    """
    return {kind: _by(state, kind) for kind in ("group", "topic")}


def _by(state: State, kind: str) -> list[Values]:
    count = len(state.regions)
    labels = np.array(
        [state.labels.get(i, {}).get(kind, UNLABELLED) for i in range(count)], dtype=object
    )
    entries = []
    for label in sorted(set(labels.tolist())):
        inside = np.asarray(labels == label, np.bool_)
        entries.append({
            "label": label,
            "regions": int(inside.sum()),
            "exposure": float(state.traffic.served[:count][inside].sum()),
            "gating_rate": _gating(state, inside),
            "report_rate": _reports(state, inside, None),
            "signals": [
                {"signal": name, "report_rate": _reports(state, inside, i),
                 "rolled_back": _rolled_back(state, inside, i)}
                for i, name in enumerate(state.signals.names)
            ],
        })  # fmt: skip
    return entries


def _gating(state: State, inside: npt.NDArray[np.bool_]) -> Values:
    count = inside.size
    proposed, gated = state.traffic.proposed[:count], state.traffic.gated[:count]

    def estimate(members: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """Rate and its standard error: a ratio of sums over regions, linearised."""
        before, after = proposed[members], gated[members]
        total, n = before.sum(), before.size
        if total <= 0:
            return float("nan"), float("nan")
        kept = after.sum() / total
        spread = ((after - kept * before) ** 2).sum() * n / (n - 1) if n > 1 else float("nan")
        return float(1 - kept), float(sqrt(spread) / total)

    rate, error = estimate(inside)
    half = float(norm.ppf(1 - (1 - LEVEL) / 2)) * error
    return _compared(rate, (rate - half, rate + half), estimate(~inside)[0])


def _reports(state: State, inside: npt.NDArray[np.bool_], signal: int | None) -> Values:
    return _rate(_counter(state, signal), state.traffic.served[: inside.size], inside)


def _counter(state: State, signal: int | None) -> Callable[[npt.NDArray[np.bool_]], int]:
    rows = state.ledger.rows
    if signal is not None:
        rows = rows[rows["signal"] == signal]

    def count(inside: npt.NDArray[np.bool_]) -> int:
        return int(np.unique(rows["report"][inside[rows["region"]]]).size)

    return count


def _rate(
    count: Callable[[npt.NDArray[np.bool_]], int],
    exposure: npt.NDArray[np.float64],
    inside: npt.NDArray[np.bool_],
) -> Values:
    """Events per exposure, with the exact interval of a Poisson count."""
    here, there = float(exposure[inside].sum()), float(exposure[~inside].sum())
    n = count(inside)
    tail = (1 - LEVEL) / 2
    low = float(chi2.ppf(tail, 2 * n) / 2) if n else 0.0
    high = float(chi2.ppf(1 - tail, 2 * n + 2) / 2)
    if here <= 0:
        return _compared(float("nan"), (float("nan"), float("nan")), float("nan"))
    others = count(~inside) / there if there > 0 else float("nan")
    return _compared(n / here, (low / here, high / here), others)


def _rolled_back(state: State, inside: npt.NDArray[np.bool_], signal: int) -> Values:
    rows = state.ledger.rows
    mine = rows[rows["signal"] == signal]

    def counts(members: npt.NDArray[np.bool_]) -> tuple[int, int]:
        part = mine[members[mine["region"]]]
        back = np.unique(part["report"][part["rolled_back"]]).size
        return int(back), int(np.unique(part["report"]).size)

    (k, n), (others, all_others) = counts(inside), counts(~inside)
    rest = others / all_others if all_others else float("nan")
    return _compared(k / n if n else float("nan"), _wilson(k, n), rest)


def _wilson(k: int, n: int) -> Interval:
    """Wilson's interval of a share."""
    if n == 0:
        return float("nan"), float("nan")
    z = float(norm.ppf(1 - (1 - LEVEL) / 2))
    centre = (k + z * z / 2) / (n + z * z)
    half = z * sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return max(0.0, centre - half), min(1.0, centre + half)


def _compared(rate: float, interval: Interval, rest: float) -> Values:
    """A rate beside that of the rest; what is undefined is None."""
    low, high = interval
    differs = bool(rest < low or rest > high)  # False where any of them is NaN
    return {
        "rate": _known(rate), "low": _known(low), "high": _known(high), "rest": _known(rest),
        "differs": differs,
    }  # fmt: skip


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
