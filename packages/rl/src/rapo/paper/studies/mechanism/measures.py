"""Measures of mechanism from the evaluations of Table 1: pure functions of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.cascade.setting import EXPOSURE, PHASES, REPLAY, Setting
from rapo.paper.studies.verdicts import FULL
from rapo.rsd.statistics import by_unit, mean_interval

RAPO, BASE, CONTROL, TWIN = "RAPO", "GE", "PM-ST", "P0-twin"
SHIFTED = 0.05
"""ASD above which the actions count as shifted."""
LOW_SHIFT = 0.1
"""ASD up to which RAPO's counts as low; the paper gives no number."""
CONTRACTED = 0.95
"""Odds ratio below which the kernel counts as deformed."""
SUSTAINED = 0.8
"""Share of its early activity that a cascade outside V_sens has to keep late in Replay."""
Float = npt.NDArray[np.float64]
Frames = Mapping[str, pd.DataFrame]
"""Episodes or curves by method."""
Rows = Mapping[str, Mapping[Any, Any]]
"""Rows of `by_method` by method."""


def pooled(curves: pd.DataFrame, trace: str) -> pd.DataFrame:
    """Pool a trace of one method over graphs: a row per bin with step, end, mean and std.

    The mean is over graphs, the std over all episodes of all graphs. A graph on which a bin is
    undefined is left out of that bin.
    """
    first = curves[curves["graph_seed"] == curves["graph_seed"].iloc[0]]
    shape = (-1, len(first))  # every graph has the same bins
    means = curves[trace].to_numpy(float).reshape(shape)
    stds = np.nan_to_num(curves[f"{trace}_std"].to_numpy(float).reshape(shape))
    defined = np.isfinite(means)
    episodes, graphs = int(first["episodes"].iloc[0]), defined.sum(axis=0)
    mean = np.where(graphs > 0, np.nansum(means, axis=0) / np.maximum(graphs, 1), np.nan)
    squares = (episodes - 1) * np.where(defined, stds**2, 0) + episodes * np.where(
        defined, (means - mean) ** 2, 0
    )
    std = np.sqrt(squares.sum(axis=0) / np.maximum(episodes * graphs - 1, 1))
    return pd.DataFrame(
        {
            "step": first["step"].to_numpy(),
            "end": first["end"].to_numpy(),
            "mean": mean,
            "std": np.where(graphs > 0, std, np.nan),
        }
    )


def in_phase(curve: pd.DataFrame, horizons: tuple[int, ...], phase: int) -> pd.DataFrame:
    """Cut out the bins of one phase, with `step` and `end` counted from its start."""
    start = sum(horizons[:phase])
    part = curve[(curve["step"] >= start) & (curve["step"] < start + horizons[phase])]
    return part.assign(step=part["step"] - start, end=part["end"] - start)


def replay_over_exposure(frame: pd.DataFrame, name: str) -> pd.Series[float]:
    """Divide the means `E[M_rep] / E[M_exp]` of each graph; NaN where nothing was exposed."""
    before, after = (by_unit(frame, f"{name}_{PHASES[phase]}") for phase in (EXPOSURE, REPLAY))
    return after / before.where(before > 0)


def injected(frame: pd.DataFrame, rates: Sequence[float], phase: int) -> pd.Series[float]:
    """Expect the seeds a step of each episode: action probabilities times rates.

    NaN where the policy's probabilities are not known.
    """
    names = [f"action{a}_{PHASES[phase]}" for a in range(len(rates))]
    if not set(names) <= set(frame.columns):
        return pd.Series(np.nan, index=frame.index)
    return pd.Series(frame[names].to_numpy(float) @ np.asarray(rates, float), index=frame.index)


def verdict_of(ratios: Sequence[npt.ArrayLike]) -> str:
    """Name the replay by ratios (graphs,) of several metrics: suppressed, amplified or full.

    A mean has to be further than `FULL` from 1 and, with several graphs, its interval has to
    leave 1 out.
    """
    intervals = [mean_interval(values) for values in ratios]
    if any(each.mean < 1 - FULL and not each.high >= 1 for each in intervals):
        return "suppressed"
    if any(each.mean > 1 + FULL and not each.low <= 1 for each in intervals):
        return "amplified"
    return "full"


def changed_between(shift: float, odds_exposure: float, odds_replay: float) -> str:
    """Name what the corollary can hold responsible: `actions`, `kernel`, both or `neither`."""
    ways = []
    if odds_replay < CONTRACTED:
        ways.append("kernel")
    elif odds_exposure < CONTRACTED:
        ways.append("kernel of Exposure")
    if np.isnan(shift):
        ways.append("actions unknown")
    elif shift > SHIFTED:
        ways.append("actions")
    return " and ".join(ways) or "neither"


