"""What RAPO's policy adds to its kernel: constants, greedy and a policy without sight beside it.

The deformed kernel suppresses replay whatever is played in front of it. Learning has to show
against every constant action, and against drawing one of them for each episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.cascade.setting import ACTIONS
from rapo.experiments.presets import Preset
from rapo.experiments.studies.budgets import budgets
from rapo.experiments.studies.graph_means import told
from rapo.experiments.studies.learning_figure import plane_figure
from rapo.experiments.studies.section import Claim, Section, Store
from rapo.experiments.studies.verdicts import PREDICTED, above, verdict
from rapo.experiments.tasks import Constant, Evaluate, Greedy
from rapo.rsd.statistics import by_unit, mean_interval

RAPO, BLIND, GREEDY = "RAPO", "RAPO-x", "greedy"
DEFORMED = tuple(f"deformed-{name}" for name in ACTIONS)
"""The constant actions under RAPO's kernel."""
STATIONARY = ("PM-ST", "GE")
"""For comparison, under `P0`."""
COLUMNS = ("ReplayRet", "trace", "RAG", "AUC_R", "SM_R")
SMALL = 0.1
"""Duals up to this count as small: a policy then is after the return, and can be asked for it."""
GAIN = 0.03
"""Of the best constant's return, what learning has to add."""
RESAMPLES = 2000
ANGLES = np.linspace(0, np.pi / 2, 361)
"""Between all weight on the return and all on the trace."""

Float = npt.NDArray[np.float64]


def rows(preset: Preset) -> dict[str, list[Evaluate]]:
    """Evaluations on every graph by row: same episodes and draws in all of them."""

    def constant(action: int) -> list[Evaluate]:
        return [
            Evaluate(Constant(preset.config(RAPO, s), action), RAPO, episodes=preset.episodes,
                     label=DEFORMED[action])
            for s in preset.graph_seeds
        ]  # fmt: skip

    greedy = [
        Evaluate(Greedy(preset.config(RAPO, s)), RAPO, episodes=preset.episodes, label=GREEDY)
        for s in preset.graph_seeds
    ]
    trained = {
        m: [preset.evaluation(m, s) for s in preset.graph_seeds] for m in (RAPO, BLIND, *STATIONARY)
    }
    return trained | {DEFORMED[a]: constant(a) for a in range(len(ACTIONS))} | {GREEDY: greedy}


def plan(preset: Preset) -> list[Evaluate]:
    """All rows, graph by graph."""
    return [task for tasks in zip(*rows(preset).values(), strict=True) for task in tasks]


def analyse(store: Store) -> Section:
    """The table, RAPO's gains, its place against all mixtures of constants, and two claims."""
    preset = store.preset
    base = store.base_return()
    units = {name: _units(store.frame(tasks), base) for name, tasks in rows(preset).items()}
    returns = pd.DataFrame({name: units[name]["ReplayRet"] for name in units})
    paid = budgets(store.pieces(rows(preset)[RAPO]))
    free = unbound(paid, returns.index)
    gained = {
        (who, against): gains(returns, who, against)
        for who in (RAPO, BLIND, GREEDY)
        for against in ("each", "one")
    }
    gained[RAPO, BLIND] = returns[RAPO] / returns[BLIND] - 1
    places = {who: place(units, who) for who in (RAPO, BLIND, GREEDY)}
    best = returns[list(DEFORMED)].mean().idxmax()
    table = pd.DataFrame(
        [{"": name, **{title: told(units[name][m]) for m, title in _TITLES.items()}}
         for name in units]
    )  # fmt: skip
    against = pd.DataFrame(
        [
            {
                "": who,
                "over the best constant of each graph": _percent(gained[who, "each"]),
                f"over {best}, the best on average": _percent(gained[who, "one"]),
                "distance to the mixtures' frontier": _distance(*places[who]),
            }
            for who in (RAPO, BLIND, GREEDY)
        ]
    )
    flat = [
        {"row": name, "graph_seed": seed, **{m: units[name].loc[seed, m] for m in COLUMNS}}
        for name in units
        for seed in units[name].index
    ]
    return Section(
        name="learning",
        title="What RAPO learns: beside every constant action, greedy, and without sight",
        text=[
            f"{preset.nodes} nodes, {len(preset.graph_seeds)} graphs x {preset.episodes} episodes; "
            "same draws in all rows. deformed-* always take one action in front of RAPO's kernel; "
            "greedy knows stimulus and psi and takes what is served most at the step; RAPO-x is "
            "trained as RAPO but sees x alone. trace is the mean sum of G over the episode. The "
            "best constant of each graph is chosen by the same episodes, which favours it.",
            "A mixture draws a constant for each episode, so its point lies between theirs, and "
            "exactly so. The distance is to the nearest point that some mixture attains or beats, "
            "with ReplayRet in its own unit and trace in that of the constant aggressive action; "
            "above 0 no mixture has both as good. Intervals: 95%, gains over graphs, distances by "
            "bootstrap over graphs.",
            f"RAPO over RAPO-x: {_percent(gained[RAPO, BLIND])} of the return, what seeing the "
            "fields is worth.",
        ],
        tables=[("Mean and 95% interval over graph means", table), ("Gains in return", against)],
        figures=[
            ("learning", "Return against trace, means over graphs: left all rows, right those "
             "under RAPO's kernel with what mixtures of constants attain (shaded: they attain "
             "or beat it); up and to the left is better", plane_figure(units, DEFORMED)),
        ],
        claims=_claims(gained[RAPO, "each"], free, places[RAPO]),
        files={"learning": pd.DataFrame(flat)},
    )  # fmt: skip


