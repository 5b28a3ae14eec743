"""The trade-off of utility and safety: RAPO under changed fields, baselines and shields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rapo.experiments.paper import DIMINISHING_W_H, METRICS, ODDS_RAG_CORRELATION, TABLE1
from rapo.experiments.presets import Preset
from rapo.experiments.studies.graph_means import mean_of, told, unit_means
from rapo.experiments.studies.section import Claim, Section, Store
from rapo.experiments.studies.tradeoff_figures import pareto_figure, tuning_figure, w_H_figure
from rapo.experiments.studies.tradeoff_points import (
    DEFAULT,
    TITLES,
    Groups,
    Means,
    Point,
    baselines,
    checks,
    grid,
    shields,
    tau_sweep,
    unique,
)
from rapo.experiments.studies.verdicts import (
    CALIBRATED,
    PREDICTED,
    above,
    correlates,
    full_replay,
    verdict,
    within_stds,
)
from rapo.experiments.tasks import Evaluate
from rapo.rsd.statistics import correlation, mean_interval, paired_interval

COLUMNS = (*METRICS, "OddsRatio")


def plan(preset: Preset) -> list[Evaluate]:
    """All points, and GE's return on the main graphs, the unit of ReplayRet."""
    points = [*grid(preset), *tau_sweep(preset), *shields(preset), *baselines(preset)]
    points += [point for _, *pair in checks(preset) for point in pair]
    tasks = [preset.evaluation("GE", s) for s in preset.graph_seeds]
    tasks += [task for point in points for task in point.tasks]
    return unique(tasks)


def analyse(store: Store) -> Section:
    """The picture, the effect of w_H, the check of the method and the shield's tuning."""
    preset = store.preset
    base = store.base_return()
    groups = {
        "RAPO": grid(preset), "tau": tau_sweep(preset), "Shield": shields(preset),
        "baselines": baselines(preset), "retrained": [point for *_, point in checks(preset)],
    }  # fmt: skip
    means = {
        point.tasks: unit_means(store, point.tasks, base, COLUMNS)
        for points in groups.values()
        for point in points
    }
    rows = [_row(point, means[point.tasks]) for points in groups.values() for point in points]
    curve = pd.DataFrame(rows).drop_duplicates(["group", "name"])
    tuned = _tunings(store)
    compared = _compared(store, base)
    size = (
        f"{preset.nodes} nodes, {preset.episodes} episodes a graph; sweeps on "
        f"{len(preset.sweep_seeds)} graphs with RAPO's policy of {preset.steps:,} training steps"
    )
    few = f"{len(preset.retrain_seeds)} graph{'s' if len(preset.retrain_seeds) > 1 else ''}"
    text = [
        f"{size}; baselines as in Table 1 ({len(preset.graph_seeds)} graphs), the fixed Shield on "
        f"{few}. A sweep evaluates the trained policy under changed constants of the fields "
        "and does not train again; 95% intervals over graph means.",
    ]
    tables = [
        (f"RAPO over w_H and eta: RAG / ReplayRet. {size}", _printed_grid(preset, means)),
        (f"The other points. Tau: {len(preset.sweep_seeds)} graphs, Shield: {few}, baselines: "
         f"{len(preset.graph_seeds)} graphs", _printed_points(groups, means)),
    ]  # fmt: skip
    figures = [
        ("tradeoff", "Replay return against RAG, AUC-R and SM-R: RAPO along w_H and eta, beside "
         "methods that leave the kernel alone; up and to the left is better",
         pareto_figure(groups, means)),
        ("w_H", "What w_H buys and costs; the dotted line is where the paper sees returns diminish",
         w_H_figure(groups["RAPO"], means)),
    ]  # fmt: skip
    if len(compared):
        text.append(
            f"Is that fair? On {few}, RAPO was also trained under the changed constants "
            f"({preset.retrain_steps:,} steps); the table has both, and the default trained as "
            "long, which shows what the shorter training alone does."
        )
        told = f"{few}, policy of {preset.steps:,} steps against {preset.retrain_steps:,} steps"
        tables.append((f"Evaluated under changed fields, and trained under them: {told}", compared))
    if len(tuned):
        figures.append(
            ("shield_tuning", "How Shield-UM's threshold was found: Replay return of each trial on "
             "held-out episodes, in units of GE's, less RAPO's", tuning_figure(tuned))
        )  # fmt: skip
    files = {"tradeoff": curve, "tradeoff_retrained": compared, "shield_tuning": tuned}
    return Section(
        name="tradeoff",
        title="Utility against safety",
        text=text,
        tables=tables,
        figures=figures,
        claims=_claims(groups, means),
        files={name: part for name, part in files.items() if len(part)},
    )


