"""The paper's numbers, each with the rule that judges it, measured under one reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rapo.cascade.setting import EXPOSURE
from rapo.paper.paper import (
    ACTIVITY_KEPT,
    CONTAINMENT,
    METRICS,
    ODDS_RAG_CORRELATION,
    ODDS_RATIO,
    SLOW_DECAY_RAG,
    TABLE1,
)
from rapo.paper.results import Results
from rapo.paper.studies.consistency.plan import FIXED, METHODS, TWIN, evaluations
from rapo.paper.studies.graph_means import PARTS, TITLES
from rapo.paper.studies.learning.plan import DEFORMED
from rapo.paper.studies.table1.analysis import against_twin
from rapo.paper.studies.verdicts import bare, cell, correlates, in_range
from rapo.rsd.statistics import by_unit, correlation


@dataclass(frozen=True)
class Number:
    """One number of the paper."""

    name: str
    """Column of what was measured."""
    title: str
    paper: str
    """The number as the paper prints it; empty of a number that is ours alone."""
    holds: Callable[[float], bool] = lambda value: False
    """Whether a value of ours counts as the paper's, by the rules of `verdicts`; NaN never does."""


def _cell(method: str, metric: str, name: str) -> Number:
    mean, std = TABLE1[method][metric]
    title = f"{method} {TITLES[metric]}"
    return Number(name, title, f"{mean:.2f} ± {std:.2f}", lambda v: cell(v, method, metric))


def _bare(value: float, name: str, title: str, metric: str = "", digits: int = 2) -> Number:
    return Number(name, title, f"{value:.{digits}f}", lambda v: bare(v, value, metric))


def _range(ends: tuple[float, float], name: str, title: str) -> Number:
    return Number(name, title, f"{ends[0]:.2f} to {ends[1]:.2f}", lambda v: in_range(v, ends))


PRINTED = (
    *(_cell("RAPO", metric, metric) for metric in METRICS),
    *(_cell("off@rep", metric, f"off_{metric}") for metric in METRICS),
    _cell("PM-ST", "ReplayRet", "PM-ST_ReplayRet"),
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
"""Numbers that the paper prints; off@rep's ratios are against RAPO's own Exposure."""
OURS = (
    *(Number(f"twin_{m}", f"off@rep {TITLES[m]} against a P0 twin's Exposure", "") for m in PARTS),
    *(Number(f"pooled_{m}", f"off@rep {TITLES[m]}, ratio of means", "") for m in PARTS),
    *(
        Number(f"fixed_{m}", f"off@rep {TITLES[m]} of the constant aggressive action", "")
        for m in PARTS
    ),
    Number("gain", "RAPO's return over the best constant's, less 1", ""),
    Number("ASD", "action shift of RAPO", ""),
    Number("alive", "reach late in Exposure over GE's", ""),
)
"""Numbers that the paper does not print."""
NUMBERS = (*PRINTED, *OURS)


def measured(results: Results) -> pd.DataFrame:
    """Measure every number under one reading: a row per graph, a column per number.

    The preset of `results` is that of `plan.under`.
    """
    rows, base = evaluations(results.preset), results.base_return()
    frames = {name: results.episodes(row) for name, row in rows.items()}
    ge, control, rapo, off, slow = (frames[name] for name in METHODS)

    def returns(frame: pd.DataFrame) -> pd.Series[float]:
        return by_unit(frame, "ReplayReturn") / base

    def share(part: pd.Series[float], whole: pd.Series[float]) -> pd.Series[float]:
        return part / whole.where(whole > 0)

    def kept(name: str) -> pd.Series[float]:
        return share(by_unit(_outside(rapo), name), by_unit(_outside(ge), name))

    twin = against_twin(pd.concat([off, frames[TWIN]]))
    best = pd.DataFrame({name: returns(frames[name]) for name in DEFORMED}).max(axis=1)
    late_rapo, late_ge = (_late_reach(results, rows[name]) for name in ("RAPO", "GE"))
    radius = by_unit(control, "R_c")
    columns: dict[str, Any] = {m: by_unit(rapo, m) for m in (*PARTS, "OddsRatio", "ASD")}
    for metric, part in PARTS.items():
        columns[f"off_{metric}"] = by_unit(off, metric)
        columns[f"twin_{metric}"] = by_unit(twin, metric)
        columns[f"fixed_{metric}"] = by_unit(frames[FIXED], metric)
        columns[f"pooled_{metric}"] = share(
            by_unit(off, f"{part}_replay"), by_unit(off, f"{part}_exposure")
        )
    columns |= {
        "ReplayRet": returns(rapo),
        "off_ReplayRet": returns(off),
        "PM-ST_ReplayRet": returns(control),
        "gain": returns(rapo) / best - 1,
        "slow_RAG": by_unit(slow, "RAG"),
        "R_c_P0": radius,
        "R_c_kept": share(by_unit(rapo, "R_c"), radius),
        "served": kept("served_replay"),
        "outside": kept("outside_replay"),
        "correlation": pd.Series(
            {
                seed: correlation(part["OddsRatio"], part["RAG"]).r
                for seed, part in rapo.groupby("graph_seed")
            }
        ),
        "alive": share(late_rapo, late_ge),
    }
    return pd.DataFrame(columns)[[number.name for number in NUMBERS]]


def _outside(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(outside_replay=frame["reach_replay"] - frame["inside_replay"])


def _late_reach(results: Results, row: Any) -> pd.Series[float]:
    """Mean reach in the second half of Exposure, by graph."""
    curves, end = results.curves(row), results.preset.setting.horizons[EXPOSURE]
    late = (curves["step"] >= end / 2) & (curves["step"] < end)
    return curves[late].groupby("graph_seed")["reach"].mean()