def by_method(curves: Frames, frames: Frames, setting: Setting) -> pd.DataFrame:
    """Tabulate odds ratio, ASD and R_c over graphs with Corollary 1's verdict, by method."""
    rows = []
    for method, frame in frames.items():
        odds = pooled(curves[method], "odds_ratio")
        early = in_phase(odds, setting.horizons, EXPOSURE)["mean"]
        peak, inside = (replay_over_exposure(frame, name) for name in ("peak", "inside"))
        row: dict[str, Any] = {"method": method, "OddsRatio_exposure": float(early.mean())}
        for metric in ("OddsRatio", "ASD", "R_c"):
            means = by_unit(frame, metric)
            row |= {metric: float(means.mean()), f"{metric}_std": float(means.std())}
        row |= {
            "peak_ratio": float(peak.mean()),
            "inside_ratio": float(inside.mean()),
            "replay": verdict_of([peak.to_numpy(), inside.to_numpy()]),
            "changed": changed_between(row["ASD"], row["OddsRatio_exposure"], row["OddsRatio"]),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def activity(curves: Frames, frames: Frames, setting: Setting) -> pd.DataFrame:
    """Tabulate means over graphs of the activity a step inside and outside V_sens, by method."""
    rows = []
    for method, frame in frames.items():
        row: dict[str, Any] = {"method": method}
        for phase in (EXPOSURE, REPLAY):
            name = PHASES[phase]
            full = with_activity(frame, setting.rates)
            for kind in ("inside", "outside", "injected", "served"):
                row[f"{kind}_{name}"] = float(by_unit(full, f"{kind}_{name}").mean())
        row["breadth_replay"] = (
            float(by_unit(frame, "breadth_replay").mean()) if "breadth_replay" in frame else np.nan
        )
        row["outside_late_over_early"] = sustained(curves[method], setting.horizons)
        rows.append(row)
    return pd.DataFrame(rows)


def with_activity(frame: pd.DataFrame, rates: Sequence[float]) -> pd.DataFrame:
    """Add activity outside V_sens and seeds injected a step, in Exposure and Replay."""
    extra: dict[str, Any] = {}
    for phase in (EXPOSURE, REPLAY):
        name = PHASES[phase]
        extra[f"outside_{name}"] = frame[f"reach_{name}"] - frame[f"inside_{name}"]
        extra[f"injected_{name}"] = injected(frame, rates, phase)
    return frame.assign(**extra)


def sustained(curves: pd.DataFrame, horizons: tuple[int, ...]) -> float:
    """Divide the activity outside V_sens in Replay's second half by that in its first half.

    The first tenth of Replay is left out: there every cascade still grows.
    """
    reach, inside = (
        in_phase(pooled(curves, name), horizons, REPLAY) for name in ("reach", "sensitive_mass")
    )
    outside = (reach["mean"] - inside["mean"]).to_numpy()
    half, start = horizons[REPLAY] / 2, horizons[REPLAY] / 10
    step = reach["step"].to_numpy()
    early = _mean(outside[(step >= start) & (step < half)])
    return _mean(outside[step >= half]) / early if early > 0 else np.nan


def compounding(rapo: pd.DataFrame, twin: pd.DataFrame, horizons: tuple[int, ...]) -> pd.DataFrame:
    """Tabulate Replay bin by bin: sensitive mass over the twin's, and the one-step contraction.

    `power` is `psi^t` for the mean odds ratio psi, averaged over the bin's steps: the share that
    would be left of a cascade which is not fed anew. The set after step t has passed the gate
    t + 1 times.
    """
    mass, free, odds = (
        in_phase(pooled(curves, name), horizons, REPLAY)
        for curves, name in (
            (rapo, "sensitive_mass"),
            (twin, "sensitive_mass"),
            (rapo, "odds_ratio"),
        )
    )
    psi = float(odds["mean"].mean())
    steps = [np.arange(a, b) for a, b in zip(mass["step"], mass["end"], strict=True)]
    return pd.DataFrame(
        {
            "step": mass["step"].to_numpy(),
            "end": mass["end"].to_numpy(),
            "mass_ratio": mass["mean"].to_numpy() / free["mean"].where(free["mean"] > 0).to_numpy(),
            "odds_ratio": odds["mean"].to_numpy(),
            "power": [float(np.mean(psi ** (t + 1))) for t in steps],
        }
    )


def depths(frames: Frames) -> pd.DataFrame:
    """Tabulate by graph the sensitive mass over the twin's, the contraction of a step, the depth.

    `one_step` weighs each step by its nominal harmful mass. A cascade that did not spread would
    keep just that share: `mass_ratio = one_step ^ depth` with a depth of 1. A larger depth means
    that mass is lost anew at every generation.
    """
    rapo, twin = frames[RAPO], frames[TWIN]
    before = by_unit(twin, "inside_replay")
    mass = by_unit(rapo, "inside_replay") / before.where(before > 0)
    one = 1 - by_unit(rapo, "GatingRate")
    defined = (mass > 0) & (one > 0) & (one < 1)
    depth = np.log(mass.where(defined)) / np.log(one.where(defined))
    return pd.DataFrame({"mass_ratio": mass, "one_step": one, "depth": depth}).reset_index()


def _mean(values: Float) -> float:
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if defined.size else np.nan


def curves_file(curves: Frames) -> pd.DataFrame:
    """Tabulate the pooled curves of all methods below each other."""
    parts = {
        (method, trace): pooled(each, trace)
        for method, each in curves.items()
        for trace in ("reach", "sensitive_mass", "odds_ratio", "scar_mass")
    }
    return pd.concat(parts, names=["method", "trace"]).reset_index(["method", "trace"])