def _row(point: Point, found: pd.DataFrame) -> dict[str, Any]:
    row: dict[str, Any] = {
        "group": point.group, "name": point.name, "w_H": point.params.w_H, "eta": point.params.eta,
        "tau": point.params.tau, "threshold": point.threshold, "graphs": len(found),
    }  # fmt: skip
    for metric in COLUMNS:
        told = mean_interval(found[metric])
        row |= {metric: told.mean, f"{metric}_low": told.low, f"{metric}_high": told.high}
    return row


def _printed_grid(preset: Preset, means: Means) -> pd.DataFrame:
    points = {(p.params.w_H, p.params.eta): means[p.tasks] for p in grid(preset)}
    rows = []
    for w in sorted({w for w, _ in points}):
        row = {"w_H": f"{w:g}"}
        for eta in sorted({eta for _, eta in points}):
            found = points.get((w, eta))
            row[f"eta {eta:g}"] = (
                "-" if found is None else f"{told(found['RAG'])} / {told(found['ReplayRet'])}"
            )
        rows.append(row)
    return pd.DataFrame(rows)


def _printed_points(groups: Groups, means: Means) -> pd.DataFrame:
    rows = []
    for group in ("baselines", "Shield", "tau"):
        for point in groups[group]:
            who = {"Shield": f"Shield, {point.name}", "tau": f"RAPO, {point.name}"}
            row = {"": who.get(point.group, point.name)}
            row |= {TITLES[m]: told(means[point.tasks][m]) for m in METRICS}
            rows.append(row)
    return pd.DataFrame(rows)


