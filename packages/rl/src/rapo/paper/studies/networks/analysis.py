"""Tables of the networks study, as they are printed."""

from __future__ import annotations

import pandas as pd

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
