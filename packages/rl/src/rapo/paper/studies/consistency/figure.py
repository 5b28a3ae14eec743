"""The picture of the study: what the readings give, and the range that theory leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rapo.html.figures import COLOURS, new_figure, tidy
from rapo.paper.paper import ODDS_RATIO, TABLE1
from rapo.paper.studies.graph_means import mean_of
from rapo.paper.studies.verdicts import FULL, STDS

MARKERS = {"echo": "D", "compact": "s", "bistable": "^"}
_GREY = "#6B7280"


def plot_consistency(values: Mapping[str, pd.DataFrame], spread: pd.DataFrame) -> tuple[Any, Any]:
    """Draw two panels: the readings beside the paper, and what mean field allows.

    Args:
        values: RAG and off_AUC_R by reading, a row per graph.
        spread: theta, low and high of `spread_curve`.
    """
    figure, axes = new_figure(1, 2, width=11.5, height=5.2)
    figure.get_layout_engine().set(wspace=0.06)
    _draw_readings(axes[0], values)
    _draw_theory(axes[1], spread)
    return figure, axes


def _draw_readings(ax: Any, values: Mapping[str, pd.DataFrame]) -> None:
    tidy(ax)
    (rag, rag_std), (off, off_std) = TABLE1["RAPO"]["RAG"], TABLE1["off@rep"]["AUC_R"]
    ax.axhline(1, color="#B0B4BA", lw=1.1, ls=(0, (4, 3)), zorder=1)
    ax.fill_between(
        [rag - STDS * rag_std, rag + STDS * rag_std],
        1 - FULL,
        1 + FULL,
        color="#F6D9C8",
        zorder=1,
        lw=0,
        label="both of the paper's numbers hold",
    )
    style = {"mec": "white", "mew": 0.8, "elinewidth": 1.3, "zorder": 5}
    colour = COLOURS["off@rep"]
    ax.errorbar(
        rag, off, off_std, rag_std, "*", ms=15, color=colour, label="the paper, ± std", **style
    )
    for name, frame in values.items():
        x, y = mean_of(frame["RAG"]), mean_of(frame["off_AUC_R"])
        marker = MARKERS.get(name, "o")
        ax.plot(x, y, marker, ms=9.5, mfc="white", mec="#111827", mew=1.7, zorder=6, label=name)
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ticks = [t for t in (0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 10, 20) if low <= t <= high]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_xlabel("RAPO's RAG")
    ax.set_ylabel("off@rep AUC-R")
    ax.set_title("Suppressed replay comes with a large off@rep", fontsize=10.5)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, fontsize=9, frameon=False)


def _draw_theory(ax: Any, spread: pd.DataFrame) -> None:
    tidy(ax)
    theta, low, high = (spread[name].to_numpy(float) for name in ("theta", "low", "high"))
    both = high > low
    ax.fill_between(theta, low, high, where=both, color=COLOURS["PM-ST"], alpha=0.16, lw=0)
    ax.plot(theta, high, color=COLOURS["RAPO"], lw=2)
    ax.plot(theta, low, color=COLOURS["off@rep"], lw=2)
    ax.axvline(ODDS_RATIO, color=_GREY, lw=1.2, ls=(0, (4, 3)))
    ax.set_xlim(theta.min(), theta.max())
    ax.set_ylim(1, 8)
    label = f"the paper's {ODDS_RATIO:g}"
    ax.text(ODDS_RATIO + 0.008, 7.75, label, fontsize=9, color=_GREY, va="top")
    ax.text(0.19, 5.6, "above, Replay ignites", fontsize=9, color=COLOURS["RAPO"])
    ax.text(0.125, 2.35, "below, Exposure dies", fontsize=9, color=COLOURS["off@rep"])
    if both.any():
        ax.text(0.125, 4.35, "both hold", fontsize=9.5, color="#00694D")
    ax.set_xlabel("odds ratio of the scar")
    ax.set_ylabel("R, nodes reached by an active one")
    ax.set_title("Mean field: where off@rep can be near 1", fontsize=10.5)
