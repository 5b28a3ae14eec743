"""Bias audit: which groups are gated and reported, and whether harm signals treat them alike."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtri

from rapo_gate.fold.state import State

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
        `differs` is true where the interval does not contain the rate of the rest.
    """
    return {kind: _by(state, kind) for kind in ("group", "topic")}


def _by(state: State, kind: str) -> list[Values]:
    count = len(state.regions)
    labels = {r: label[kind] for r, label in state.labels.items() if kind in label}
    unlabelled = [UNLABELLED] if len(labels) < count else []
    names = sorted({*labels.values(), *unlabelled})
    number = {name: i for i, name in enumerate(names)}
    code = np.full(count, number.get(UNLABELLED, 0))
    code[list(labels)] = [number[name] for name in labels.values()]
    table, gating = _Table(state, code, len(names)), _gating(state, code, len(names))
    entries = []
    for i, label in enumerate(names):
        entries.append({
            "label": label,
            "regions": int(table.regions[i]),
            "exposure": float(table.exposure[i]),
            "gating_rate": gating[i],
            "report_rate": table.rate(i, slice(None)),
            "signals": [
                {"signal": name, "report_rate": table.rate(i, slice(s, s + 1)),
                 "rolled_back": table.rolled_back(i, s)}
                for s, name in enumerate(state.signals.names)
            ],
        })  # fmt: skip
    return entries


class _Table:
    """Reports by label and signal. A report on regions of several labels is one of each of them.

    Args:
        state: the state of the gate.
        code: number of each region's label, (regions,).
        labels: number of labels.
    """

    def __init__(self, state: State, code: npt.NDArray[np.int64], labels: int) -> None:
        count, signals = code.size, len(state.signals)
        rows = state.ledger.rows
        # The rows of a report lie together.
        report = np.cumsum(np.diff(rows["report"], prepend=-1) != 0) - 1
        key = report * labels + code[rows["region"]]
        order = np.argsort(key, kind="stable")  # fast, since the keys are nearly in order
        at = order[np.diff(key[order], prepend=-1) != 0]
        rows, label, report = rows[at], key[at] % labels, report[at]
        alone = np.bincount(report)[report] == 1
        cell = label * signals + rows["signal"]

        def table(counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
            return np.bincount(cell[counted], minlength=labels * signals).reshape(labels, signals)

        every, back = np.ones(rows.size, np.bool_), rows["rolled_back"]
        first = np.diff(report, prepend=-1) != 0
        self._here, self._back_here = table(every), table(back)
        # A report is one of the rest unless all of its regions have this label.
        self._rest = table(first).sum(0) - table(alone)
        self._back_rest = table(first & back).sum(0) - table(alone & back)
        self.exposure = np.bincount(code, state.traffic.served[:count], labels)
        self.regions = np.bincount(code, minlength=labels)

    def rate(self, label: int, signals: slice) -> Values:
        """Reports per exposure, with the exact interval of a Poisson count."""
        here = float(self.exposure[label])
        there = float(self.exposure.sum() - here)
        n, rest = (int(t[label, signals].sum()) for t in (self._here, self._rest))
        if here <= 0:
            return _compared(float("nan"), (float("nan"), float("nan")), float("nan"))
        tail = (1 - LEVEL) / 2
        # The bounds of a Poisson mean are quantiles of gamma distributions.
        low = float(gammaincinv(n, tail)) if n else 0.0
        high = float(gammaincinv(n + 1, 1 - tail))
        others = rest / there if there > 0 else float("nan")
        return _compared(n / here, (low / here, high / here), others)

    def rolled_back(self, label: int, signal: int) -> Values:
        """The share of reports that was rolled back."""
        k, n = int(self._back_here[label, signal]), int(self._here[label, signal])
        others, all_others = self._back_rest[label, signal], self._rest[label, signal]
        rest = float(others / all_others) if all_others else float("nan")
        return _compared(k / n if n else float("nan"), _wilson(k, n), rest)


def _gating(state: State, code: npt.NDArray[np.int64], labels: int) -> list[Values]:
    """Gating rate of each label, with the linearised standard error of a ratio of sums."""
    proposed, gated = state.traffic.proposed[: code.size], state.traffic.gated[: code.size]
    before, after = np.bincount(code, proposed, labels), np.bincount(code, gated, labels)
    size = np.bincount(code, minlength=labels)
    kept = np.divide(after, before, out=np.full(labels, np.nan), where=before > 0)
    spread = np.bincount(code, (gated - kept[code] * proposed) ** 2, labels)
    half = float(ndtri(1 - (1 - LEVEL) / 2))
    rates = []
    for i in range(labels):
        error = sqrt(spread[i] * size[i] / (size[i] - 1)) / before[i] if size[i] > 1 else np.nan
        others = float(np.delete(before, i).sum())
        rest = 1 - float(np.delete(after, i).sum()) / others if others > 0 else np.nan
        rate = float(1 - kept[i])
        rates.append(_compared(rate, (rate - half * error, rate + half * error), rest))
    return rates


def _wilson(k: int, n: int) -> Interval:
    """Wilson's interval of a share."""
    if n == 0:
        return float("nan"), float("nan")
    z = float(ndtri(1 - (1 - LEVEL) / 2))
    centre = (k + z * z / 2) / (n + z * z)
    half = z * sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return max(0.0, centre - half), min(1.0, centre + half)


def _compared(rate: float, interval: Interval, rest: float) -> Values:
    """A rate beside the rate of the rest; None stands for what is undefined."""
    low, high = interval
    differs = bool(rest < low or rest > high)  # False where any of them is NaN
    values = {"rate": rate, "low": low, "high": high, "rest": rest}
    return {**{k: None if np.isnan(v) else v for k, v in values.items()}, "differs": differs}
