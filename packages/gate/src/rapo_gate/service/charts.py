"""Coordinates of the page's charts, computed from numbers; the templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

from rapo_gate.format import clock, number, span

LEFT, RIGHT, TOP, BOTTOM = 44.0, 10.0, 8.0, 20.0
"""Margins of a chart around its plot, in SVG units."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a chart: its points joined by lines."""

    name: str
    path: str
    last: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart over time."""

    title: str
    width: float
    height: float
    lines: list[Line]
    y_ticks: list[tuple[float, str]]
    x_ticks: list[tuple[float, str, str]]
    """Position, text, and which end of the text is at the position."""
    summary: str
    """The chart in words, for readers who cannot see it."""
    data: dict[str, Any]
    """Values by position, which the script shows under the pointer."""

    @property
    def plot(self) -> tuple[float, float, float, float]:
        """Left, right, top and bottom of the plot."""
        return LEFT, self.width - RIGHT, TOP, self.height - BOTTOM


def over_time(
    title: str,
    at: Sequence[float],
    series: Mapping[str, Sequence[float]],
    width: float = 400,
    height: float = 150,
) -> Chart | None:
    """A chart of series over Unix seconds, from zero up; None for fewer than two points."""
    if len(at) < 2:
        return None
    top = max((v for values in series.values() for v in values), default=0.0)
    marks = nice(top)
    x0, x1, y0, y1 = LEFT, width - RIGHT, TOP, height - BOTTOM
    first, length = at[0], (at[-1] - at[0]) or 1.0
    xs = [x0 + (t - first) / length * (x1 - x0) for t in at]

    def y(value: float) -> float:
        return y1 - value / marks[-1] * (y1 - y0)

    lines = []
    for name, values in series.items():
        ys = [y(v) for v in values]
        lines.append(Line(name, path(xs, ys), (xs[-1], ys[-1])))
    figures = "; ".join(
        f"{name}: now {number(values[-1])}, least {number(min(values))}, most {number(max(values))}"
        for name, values in series.items()
    )
    ends = [(x0, clock(first), "start"), (x1, clock(at[-1]), "end")]
    return Chart(
        title, width, height, lines, [(y(m), number(m)) for m in marks], ends,
        f"{title} over {span(at[-1] - first)}. {figures}.",
        {
            "at": [clock(t) for t in at], "x": [round(x, 1) for x in xs],
            "series": {name: [number(v) for v in values] for name, values in series.items()},
        },
    )  # fmt: skip


def spark(values: Sequence[float], width: float = 96, height: float = 22) -> str:
    """The path of a small curve from zero up; empty if all values are zero."""
    if len(values) < 2 or not any(values):
        return ""
    top, step = max(values), (width - 2) / (len(values) - 1)
    xs = [1 + i * step for i in range(len(values))]
    return path(xs, [height - 1 - v / top * (height - 2) for v in values])


def path(xs: Sequence[float], ys: Sequence[float]) -> str:
    """Points joined by lines, as the `d` of an SVG path."""
    pairs = " L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    return f"M{pairs}"


def nice(top: float) -> list[float]:
    """Round numbers from 0 to at least `top`, three to five of them.

    >>> nice(0.83), nice(7), nice(0)
    ([0.0, 0.5, 1.0], [0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 1.0])
    """
    if not (isfinite(top) and top > 0):
        return [0.0, 1.0]
    power = 10.0 ** floor(log10(top / 2))
    step = next(m * power for m in (1, 2, 5, 10) if top / (m * power) <= 4)
    return [round(i * step, 12) for i in range(ceil(top / step - 1e-9) + 1)]


def histogram(edges: Sequence[float], counts: Sequence[int]) -> list[tuple[str, int, float]]:
    """Text, count and length in percent of the longest bar, of bins with these lower ends."""
    longest = max(counts, default=0) or 1
    texts = [
        f"{number(low)} to {number(edges[i + 1])}" if i + 1 < len(edges) else f"over {number(low)}"
        for i, low in enumerate(edges)
    ]
    return [(t, n, round(100 * n / longest, 1)) for t, n in zip(texts, counts, strict=True)]


@dataclass(frozen=True, slots=True)
class Whisker:
    """A rate with its interval and the rate of the rest, as positions on a scale."""

    rate: float
    low: float | None
    high: float | None
    rest: float | None
    zero: float


def whiskers(rates: Sequence[Mapping[str, Any]], width: float = 180) -> list[Whisker | None]:
    """Rates of `rapo_gate.bias` on one scale that shows zero; None where a rate is undefined."""
    values = [r[k] for r in rates for k in ("rate", "low", "high", "rest") if r[k] is not None]
    low, high = min([0.0, *values]), max([0.0, *values])
    size = (high - low) or 1.0

    def position(value: float | None) -> float | None:
        return None if value is None else round(6 + (value - low) / size * (width - 12), 1)

    zero = position(0.0) or 6.0
    return [
        None
        if (rate := position(r["rate"])) is None
        else Whisker(rate, position(r["low"]), position(r["high"]), position(r["rest"]), zero)
        for r in rates
    ]
