"""The figure of the size study: reduction and utility at every size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rapo.paper.paper import SIZES_REDUCTION, SIZES_UTILITY
from rapo.paper.studies.graph_means import FEW
from rapo.rsd.statistics import MeanInterval


def sizes_figure(rows: dict[int, dict[str, MeanInterval]]) -> Any:
    """Draw reduction and utility over the number of nodes, with the paper's ranges shaded."""
    from rapo.html.figures import COLOURS, new_figure, tidy

    figure, axes = new_figure(1, 2, width=10, height=3.9)
    sizes = np.array(list(rows))
    panels = (
        ("Replay reduction by size", "replay reduction, 1 - RAG", SIZES_REDUCTION),
        ("Utility of RAPO by size", "Replay return over GE's", SIZES_UTILITY),
    )
    for ax, name, (title, label, ends) in zip(axes, ("reduction", "utility"), panels, strict=True):
        ax.axhspan(*ends, color="#D9E8F3", zorder=0, lw=0)
        ax.text(
            0.99,
            ends[0],
            "paper",
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="bottom",
            fontsize=9,
            color="#5B7A94",
        )
        _line(ax, sizes, [row[name] for row in rows.values()], COLOURS["RAPO"], "RAPO", "o")
        if name == "reduction":
            still = [row["RAG_PM-ST"] for row in rows.values()]
            gone = [
                MeanInterval(1 - t.mean, t.std, 1 - t.high, 1 - t.low, t.n, t.undefined)
                for t in still
            ]
            _line(ax, sizes, gone, COLOURS["PM-ST"], "PM-ST", "s")
            ax.axhline(0, color="#CBD0D6", lw=0.9, ls=(0, (4, 3)), zorder=1)
            ax.legend(frameon=False, fontsize=9, loc="best")
        ax.set_xscale("log")
        ax.set_xticks(sizes, [str(n) for n in sizes])
        ax.minorticks_off()
        ax.set_xlim(sizes.min() / 1.3, sizes.max() * 1.5)
        low = min(0.0, *(1 - row["RAG_PM-ST"].mean for row in rows.values()))
        ax.set_ylim(max(low, -0.5) - 0.12 if name == "reduction" else 0.5, 1.05)
        ax.set_xlabel("nodes |V|")
        ax.set_ylabel(label)
        ax.set_title(title, fontsize=11)
        tidy(ax)
    return figure


def _line(
    ax: Any, x: Any, intervals: Sequence[MeanInterval], colour: str, label: str, marker: str
) -> None:
    mean = np.array([t.mean for t in intervals])
    half = np.array(
        [[t.mean - t.low, t.high - t.mean] if t.n >= FEW else [0.0, 0.0] for t in intervals]
    )
    ax.errorbar(
        x,
        mean,
        half.T,
        color=colour,
        marker=marker,
        ms=5.5,
        lw=1.6,
        elinewidth=1.3,
        capsize=2.5,
        label=label,
        zorder=3,
    )
