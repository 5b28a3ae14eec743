"""Tables of the points, of the check of the method, and of the tuning of the shield."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rapo.paper.paper import METRICS
from rapo.paper.presets import Preset
from rapo.paper.results import Results
from rapo.paper.studies.graph_means import (
    TITLES,
    interval_columns,
    interval_text,
    unit_means,
    with_interval,
)
from rapo.paper.studies.section import Section
from rapo.paper.studies.tradeoff.claims import tradeoff_claims
from rapo.paper.studies.tradeoff.figures import (
    EDGE,
    pareto_figure,
    tuning_figure,
    w_H_figure,
)
from rapo.paper.studies.tradeoff.plan import (
    Groups,
    Means,
    Point,
    baselines,
    checks,
    grid,
    shields,
    tau_sweep,
)
from rapo.rsd.statistics import paired_interval

COLUMNS = (*METRICS, "OddsRatio")


def analyse(results: Results) -> Section:
    """Set utility against safety; show the effect of w_H, the check, and the shield's tuning."""
    preset = results.preset
    base = results.base_return()
    groups = {
        "RAPO": grid(preset),
        "tau": tau_sweep(preset),
        "Shield": shields(preset),
        "baselines": baselines(preset),
        "retrained": [trained for _, trained in checks(preset)],
    }
    means = {
        point.tasks: unit_means(results, point.tasks, base, COLUMNS)
        for points in groups.values()
        for point in points
    }
    curve = pd.DataFrame(
        [_row(p, means[p.tasks]) for points in groups.values() for p in points]
    ).drop_duplicates(["group", "name"])
    tuned = _tunings(results)
    compared = _compared(results, base)
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
        (
            f"The other points. Tau: {len(preset.sweep_seeds)} graphs, Shield: {few}, baselines: "
            f"{len(preset.graph_seeds)} graphs",
            _printed_points(groups, means),
        ),
    ]
    figures = _figures(groups, means)
    if len(compared):
        text.append(
            f"Is that fair? On {few}, RAPO was also trained under the changed constants "
            f"({preset.retrain_steps:,} steps); the table has both, and the default trained as "
            "long, which shows what the shorter training alone does."
        )
        sizes = f"{few}, policy of {preset.steps:,} steps against {preset.retrain_steps:,} steps"
        tables.append(
            (f"Evaluated under changed fields, and trained under them: {sizes}", compared)
        )
    if len(tuned):
        figures.append(
            (
                "shield_tuning",
                "How Shield-UM's threshold was found: Replay return of each trial on held-out "
                "episodes, in units of GE's, less RAPO's",
                tuning_figure(tuned),
            )
        )
    files = {"tradeoff": curve, "tradeoff_retrained": compared, "shield_tuning": tuned}
    return Section(
        name="tradeoff",
        title="Utility against safety",
        text=text,
        tables=tables,
        figures=figures,
        claims=tradeoff_claims(groups, means),
        files={name: part for name, part in files.items() if len(part)},
    )


def _figures(groups: Groups, means: Means) -> list[tuple[str, str, Any]]:
    return [
        (
            "tradeoff",
            "Replay return against RAG, AUC-R and SM-R: RAPO along w_H and eta, beside methods "
            "that leave the kernel alone; up and to the left is better; ratios above "
            f"{EDGE:g} stand at the edge",
            pareto_figure(groups, means),
        ),
        (
            "w_H",
            "What w_H buys and costs; the dotted line is where the paper sees returns diminish",
            w_H_figure(groups["RAPO"], means),
        ),
    ]


def _row(point: Point, means: pd.DataFrame) -> dict[str, Any]:
    return {
        "group": point.group,
        "name": point.name,
        "w_H": point.params.w_H,
        "eta": point.params.eta,
        "tau": point.params.tau,
        "threshold": point.threshold,
        "graphs": len(means),
        **interval_columns(means),
    }


def _printed_grid(preset: Preset, means: Means) -> pd.DataFrame:
    points = {(p.params.w_H, p.params.eta): means[p.tasks] for p in grid(preset)}
    cells = {
        key: f"{with_interval(values['RAG'])} / {with_interval(values['ReplayRet'])}"
        for key, values in points.items()
    }
    etas = sorted({eta for _, eta in points})
    return pd.DataFrame(
        [
            {"w_H": f"{w:g}"} | {f"eta {eta:g}": cells.get((w, eta), "-") for eta in etas}
            for w in sorted({w for w, _ in points})
        ]
    )


def _printed_points(groups: Groups, means: Means) -> pd.DataFrame:
    policies = {"baselines": "", "Shield": "Shield, ", "tau": "RAPO, "}
    return pd.DataFrame(
        [
            {"": f"{policy}{point.name}"}
            | {TITLES[m]: with_interval(means[point.tasks][m]) for m in METRICS}
            for group, policy in policies.items()
            for point in groups[group]
        ]
    )


def _compared(results: Results, base: float) -> pd.DataFrame:
    """Compare evaluated and retrained points on the same graphs, RAG also pair by pair."""
    rows = []
    for evaluated, trained in checks(results.preset):
        a, b = (unit_means(results, point.tasks, base) for point in (evaluated, trained))
        gap = paired_interval(a["RAG"], b["RAG"])
        row = {"constants": evaluated.name}
        row |= {"RAG evaluated": with_interval(a["RAG"]), "RAG trained": with_interval(b["RAG"])}
        row["difference (paired)"] = interval_text(gap.difference, gap.low, gap.high, "+.2f")
        row["ReplayRet evaluated"] = with_interval(a["ReplayRet"])
        row["ReplayRet trained"] = with_interval(b["ReplayRet"])
        rows.append(row)
    return pd.DataFrame(rows)


def _tunings(results: Results) -> pd.DataFrame:
    """List the trials of every Shield-UM; `taken` says whether a trial's threshold was kept."""
    preset = results.preset
    if "Shield-UM" not in preset.methods:
        return pd.DataFrame()
    wanted = [preset.evaluation("Shield-UM", seed) for seed in preset.graph_seeds]
    trials = results.tuning(wanted)
    if trials.empty:
        return trials
    taken = results.about(wanted).set_index("graph_seed")["threshold"]
    same = np.isclose(trials["threshold"], trials["graph_seed"].map(taken), rtol=1e-4)
    return trials.drop(columns=["method", "nodes"]).assign(taken=same)
