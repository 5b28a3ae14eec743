"""Claims of the paper beside our numbers, and the rules that say when a claim holds.

All studies share these rules. They are the same to either side of the paper's number, they were
fixed before the results that they judge, and an undefined number never holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rapo.paper.paper import TABLE1
from rapo.rsd.statistics import mean_interval

HOLDS, DIFFERS = "holds", "differs"
PREDICTED, CALIBRATED, CONSTRUCTED = "predicted", "calibrated", "by construction"
KINDS = (PREDICTED, CALIBRATED, CONSTRUCTED)
"""Kinds of claims: nothing was fitted to a predicted number; the calibration aimed at a calibrated
one, on other graphs; a theorem or the way of measuring gives one that holds by construction. A
claim with several parts has the kind that proves least."""

STDS = 2.0
"""How many of the paper's stds a number that is printed with a std may be away."""
FIFTH = 0.2
"""Share that a number without a std may be away if Table 1 lacks its metric: about the relative std
of RAPO's ratios there (.24, .19, .19)."""
CORRELATION = 0.1
"""How far a correlation may be away. A correlation is bounded, so a share of it would pass too
much: 0.7 instead of 0.87 explains half of the variance instead of three quarters."""
FULL = 0.15
"""A ratio of Replay to Exposure within this of 1 is full replay."""
EQUAL = 0.01
"""Share of a return by which a policy that is as good as another one may fall short."""
_SLACK = 1e-9
"""Allowance for numbers that lie on a limit but for the last bit."""


@dataclass(frozen=True)
class Claim:
    """One statement or number of the paper beside ours."""

    name: str
    """Where the paper says it: R1, Table 1, ..."""
    statement: str
    paper: str
    """The paper's number or words."""
    ours: str
    """Our number, with an interval."""
    verdict: str
    """`holds` or `differs`."""
    why: str
    """The reason in one line."""
    kind: str
    """One of `KINDS`."""


def judge(
    name: str,
    statement: str,
    paper: str,
    ours: str,
    holds: bool,
    kind: str,
    why: str,
    otherwise: str | None = None,
) -> Claim:
    """State a claim with its verdict; `holds` comes from a rule of this module.

    `why` is the reason of a claim that holds. It is also the reason of one that differs, unless
    `otherwise` gives that reason.
    """
    reason = why if holds or otherwise is None else otherwise
    return Claim(name, statement, paper, ours, verdict(holds), reason, kind)


def verdict(holds: bool) -> str:
    """`holds` or `differs`."""
    return HOLDS if holds else DIFFERS


def near(ours: float, paper: float, allowed: float) -> bool:
    """Whether two numbers are at most `allowed` apart."""
    return bool(abs(ours - paper) <= allowed + _SLACK)


def within_stds(ours: float, paper: float, std: float) -> bool:
    """Whether a number is at most two of the paper's stds away.

    >>> within_stds(0.49, 0.33, 0.08), within_stds(0.50, 0.33, 0.08), within_stds(0.16, 0.33, 0.08)
    (True, False, False)
    """
    return near(ours, paper, STDS * std)


def side(ratio: float) -> str:
    """Name a mean ratio of Replay to Exposure: `suppressed`, `full` or `amplified` replay.

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
    """Whether a cell of Table 1 is within two stds, and a ratio on the paper's side of full replay.

    Without the second condition a Shield that replays in full would pass for the paper's Shield,
    which suppresses replay: two of its stds reach beyond 1.
    """
    paper, std = TABLE1[method][metric]
    return within_stds(ours, paper, std) and (
        metric == "ReplayRet" or side(ours) == side(round(paper, 2))
    )


def allowance(paper: float, metric: str = "") -> float:
    """How far a number that is printed without a std may be away.

    It is one std of the same metric in RAPO's row of Table 1, and a fifth of the number if the
    table lacks the metric.

    >>> allowance(0.38, "RAG"), allowance(16.9, "R_c")
    (0.08, 3.38)
    """
    return TABLE1["RAPO"][metric][1] if metric in TABLE1["RAPO"] else FIFTH * abs(paper)


def bare(ours: float, paper: float, metric: str = "") -> bool:
    """Whether a number is close enough to one that the paper prints without a std.

    >>> bare(0.46, 0.38, "RAG"), bare(0.51, 0.38, "RAG"), bare(0.29, 0.38, "RAG")
    (True, False, False)
    """
    return near(ours, paper, allowance(paper, metric))


def in_range(ours: float, ends: tuple[float, float], digits: int = 2) -> bool:
    """Whether our number, rounded to the digits of the range's ends, lies in the paper's range.

    >>> in_range(0.834, (0.67, 0.83)), in_range(0.836, (0.67, 0.83)), in_range(0.66, (0.67, 0.83))
    (True, False, False)
    """
    return bool(ends[0] <= round(ours, digits) <= ends[1])


def correlates(ours: float, paper: float) -> bool:
    """Whether a correlation is close enough to the paper's."""
    return near(ours, paper, CORRELATION)


def above(middle: float, low: float, floor: float = 0.0) -> bool:
    """Whether a whole interval lies above a floor; without an interval its middle counts.

    >>> above(0.2, 0.1), above(0.2, -0.1), above(0.2, float("nan"))
    (True, False, True)
    """
    return bool((middle if low != low else low) > floor)


def below(middle: float, high: float, ceiling: float = 0.0) -> bool:
    """Whether a whole interval lies below a ceiling; without an interval its middle counts."""
    return above(-middle, -high, -ceiling)


def mean_above(values: npt.ArrayLike, floor: float = 0.0) -> bool:
    """Whether the 95% interval of the mean of `values`, one per graph, lies above a floor."""
    interval = mean_interval(np.asarray(values, float))
    return above(interval.mean, interval.low, floor)


def as_good(gap: float, low: float) -> bool:
    """Whether the interval of a relative difference of returns lies above -`EQUAL`."""
    return above(gap, low, -EQUAL)
