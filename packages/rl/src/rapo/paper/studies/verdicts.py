"""When a claim holds: one set of rules for all studies, the same to either side.

Fixed before the results they judge. An undefined number never holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapo.paper.paper import TABLE1

HOLDS, DIFFERS = "holds", "differs"
PREDICTED, CALIBRATED, CONSTRUCTED = "predicted", "calibrated", "by construction"
KINDS = (PREDICTED, CALIBRATED, CONSTRUCTED)
"""Nothing aimed at it; the calibration did, on other graphs; a theorem or the way it is made gives
it. Of a claim with several parts, the kind that says least."""

STDS = 2.0
"""Stds of the paper that a number printed with one may be away."""
FIFTH = 0.2
"""Share that a number without a std may be away if Table 1 lacks its metric: about the relative std
of RAPO's ratios there (.24, .19, .19)."""
CORRELATION = 0.1
"""What a correlation may be away. It is bounded, so a share of it would pass too much: 0.7 instead
of 0.87 explains half of the variance instead of three quarters."""
FULL = 0.15
"""A ratio of Replay to Exposure within this of 1 is full replay."""
EQUAL = 0.01
"""Share of a return by which something as good as something else may fall short."""
_SLACK = 1e-9
"""For numbers that lie on a limit but for the last bit."""


def verdict(holds: bool) -> str:
    """The word for it."""
    return HOLDS if holds else DIFFERS


def near(ours: float, paper: float, allowed: float) -> bool:
    """Whether two numbers are at most `allowed` apart."""
    return bool(abs(ours - paper) <= allowed + _SLACK)


def within_stds(ours: float, paper: float, std: float) -> bool:
    """A number printed with a std: at most two of them away.

    >>> within_stds(0.49, 0.33, 0.08), within_stds(0.50, 0.33, 0.08), within_stds(0.16, 0.33, 0.08)
    (True, False, False)
    """
    return near(ours, paper, STDS * std)


def side(ratio: float) -> str:
    """`suppressed`, `full` or `amplified` replay, of a mean ratio of Replay to Exposure.

    >>> side(0.78), side(1.02), side(1.3)
    ('suppressed', 'full', 'amplified')
    """
    if near(ratio, 1.0, FULL):
        return "full"
    return "suppressed" if ratio < 1 else "amplified" if ratio > 1 else "undefined"


def full_replay(ratios: Sequence[float]) -> bool:
    """Whether every ratio is within `FULL` of 1."""
    return all(side(ratio) == "full" for ratio in ratios)


def cell(ours: float, method: str, metric: str) -> bool:
    """A cell of Table 1: within two stds, and a ratio on the paper's side of full replay.

    Without the second condition a Shield that replays in full would pass for the paper's that
    suppresses, as two of its stds reach beyond 1.
    """
    paper, std = TABLE1[method][metric]
    return within_stds(ours, paper, std) and (
        metric == "ReplayRet" or side(ours) == side(round(paper, 2))
    )


def allowance(paper: float, metric: str = "") -> float:
    """What a number printed without a std may be away.

    One std of the same metric in RAPO's row of Table 1; a fifth of the number if the table lacks
    the metric.

    >>> allowance(0.38, "RAG"), allowance(16.9, "R_c")
    (0.08, 3.38)
    """
    return TABLE1["RAPO"][metric][1] if metric in TABLE1["RAPO"] else FIFTH * abs(paper)


def bare(ours: float, paper: float, metric: str = "") -> bool:
    """A number printed without a std.

    >>> bare(0.46, 0.38, "RAG"), bare(0.51, 0.38, "RAG"), bare(0.29, 0.38, "RAG")
    (True, False, False)
    """
    return near(ours, paper, allowance(paper, metric))


def in_range(ours: float, ends: tuple[float, float], digits: int = 2) -> bool:
    """A printed range: ours, rounded to the digits of its ends, lies in it.

    >>> in_range(0.834, (0.67, 0.83)), in_range(0.836, (0.67, 0.83)), in_range(0.66, (0.67, 0.83))
    (True, False, False)
    """
    return bool(ends[0] <= round(ours, digits) <= ends[1])


def correlates(ours: float, paper: float) -> bool:
    """A printed correlation."""
    return near(ours, paper, CORRELATION)


def above(middle: float, low: float, floor: float = 0.0) -> bool:
    """A direction: the lower end of the interval over graphs, of one graph the value itself.

    >>> above(0.2, 0.1), above(0.2, -0.1), above(0.2, float("nan"))
    (True, False, True)
    """
    return bool((middle if low != low else low) > floor)


def below(middle: float, high: float, ceiling: float = 0.0) -> bool:
    """The other direction: the upper end of the interval."""
    return above(-middle, -high, -ceiling)


def as_good(gap: float, low: float) -> bool:
    """Whether a relative difference of returns is surely no worse than -`EQUAL`."""
    return above(gap, low, -EQUAL)
