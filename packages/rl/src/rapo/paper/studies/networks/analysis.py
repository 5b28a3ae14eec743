"""Tables of the networks study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from rapo.paper.results import Results
from rapo.paper.studies.graph_means import interval_text
from rapo.paper.studies.networks.figure import plot_networks
from rapo.paper.studies.networks.plan import TABLES, plan, selected
from rapo.paper.studies.section import Section

LIMITS = {
    "OddsRatio": ("<=", 0.5),
    "SM_R": ("<=", 0.6),
    "SM_vs_P0": ("<=", 0.3),
    "ReturnKept": (">=", 0.75),
    "Selectivity": (">=", 0.15),
}
"""What a fitted RAPO should come to with the constant aggressive action; selectivity from
`SELECTIVE_FROM` nodes on, where stimuli are far enough apart."""
SELECTIVE_FROM = 500
CALIBRATED = "OddsRatio"
"""The number that the fit aims at."""


def analyse(results: Results) -> Section:
    """Make the tables of the limits, of the networks with their fits, and of all rows."""
    preset = results.preset
    jobs = plan(preset)
    described, measured = (
        pd.concat([job.read(results.root, name) for job in jobs], ignore_index=True)
        for name in TABLES
    )
    absent = [n.title for n in selected(preset) if n.missing(Path(preset.data))]
    text = [
        f"{preset.network_episodes} episodes; RAPO's policy is trained for "
        f"{preset.network_steps:,} steps on each network. All else is the default. Ratios are "
        "pooled (ratio of means, 95% bootstrap over episodes). OddsRatio is calibrated where it "
        f"is fitted. Selectivity stands in brackets below {SELECTIVE_FROM} nodes: there the "
        "stimuli overlap too much to ask for it.",
    ]
    if absent:
        text.append(
            f"Left out, as {preset.data} has no files of them (see --data): {', '.join(absent)}."
        )
    return Section(
        name="networks",
        title="Networks that nothing was tuned for",
        text=text,
        tables=[
            ("Fitted, constant aggressive action (*: calibrated by the fit)", limits(measured)),
            ("The networks and their fits", described.drop(columns="title").round(3)),
            ("All rows", printed(measured)),
        ],
        figures=[
            (
                "networks",
                "What the fit changes, network by network; a dashed line is the limit that a "
                "fitted RAPO should keep",
                plot_networks(measured)[0],
            )
        ],
        files={
            "networks": described.drop(columns="title"),
            "networks_results": measured.drop(columns="title"),
        },
    )


def limits(table: pd.DataFrame) -> pd.DataFrame:
    """Judge every network under the fitted kernel and the constant aggressive action."""
    fitted = table[(table["policy"] == "aggressive") & (table["kernel"] == "full")]
    return pd.DataFrame(
        [
            {"network": row["title"]}
            | {
                f"{name}{'*' * (name == CALIBRATED)} {sign} {limit:g}": _judged(row, name)
                for name, (sign, limit) in LIMITS.items()
            }
            for row in fitted.to_dict("records")
        ]
    )


def _judged(row: Mapping[Any, Any], name: str) -> str:
    value, (sign, limit) = row[name], LIMITS[name]
    if name == "Selectivity" and row["nodes"] < SELECTIVE_FROM:
        return f"({value:.2f})"
    holds = value <= limit if sign == "<=" else value >= limit
    return f"{value:.2f}{'' if holds else ' MISSED'}"


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """Format all rows with two digits."""
    return pd.DataFrame(
        [
            {
                "network": row["title"],
                "policy": row["policy"],
                "kernel": row["kernel"],
                "OddsRatio": f"{row['OddsRatio']:.2f}",
                **{
                    name: interval_text(row[name], row[f"{name}_low"], row[f"{name}_high"])
                    for name in ("RAG", "SM_R", "SM_vs_P0", "ReturnKept")
                },
                "selectivity": "" if pd.isna(row["Selectivity"]) else f"{row['Selectivity']:.2f}",
            }
            for row in table.to_dict("records")
        ]
    )
