"""The picture of the networks study: what the fit changes, network by network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rapo.html.figures import COLOURS, new_figure, tidy
from rapo.paper.studies.networks.plan import UNFITTED

PANELS = (
    ("OddsRatio", "OddsRatio (calibrated)", 0.5),
    ("SM_R", "SM-R, pooled", 0.6),
    ("SM_vs_P0", "sensitive mass over P0's", 0.3),
    ("ReturnKept", "return kept", 0.75),
)
ROWS = (
    ("aggressive", UNFITTED, "paper's constants", "#9AA0A6", "o"),
    ("aggressive", "full", "fitted, constant action", COLOURS["RAPO"], "D"),
    ("RAPO", "full", "fitted, trained policy", COLOURS["off@rep"], "s"),
)


def plot_networks(table: pd.DataFrame) -> tuple[Any, Any]:
    """Draw a row per network and a panel per metric; a dashed line is the limit of each metric."""
    titles = list(dict.fromkeys(table["title"]))
    figure, axes = new_figure(
        1, len(PANELS), width=11.5, height=1.6 + 0.32 * len(titles), sharey=True
    )
    y = np.arange(len(titles))[::-1]
    for ax, (metric, title, limit) in zip(axes, PANELS, strict=True):
        tidy(ax)
        ax.axvline(limit, color="#B0B4BA", lw=1.2, ls=(0, (4, 3)), zorder=1)
        for i, (policy, kernel, label, colour, marker) in enumerate(ROWS):
            part = table[(table["policy"] == policy) & (table["kernel"] == kernel)]
            part = part.set_index("title").loc[titles]
            height = y + 0.18 * (1 - i)
            if f"{metric}_low" in table:
                ends = part[f"{metric}_low"], part[f"{metric}_high"]
                ax.hlines(height, *ends, color=colour, lw=1.4, alpha=0.6, zorder=2)
            ax.scatter(
                part[metric], height, s=26, color=colour, marker=marker, label=label, zorder=3, lw=0
            )
        ax.set_title(title, fontsize=10.5)
        ax.set_xlim(0, max(1.15, ax.get_xlim()[1]))
    axes[0].set_yticks(y, titles, fontsize=9)
    axes[0].set_ylim(-0.6, len(titles) - 0.4)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(ROWS), frameon=False)
    return figure, axes
