"""The picture of the networks study: what the fit changes, network by network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rapo.html.figures import COLOURS, new_figure, tidy

PANELS = (
    ("OddsRatio", "OddsRatio (calibrated)", 0.5),
    ("SM_R", "SM-R, pooled", 0.6),
    ("SM_vs_P0", "sensitive mass over P0's", 0.3),
    ("ReturnKept", "return kept", 0.75),
)
ROWS = (
    ("aggressive", "full, not fitted", "paper's constants", "#9AA0A6", "o"),
    ("aggressive", "full", "fitted, constant action", COLOURS["RAPO"], "D"),
    ("RAPO", "full", "fitted, trained policy", COLOURS["off@rep"], "s"),
)


def plot_networks(table: pd.DataFrame) -> tuple[Any, Any]:
    """A row per network, a panel per metric; the bar of each metric is a dashed line."""
    names = list(
        dict.fromkeys(zip(table["network"], table["sensitive"], table["nodes"], strict=True))
    )
    height = 1.6 + 0.32 * len(names)
    figure, axes = new_figure(1, len(PANELS), width=11.5, height=height, sharey=True)
    places = np.arange(len(names))[::-1]
    for ax, (metric, title, bar) in zip(axes, PANELS, strict=True):
        tidy(ax)
        ax.axvline(bar, color="#B0B4BA", lw=1.2, ls=(0, (4, 3)), zorder=1)
        for i, (policy, kernel, words, colour, marker) in enumerate(ROWS):
            chosen = table[(table["policy"] == policy) & (table["kernel"] == kernel)]
            indexed = chosen.set_index(["network", "sensitive"])
            values = [float(indexed.loc[(n, s), metric]) for n, s, _ in names]
            shift = 0.18 * (1 - i)
            if f"{metric}_low" in table:
                low = [float(indexed.loc[(n, s), f"{metric}_low"]) for n, s, _ in names]
                high = [float(indexed.loc[(n, s), f"{metric}_high"]) for n, s, _ in names]
                ax.hlines(places + shift, low, high, color=colour, lw=1.4, alpha=0.6, zorder=2)
            ax.scatter(
                values,
                places + shift,
                s=26,
                color=colour,
                marker=marker,
                label=words,
                zorder=3,
                linewidths=0,
            )
        ax.set_title(title, fontsize=10.5)
        ax.set_xlim(0, max(1.15, ax.get_xlim()[1]))
    axes[0].set_yticks(places, [label(*name) for name in names], fontsize=9)
    axes[0].set_ylim(-0.6, len(names) - 0.4)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(ROWS), frameon=False)
    return figure, axes


def label(network: str, sensitive: str, nodes: int) -> str:
    """A network, its V_sens unless that is a ball, and its size, in one line."""
    where = "" if sensitive == "ball" else f", {sensitive}"
    name = network.split("-")[0].replace("_", " ")
    return f"{name}{where} ({nodes:,})"