_TITLES = {"ReplayRet": "ReplayRet", "trace": "trace", "RAG": "RAG", "AUC_R": "AUC-R",
           "SM_R": "SM-R"}  # fmt: skip


def _units(frame: pd.DataFrame, base: float) -> pd.DataFrame:
    frame = frame.assign(ReplayRet=frame["ReplayReturn"] / base)
    return pd.DataFrame({name: by_unit(frame, name) for name in COLUMNS})


def gains(returns: pd.DataFrame, who: str, against: str) -> pd.Series[float]:
    """Relative gain in return by graph.

    Args:
        returns: by graph (index) and row.
        who: the row.
        against: `each`, the best constant of each graph, or `one`, the best on average.
    """
    fixed = returns[list(DEFORMED)]
    best = fixed.max(axis=1) if against == "each" else fixed[fixed.mean().idxmax()]
    return returns[who] / best - 1


def unbound(paid: pd.DataFrame, seeds: Any) -> list[int]:
    """Graphs on which the largest of RAPO's duals ended at `SMALL` or below."""
    if paid.empty:
        return [int(seed) for seed in seeds]
    largest = paid.groupby("graph_seed")["dual"].max()
    return [int(seed) for seed in largest.index[largest <= SMALL]]


def signed_distance(point: Float, corners: Float) -> Float:
    """How far points lie beyond what mixtures of corners attain or beat; below 0 inside.

    The set is convex and unbounded towards less return and more trace, so the distance is the
    largest over directions between the two of the point's lead over the best corner.

    Args:
        point: (..., 2) return and trace.
        corners: (..., k, 2).

    >>> signed_distance(np.array([1.0, 1.0]), np.array([[1.0, 1.0], [0.5, 0.5]])).round(6) + 0
    np.float64(0.0)
    """
    toward = np.stack([np.cos(ANGLES), -np.sin(ANGLES)], axis=1)  # (angles, 2)
    lead = point @ toward.T - (corners @ toward.T).max(axis=-2)
    return np.asarray(lead.max(axis=-1))


def place(units: Mapping[str, pd.DataFrame], who: str) -> tuple[float, float, float]:
    """Signed distance of a row's mean point to the mixtures of constants; ends of its interval."""
    names = (who, *DEFORMED)
    points = np.stack([units[n][["ReplayRet", "trace"]].to_numpy(float) for n in names], axis=1)
    points[..., 1] /= points[:, 1, 1].mean() or 1.0
    graphs = len(points)

    def of(means: Float) -> Float:
        return signed_distance(means[..., 0, :], means[..., 1:, :])

    found = float(of(points.mean(axis=0)))
    if graphs < 2:
        return found, np.nan, np.nan
    drawn = np.random.default_rng(0).integers(graphs, size=(RESAMPLES, graphs))
    low, high = np.quantile(of(points[drawn].mean(axis=1)), (0.025, 0.975))
    return found, float(low), float(high)


def _percent(values: pd.Series[float]) -> str:
    found = mean_interval(values.to_numpy(float))
    ends = "" if np.isnan(found.low) else f" [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
    return f"{100 * found.mean:+.1f}%{ends}"


def _distance(found: float, low: float, high: float) -> str:
    return f"{found:+.3f}" + ("" if np.isnan(low) else f" [{low:+.3f}, {high:+.3f}]")


def _claims(
    gain: pd.Series[float], free: list[int], beyond: tuple[float, float, float]
) -> list[Claim]:
    claims = []
    if free:
        found = mean_interval(gain.loc[free].to_numpy(float))
        claims.append(
            Claim(
                "Learning",
                "RAPO's policy earns more than the best constant action under its kernel",
                "PPO on the task return (no number)",
                f"{_percent(gain.loc[free])} of the best constant's of each graph",
                verdict(found.mean >= GAIN and above(found.mean, found.low)),
                f"at least {GAIN:.0%} with the interval above 0, on the {len(free)} graphs whose "
                f"duals ended at {SMALL:g} or below",
                PREDICTED,
            )
        )
    claims.append(
        Claim(
            "Learning",
            "No mixture of constant actions has RAPO's return at its trace",
            "utility at less harm (no number)",
            f"{_distance(*beyond)} beyond the mixtures' frontier",
            verdict(above(*beyond[:2])),
            "the interval over graphs has to lie above 0",
            PREDICTED,
        )
    )
    return claims
