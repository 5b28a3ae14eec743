"""Judge what the paper says of w_H, of dominance, of OddsRatio and of PM-ST."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rapo.paper.paper import DIMINISHING_W_H, ODDS_RAG_CORRELATION, TABLE1
from rapo.paper.studies.graph_means import mean_of, with_interval
from rapo.paper.studies.tradeoff.plan import DEFAULT, Groups, Means, Point
from rapo.paper.studies.verdicts import (
    CALIBRATED,
    PREDICTED,
    Claim,
    correlates,
    full_replay,
    judge,
    mean_above,
    within_stds,
)
from rapo.rsd.statistics import correlation, mean_interval


def along_w_H(points: Sequence[Point], means: Means, metric: str) -> pd.DataFrame:
    """Collect graph means by w_H (index) and graph (columns) at the default eta."""
    table = {p.params.w_H: means[p.tasks][metric] for p in points if p.params.eta == DEFAULT.eta}
    return pd.DataFrame(table).T.sort_index()


def slopes(curve: pd.DataFrame) -> tuple[float, pd.Series, pd.Series] | None:
    """Measure how fast a curve falls below and above the w_H nearest to the paper's knee.

    Returns:
        That w_H, and the fall per unit of w_H below it and above it, by graph; None when the knee
        is an end of the curve.
    """
    w = curve.index.to_numpy(float)
    knee = int(np.argmin(np.abs(w - DIMINISHING_W_H)))
    if knee in (0, len(w) - 1):
        return None
    below = (curve.iloc[0] - curve.iloc[knee]) / (w[knee] - w[0])
    above = (curve.iloc[knee] - curve.iloc[-1]) / (w[-1] - w[knee])
    return float(w[knee]), below, above


def bend(curve: pd.DataFrame) -> str:
    """Say where the mean of a curve falls half as fast as at first.

    `slopes` looks at the knee of the paper, which need not be that of our curve.
    """
    w = curve.index.to_numpy(float)
    steps = -np.diff(curve.mean(axis=1).to_numpy()) / np.diff(w)
    if not steps[0] > 0:
        return f"no fall between {w[0]:g} and {w[1]:g}"
    flat = np.flatnonzero(steps < steps[0] / 2)
    first = f"half of the first slope ({w[0]:g} to {w[1]:g})"
    if not len(flat):
        return f"the slope never falls under {first}"
    return f"the slope first falls under {first} between {w[flat[0]]:g} and {w[flat[0] + 1]:g}"


def tradeoff_claims(groups: Groups, means: Means) -> list[Claim]:
    """Judge what the paper says of w_H, of dominance, of OddsRatio with RAG, and of PM-ST."""
    return [
        *_w_H_claims(groups["RAPO"], means),
        *_dominance_claim(groups, means),
        *_odds_claim([*groups["RAPO"], *groups["tau"]], means),
        *_control_claim(groups["baselines"], means),
    ]


def _w_H_claims(points: Sequence[Point], means: Means) -> list[Claim]:
    """Judge the price and the effect of w_H on either side of the paper's knee, graph by graph."""
    curve = along_w_H(points, means, "RAG")
    rag, kept = slopes(curve), slopes(along_w_H(points, means, "ReplayRet"))
    if rag is None or kept is None:
        return []
    knee, gained, gained_above = rag
    _, lost, lost_above = kept
    flatter, excess = gained - gained_above, lost_above - gained_above
    spread = mean_interval(excess)
    undecided = "not decided: the interval covers 0; " if spread.low <= 0 <= spread.high else ""
    return [
        judge(
            "Trade-off",
            "A larger w_H reduces RAG, with diminishing returns",
            f"diminishing beyond w_H ≈ {DIMINISHING_W_H}",
            f"RAG falls by {with_interval(gained, 3)} a unit of w_H below {knee:g}, by "
            f"{with_interval(gained_above, 3)} above, {with_interval(flatter, 3)} less",
            mean_above(gained) and mean_above(flatter),
            PREDICTED,
            f"from {curve.index[0]:g} to {curve.index[-1]:g} at eta {DEFAULT.eta:g}; {bend(curve)}",
        ),
        judge(
            "Trade-off",
            f"Beyond w_H ≈ {DIMINISHING_W_H} utility losses dominate",
            "more return lost than RAG gained",
            f"above {knee:g} a unit of w_H costs {with_interval(lost_above, 3)} ReplayRet and "
            f"takes {with_interval(gained_above, 3)} off RAG; lost less gained "
            f"{with_interval(excess, 3)}",
            mean_above(excess),
            PREDICTED,
            f"{undecided}below {knee:g} it costs {with_interval(lost, 3)} and takes "
            f"{with_interval(gained, 3)}",
        ),
    ]


