"""Tables of the variants, over graph means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rapo.paper.paper import METRICS
from rapo.paper.results import Results
from rapo.paper.studies.ablations.claims import ablation_claims, reach_vs_free
from rapo.paper.studies.ablations.figures import overview_figure, regions_figure
from rapo.paper.studies.ablations.plan import Variant, free, variants
from rapo.paper.studies.graph_means import (
    FEW,
    TITLES,
    interval_columns,
    mean_of,
    unit_means,
    with_interval,
)
from rapo.paper.studies.section import Section
from rapo.paper.studies.tradeoff.plan import Means

COLUMNS = (*METRICS, "OddsRatio", "ScarMass", "reach_replay")


def analyse(results: Results) -> Section:
    """Four tables, two figures and the claims R4, R6 and of the discussion."""
    preset = results.preset
    base = results.base_return()
    parts = variants(preset)
    rows = [v for part in parts.values() for v in part]
    means = {v.evaluations: unit_means(results, v.evaluations, base, COLUMNS) for v in rows}
    for v in rows:
        if not v.unit:
            means[v.evaluations]["ReplayRet"] = np.nan
    open_reach = means[free(preset)]["reach_replay"]
    sweep = (
        f"{preset.nodes} nodes, {len(preset.sweep_seeds)} graphs x {preset.episodes} episodes, "
        f"RAPO's policy of {preset.steps:,} training steps"
    )
    anew = (
        f"{preset.nodes} nodes, {len(preset.retrain_seeds)} graphs x {preset.episodes} episodes, "
        f"each trained anew for {preset.retrain_steps:,} steps"
    )
    captions = {
        "decay": f"Scars that forget: {sweep}",
        "scope": f"Partial deployment: {sweep}",
        "regions": f"Regions: {anew}",
        "harm": f"Harm told wrongly: {sweep}",
    }
    text = [
        "Mean with 95% interval over graph means. Decay, deployment and harm change the "
        "environment of a trained RAPO and do not train again. Reach vs P0 is the mean reach in "
        "Replay over that of the same policy under P0, graph by graph: ratios to Exposure alone "
        "mislead where Exposure itself is deformed less.",
        "A region's trace must pass tau before a scar grows; a node alone passes it only if it is "
        f"active most of the time. The paper's are nodes; ours: {_node_level(parts, means)}. "
        "One-step activation is the literal reading of the diffusion; its graphs are rescaled to "
        "the same cascade size, and GE's return on them is not known, so it has no ReplayRet. Scar "
        "mass is the sum over regions; OddsRatio below 1 without scars is the trace's work.",
        "Misattributed: a share of the sensitive nodes credits a random other region that holds "
        "sensitive nodes. Unreported: what a region is charged with at a step is lost with that "
        "probability. Noise: it is that much too large or too small, each half of the time.",
    ]
    figures = [
        (
            "ablations",
            "Replay and return of every variant: mean, single graphs (ticks) and, from "
            f"{FEW} graphs on, 95% intervals; the blue line is RAPO as it is, the dashed one 1",
            overview_figure(parts, means),
        ),
        (
            "regions",
            "OddsRatio, RAG and return of RAPO trained with regions of each size; "
            "ticks are single graphs",
            regions_figure(parts["regions"], means),
        ),
    ]
    return Section(
        name="ablations",
        title="Ablations: forgetting, partial deployment, regions, wrong harm",
        text=text,
        tables=[
            (captions[name], _printed(part, means, None if name == "regions" else open_reach))
            for name, part in parts.items()
        ],
        figures=figures,
        claims=ablation_claims(parts, means, open_reach),
        files={"ablations": _flat(parts, means)},
    )


def _printed(part: Sequence[Variant], means: Means, open_reach: Any) -> pd.DataFrame:
    rows = []
    for v in part:
        values = means[v.evaluations]
        row = {"": v.name}
        row |= {TITLES[m]: with_interval(values[m]) for m in (*METRICS, "OddsRatio")}
        if open_reach is None:
            row["scar mass"] = with_interval(values["ScarMass"])
        else:
            row["reach vs P0"] = with_interval(reach_vs_free(values, open_reach))
        rows.append(row)
    return pd.DataFrame(rows)


def _node_level(parts: dict[str, list[Variant]], means: Means) -> str:
    """OddsRatio and RAG of node-level regions beside those of the default."""
    shown = [v for v in parts["regions"] if "default" in v.name or v.name.startswith("node")]
    return "; ".join(
        f"{v.name}: OddsRatio {mean_of(means[v.evaluations]['OddsRatio']):.2f}, "
        f"RAG {mean_of(means[v.evaluations]['RAG']):.2f}"
        for v in shown
    )


def _flat(parts: dict[str, list[Variant]], means: Means) -> pd.DataFrame:
    rows = []
    for name, part in parts.items():
        for v in part:
            row: dict[str, Any] = {
                "part": name,
                "name": v.name,
                "graphs": len(means[v.evaluations]),
            }
            rows.append(row | interval_columns(means[v.evaluations]))
    return pd.DataFrame(rows)