def _compared(store: Store, base: float) -> pd.DataFrame:
    """Evaluated and retrained points of the same graphs, with the paired difference of RAG."""
    rows = []
    for _, evaluated, trained in checks(store.preset):
        a, b = (unit_means(store, point.tasks, base) for point in (evaluated, trained))
        gap = paired_interval(a["RAG"], b["RAG"])
        between = "" if np.isnan(gap.low) else f" [{gap.low:.2f}, {gap.high:.2f}]"
        rows.append({
            "constants": evaluated.name,
            "RAG evaluated": told(a["RAG"]),
            "RAG trained": told(b["RAG"]),
            "difference (paired)": f"{gap.difference:+.2f}{between}",
            "ReplayRet evaluated": told(a["ReplayRet"]),
            "ReplayRet trained": told(b["ReplayRet"]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _tunings(store: Store) -> pd.DataFrame:
    """Trials of every Shield-UM: graph_seed, threshold, ReplayRet, target; and which was taken."""
    preset = store.preset
    parts = []
    if "Shield-UM" in preset.methods:
        for task in (preset.evaluation("Shield-UM", s) for s in preset.graph_seeds):
            shield = store.piece(task).content.get("shield") or {}
            if shield.get("tuning"):
                trials = pd.DataFrame(shield["tuning"])
                trials.insert(0, "graph_seed", task.policy.config.graph_seed)
                # tuning.csv keeps six digits
                taken = np.isclose(trials["threshold"], float(shield["threshold"]), rtol=1e-4)
                parts.append(trials.assign(taken=taken))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def along_w_H(points: Sequence[Point], means: Means, metric: str) -> pd.DataFrame:
    """Graph means by w_H (index) and graph (columns) at the default eta."""
    table = {p.params.w_H: means[p.tasks][metric] for p in points if p.params.eta == DEFAULT.eta}
    return pd.DataFrame(table).T.sort_index()


def slopes(curve: pd.DataFrame) -> tuple[float, pd.Series, pd.Series] | None:
    """The w_H nearest to the paper's knee; fall per unit of w_H below it and above it, by graph.

    None when no value lies on both sides of the knee.
    """
    w = curve.index.to_numpy(float)
    knee = int(np.argmin(np.abs(w - DIMINISHING_W_H)))
    if knee in (0, len(w) - 1):
        return None
    below = (curve.iloc[0] - curve.iloc[knee]) / (w[knee] - w[0])
    above = (curve.iloc[knee] - curve.iloc[-1]) / (w[-1] - w[knee])
    return float(w[knee]), below, above


def bend(curve: pd.DataFrame) -> str:
    """Where the mean falls half as fast as at first: the knee is the paper's, not our curve's."""
    w = curve.index.to_numpy(float)
    steps = -np.diff(curve.mean(axis=1).to_numpy()) / np.diff(w)
    if not steps[0] > 0:
        return f"no fall between {w[0]:g} and {w[1]:g}"
    flat = np.flatnonzero(steps < steps[0] / 2)
    first = f"half of the first slope ({w[0]:g} to {w[1]:g})"
    if not len(flat):
        return f"the slope never falls under {first}"
    return f"the slope first falls under {first} between {w[flat[0]]:g} and {w[flat[0] + 1]:g}"


def _positive(values: pd.Series) -> bool:
    """Whether the interval over graphs lies above 0; of one graph the value."""
    found = mean_interval(values)
    return above(found.mean, found.low)


def _covers_zero(values: pd.Series) -> bool:
    found = mean_interval(values)
    return bool(found.low <= 0 <= found.high)


def _w_H_claims(points: Sequence[Point], means: Means) -> list[Claim]:
    """What w_H buys and costs on either side of the paper's knee, paired over graphs."""
    curve = along_w_H(points, means, "RAG")
    rag, kept = slopes(curve), slopes(along_w_H(points, means, "ReplayRet"))
    if rag is None or kept is None:
        return []
    at, gained, gained_above = rag
    _, lost, lost_above = kept
    flatter, excess = gained - gained_above, lost_above - gained_above
    return [
        Claim(
            "Trade-off",
            "A larger w_H reduces RAG, with diminishing returns",
            f"diminishing beyond w_H ≈ {DIMINISHING_W_H}",
            f"RAG falls by {told(gained, 3)} a unit of w_H below {at:g}, by "
            f"{told(gained_above, 3)} above, {told(flatter, 3)} less",
            verdict(_positive(gained) and _positive(flatter)),
            f"from {curve.index[0]:g} to {curve.index[-1]:g} at eta {DEFAULT.eta:g}; {bend(curve)}",
            PREDICTED,
        ),
        Claim(
            "Trade-off",
            f"Beyond w_H ≈ {DIMINISHING_W_H} utility losses dominate",
            "more return lost than RAG gained",
            f"above {at:g} a unit of w_H costs {told(lost_above, 3)} ReplayRet and takes "
            f"{told(gained_above, 3)} off RAG; lost less gained {told(excess, 3)}",
            verdict(_positive(excess)),
            ("not decided: the interval covers 0; " if _covers_zero(excess) else "")
            + f"below {at:g} it costs {told(lost, 3)} and takes {told(gained, 3)}",
            PREDICTED,
        ),
    ]


def _claims(groups: Groups, means: Means) -> list[Claim]:
    claims = _w_H_claims(groups["RAPO"], means)
    claims += _dominance(groups, means)
    claims += _odds_claims([*groups["RAPO"], *groups["tau"]], means)
    found = {p.name: means[p.tasks] for p in groups["baselines"]}
    if "PM-ST" in found:
        rag, kept = mean_of(found["PM-ST"]["RAG"]), mean_of(found["PM-ST"]["ReplayRet"])
        paper = TABLE1["PM-ST"]
        claims.append(
            Claim(
                "Trade-off",
                "PM-ST keeps the return and suppresses nothing",
                f"RAG {paper['RAG'][0]:.2f} at ReplayRet {paper['ReplayRet'][0]:.2f}",
                f"RAG {told(found['PM-ST']['RAG'])} at ReplayRet "
                f"{told(found['PM-ST']['ReplayRet'])}",
                verdict(full_replay([rag]) and within_stds(kept, *paper["ReplayRet"])),
                "RAG within 0.15 of 1 and ReplayRet within two of the paper's stds",
                CALIBRATED,
            )
        )
    return claims


def _odds_claims(points: Sequence[Point], means: Means) -> list[Claim]:
    """OddsRatio with RAG between the constants, and what is left of it within them.

    A graph comes back under every choice, so graph means of all choices are no independent points.
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
        Claim(
            "Odds contraction",
            "OddsRatio goes with RAG across the constants of the sweeps",
            f"{ODDS_RAG_CORRELATION:.2f}, p < 1e-5",
            f"{across.r:.2f} over the means of n = {across.n} choices of w_H, eta and tau",
            verdict(correlates(across.r, ODDS_RAG_CORRELATION)),
            "not the number within one setting: with each choice's mean taken off, "
            f"{left} over graphs",
            CALIBRATED,
        )
    ]


def _dominance(groups: Groups, means: Means) -> list[Claim]:
    """Whether some method without deformation beats a point of RAPO in both respects."""
    ours = {p.name: (mean_of(means[p.tasks]["RAG"]), mean_of(means[p.tasks]["ReplayRet"]))
            for p in groups["RAPO"]}  # fmt: skip
    others = {
        f"Shield {p.name}" if p.group == "Shield" else p.name:
        (mean_of(means[p.tasks]["RAG"]), mean_of(means[p.tasks]["ReplayRet"]))
        for p in (*groups["baselines"], *groups["Shield"])
    }  # fmt: skip
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
        Claim(
            "Trade-off",
            "RAPO's curve is better than stationary methods and shields",
            "Pareto-like curve",
            f"{len(ours) - len(beaten)} of {len(ours)} points of RAPO are beaten by none in RAG "
            "and ReplayRet at once",
            verdict(not beaten),
            f"the lowest RAG without deformation is {lowest}'s {others[lowest][0]:.2f}"
            if not beaten
            else "; ".join(f"{name} beats {point}" for point, name in list(beaten.items())[:3]),
            PREDICTED,
        )
    ]