def _dominance_claim(groups: Groups, means: Means) -> list[Claim]:
    """Judge whether some method without deformation beats a point of RAPO in RAG and return."""

    def centre(p: Point) -> tuple[float, float]:
        return mean_of(means[p.tasks]["RAG"]), mean_of(means[p.tasks]["ReplayRet"])

    ours = {p.name: centre(p) for p in groups["RAPO"]}
    others = {p.name: centre(p) for p in groups["baselines"]}
    others |= {f"Shield {p.name}": centre(p) for p in groups["Shield"]}
    if not others:
        return []
    beaten = {
        point: name
        for point, (rag, kept) in ours.items()
        for name, (r, k) in others.items()
        if r <= rag and k >= kept
    }
    lowest = min(others, key=lambda name: np.nan_to_num(others[name][0], nan=np.inf))
    return [
        judge(
            "Trade-off",
            "RAPO's curve is better than stationary methods and shields",
            "Pareto-like curve",
            f"{len(ours) - len(beaten)} of {len(ours)} points of RAPO are beaten by none in RAG "
            "and ReplayRet at once",
            not beaten,
            PREDICTED,
            f"the lowest RAG without deformation is {lowest}'s {others[lowest][0]:.2f}",
            "; ".join(f"{name} beats {point}" for point, name in list(beaten.items())[:3]),
        )
    ]


def _odds_claim(points: Sequence[Point], means: Means) -> list[Claim]:
    """Judge how OddsRatio goes with RAG between the constants, and what is left within them.

    A graph comes back under every choice of constants, so graph means of all choices are no
    independent points.
    """
    runs = {point.tasks: means[point.tasks][["OddsRatio", "RAG"]].dropna() for point in points}
    centres = pd.DataFrame([run.mean() for run in runs.values()])
    rest = pd.concat([run - run.mean() for run in runs.values()])
    across = correlation(centres["OddsRatio"].to_numpy(), centres["RAG"].to_numpy())
    within = correlation(rest["OddsRatio"].to_numpy(), rest["RAG"].to_numpy())
    if np.isnan(across.r):
        return []
    left = "nothing can be said" if np.isnan(within.r) else f"r = {within.r:.2f} is left"
    return [
        judge(
            "Odds contraction",
            "OddsRatio goes with RAG across the constants of the sweeps",
            f"{ODDS_RAG_CORRELATION:.2f}, p < 1e-5",
            f"{across.r:.2f} over the means of n = {across.n} choices of w_H, eta and tau",
            correlates(across.r, ODDS_RAG_CORRELATION),
            CALIBRATED,
            f"not the number within one setting: with each choice's mean taken off, {left} over "
            "graphs",
        )
    ]


def _control_claim(points: Sequence[Point], means: Means) -> list[Claim]:
    paper = TABLE1["PM-ST"]
    return [
        judge(
            "Trade-off",
            "PM-ST keeps the return and suppresses nothing",
            f"RAG {paper['RAG'][0]:.2f} at ReplayRet {paper['ReplayRet'][0]:.2f}",
            f"RAG {with_interval(values['RAG'])} at ReplayRet {with_interval(values['ReplayRet'])}",
            full_replay([mean_of(values["RAG"])])
            and within_stds(mean_of(values["ReplayRet"]), *paper["ReplayRet"]),
            CALIBRATED,
            "RAG within 0.15 of 1 and ReplayRet within two of the paper's stds",
        )
        for values in (means[p.tasks] for p in points if p.name == "PM-ST")
    ]
