"""The figure of Table 1: every cell, ours and the paper's."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.paper.paper import METRICS, TABLE1
from rapo.paper.studies.graph_means import TITLES
from rapo.rsd.bootstrap import Bootstrap
from rapo.rsd.statistics import mean_interval


def interval_of(values: Any, several: bool) -> tuple[float, float]:
    """Return the 95% interval over graph means; NaN where there is one graph."""
    if not several:
        return float("nan"), float("nan")
    interval = mean_interval(np.asarray(values, float))
    return interval.low, interval.high


def cells_figure(
    units: dict[str, dict[str, Any]], pooled: dict[str, dict[str, Bootstrap]], several: bool
) -> Any:
    """Draw a panel per metric and a line per method.

    Our means are filled, the paper's are hollow, and strokes are the ratios of means in `pooled`.
    """
    from rapo.html.figures import COLOURS, new_figure, tidy

    figure, axes = new_figure(1, len(METRICS), width=11.5, height=3.6, sharey=True)
    methods = list(units)[::-1]
    for ax, metric in zip(axes, METRICS, strict=True):
        for y, method in enumerate(methods):
            paper, std = TABLE1[method][metric]
            ax.plot([paper - std, paper + std], [y + 0.16] * 2, color="#9AA0A8", lw=1.2, zorder=1)
            ax.plot(paper, y + 0.16, "o", mfc="white", mec="#6B7280", ms=5.5, zorder=2)
            low, high = interval_of(units[method][metric], several)
            value = float(units[method][metric].mean())
            colour = COLOURS.get(method, "#444444")
            if several:
                ax.plot([low, high], [y - 0.16] * 2, color=colour, lw=1.6, zorder=3)
            ax.plot(value, y - 0.16, "o", color=colour, ms=6, zorder=4)
            if metric in pooled[method]:
                ratio = pooled[method][metric].estimate
                ax.plot(ratio, y - 0.16, "|", color="#1F2328", ms=10, mew=1.4, zorder=5)
        if metric != "ReplayRet":
            ax.axvline(1, color="#CBD0D6", lw=0.9, ls=(0, (4, 3)), zorder=0)
            if metric != "RAG":
                ax.set_xscale("log")
                ax.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
                ax.minorticks_off()
        ax.set_title(TITLES[metric], fontsize=11)
        ax.set_yticks(range(len(methods)), methods)
        tidy(ax)
    return figure
