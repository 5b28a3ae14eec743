"""Tables of the networks study, from its pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

POOLED = ("RAG", "AUC_R", "SM_R", "SM_vs_P0", "Reach_vs_P0", "ReturnKept")
MEANS = ("OddsRatio", "EventOdds", "OddsSame", "OddsOther", "Selectivity", "RAG", "SM_R")
BARS = {
    "OddsRatio": ("<=", 0.5),
    "SM_R": ("<=", 0.6),
    "SM_vs_P0": ("<=", 0.3),
    "ReturnKept": (">=", 0.75),
    "Selectivity": (">=", 0.15),
}
"""What a fitted RAPO should come to with the constant aggressive action; selectivity from
`SELECTIVE_FROM` nodes on, where stimuli are far enough apart."""
SELECTIVE_FROM = 500


def results(contents: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per network, V_sens, policy and kernel: pooled ratios, their intervals, means."""
    rows = []
    for content in contents:
        for row in content["rows"]:
            flat = {name: content[name] for name in ("network", "sensitive", "nodes", "v_sens")}
            flat |= {"policy": row["policy"], "kernel": row["kernel"]}
            for name in POOLED:
                found = row["pooled"][name]
                flat |= {
                    name: found["ratio"],
                    f"{name}_low": found["low"],
                    f"{name}_high": found["high"],
                }
            flat |= {(f"mean_{n}" if n in POOLED else n): row["means"][n] for n in MEANS}
            rows.append(flat | {"heavy_tailed": row["heavy_tailed"]})
    return pd.DataFrame(rows)


def networks(contents: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A row per network: its size, what the fit found, and what loading and fitting took."""
    rows = []
    for content in contents:
        fit = content["fit"]
        plain = next(r for r in content["rows"] if r["kernel"] == "full, not fitted")
        rows.append(
            {
                **{
                    name: content[name]
                    for name in (
                        "network",
                        "sensitive",
                        "nodes",
                        "edges",
                        "v_sens",
                        "components",
                        "capped_edges",
                    )
                },
                "regions": fit["count"],
                "spec": fit["spec"],
                "tau": fit["params"]["tau"],
                "fit_odds": fit["odds"],
                "share": fit["share"],
                "reached": fit["reached"],
                "share_not_fitted": plain["point"]["share"],
                "load_seconds": content["load_seconds"],
                "fit_seconds": content["fit_seconds"],
            }
        )
    return pd.DataFrame(rows)


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """The bars on every network under the fitted kernel and the constant aggressive action."""
    chosen = table[(table["policy"] == "aggressive") & (table["kernel"] == "full")]
    rows = []
    for row in chosen.to_dict("records"):
        cells = {"network": row["network"], "V_sens": row["sensitive"], "nodes": row["nodes"]}
        for name, (sign, bar) in BARS.items():
            value = row[name]
            if name == "Selectivity" and row["nodes"] < SELECTIVE_FROM:
                cells[f"{name} {sign} {bar:g}"] = f"({value:.2f})"
                continue
            holds = value <= bar if sign == "<=" else value >= bar
            calibrated = " (calibrated)" if name == "OddsRatio" else ""
            cells[f"{name}{calibrated} {sign} {bar:g}"] = f"{value:.2f}{'' if holds else ' MISSED'}"
        rows.append(cells)
    return pd.DataFrame(rows)


def printed(table: pd.DataFrame) -> pd.DataFrame:
    """The results with two digits, as pages show them."""
    shown = []
    for row in table.to_dict("records"):
        cell = {
            name: f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"
            for name in ("RAG", "SM_R", "SM_vs_P0", "ReturnKept")
        }
        shown.append(
            {
                "network": row["network"],
                "V_sens": row["sensitive"],
                "policy": row["policy"],
                "kernel": row["kernel"],
                "OddsRatio": f"{row['OddsRatio']:.2f}",
                **cell,
                "selectivity": "" if pd.isna(row["Selectivity"]) else f"{row['Selectivity']:.2f}",
            }
        )
    return pd.DataFrame(shown)
