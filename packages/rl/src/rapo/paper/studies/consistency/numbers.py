"""The paper's numbers as columns, each with the rule that judges it: one list for all tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rapo.paper.paper import (
    ACTIVITY_KEPT,
    CONTAINMENT,
    ODDS_RAG_CORRELATION,
    ODDS_RATIO,
    SLOW_DECAY_RAG,
    TABLE1,
)
from rapo.paper.studies.verdicts import bare, cell, correlates, in_range

TITLES = {"RAG": "RAG", "AUC_R": "AUC-R", "SM_R": "SM-R", "ReplayRet": "ReplayRet"}


@dataclass(frozen=True)
class Number:
    """One number of the paper."""

    name: str
    """Column in what was screened or trained."""
    title: str
    paper: str
    """As printed."""
    holds: Callable[[float], bool]
    """Whether a value of ours counts as it, by the rules of `verdicts`; NaN never does."""


def _cell(method: str, metric: str, name: str, title: str) -> Number:
    mean, std = TABLE1[method][metric]
    return Number(name, title, f"{mean:.2f} ± {std:.2f}", lambda v: cell(v, method, metric))


def _bare(value: float, name: str, title: str, metric: str = "", digits: int = 2) -> Number:
    return Number(name, title, f"{value:.{digits}f}", lambda v: bare(v, value, metric))


def _range(ends: tuple[float, float], name: str, title: str) -> Number:
    return Number(name, title, f"{ends[0]:.2f} to {ends[1]:.2f}", lambda v: in_range(v, ends))


ROW = tuple(_cell("RAPO", m, m, f"RAPO {TITLES[m]}") for m in TITLES)
"""RAPO's row of Table 1."""
OFF = tuple(
    _cell("off@rep", m, f"off_{m}", f"off@rep {TITLES[m]}") for m in ("RAG", "AUC_R", "SM_R")
)
"""off@rep's ratios, against RAPO's own Exposure as the paper defines them."""
SCREENED = (
    *ROW,
    *OFF,
    _bare(ODDS_RATIO, "OddsRatio", "OddsRatio"),
    _bare(SLOW_DECAY_RAG, "slow_RAG", "slow decay RAG", "RAG"),
    _bare(CONTAINMENT[0], "R_c_P0", "R_c under P0", digits=1),
    _bare(CONTAINMENT[1] / CONTAINMENT[0], "R_c_kept", "R_c kept"),
    _range(ACTIVITY_KEPT, "served", "served kept"),
    _range(ACTIVITY_KEPT, "outside", "outside kept"),
    Number(
        "correlation",
        "OddsRatio-RAG correlation",
        f"{ODDS_RAG_CORRELATION:.2f}",
        lambda v: correlates(v, ODDS_RAG_CORRELATION),
    ),
)
"""Those that a line of a screening log holds."""
TRAINED = (
    *SCREENED,
    _cell("off@rep", "ReplayRet", "off_ReplayRet", "off@rep ReplayRet"),
    _cell("PM-ST", "ReplayRet", "PM-ST_ReplayRet", "PM-ST ReplayRet"),
)
"""Those that trained policies tell."""
