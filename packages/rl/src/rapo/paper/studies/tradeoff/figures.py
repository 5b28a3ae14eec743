"""Return against replay, the effect of w_H, and how the shield was tuned."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from rapo.paper.paper import DIMINISHING_W_H
from rapo.paper.studies.graph_means import FEW, TITLES, mean_of
from rapo.paper.studies.tradeoff.plan import DEFAULT, Groups, Means, Point
from rapo.rsd.statistics import mean_interval

ETA_COLOURS = ("#9ECAE1", "#5BA3CF", "#0072B2", "#08306B")
"""Light to dark blue: eta from small to large, RAPO's own colour for the default."""
EDGE = 1.6
"""Right end of the axis: larger ratios, which few episodes carry, stand at it with a number."""
_BESIDE: dict[str, Any] = {"fontsize": 8.5, "textcoords": "offset points", "color": "#3B4452"}
"""Style of a text beside a point."""
MARKERS = {"GE": "o", "DR": "v", "PM-ST": "s", "PM-RNN": "D", "Shield-UM": "P"}


def _shade(eta: float, points: Sequence[Point]) -> str:
    """Choose the blue of an eta; the default has RAPO's own."""
    if eta == DEFAULT.eta:
        return ETA_COLOURS[2]
    smaller = sorted({p.params.eta for p in points if p.params.eta < DEFAULT.eta})
    if eta in smaller:
        return ETA_COLOURS[max(0, 2 - len(smaller) + smaller.index(eta))]
    return ETA_COLOURS[3]


def _by_eta(points: Sequence[Point]) -> dict[float, list[Point]]:
    """Group points by eta, each group along w_H."""
    ordered = sorted(points, key=lambda p: (p.params.eta, p.params.w_H))
    return {eta: list(group) for eta, group in groupby(ordered, key=lambda p: p.params.eta)}


def pareto_figure(groups: Groups, means: Means) -> Any:
    """Draw the Replay return against RAG, AUC-R and SM-R."""
    from rapo.html.figures import COLOURS, new_figure, tidy

    figure, axes = new_figure(1, 3, width=12.5, height=4.6, sharey=True)

    def xy(points: Sequence[Point], metric: str) -> Any:
        """Return the means of several points, (2, points)."""
        columns = (metric, "ReplayRet")
        return np.array([[mean_of(means[p.tasks][c]) for p in points] for c in columns])

    for ax, metric in zip(axes, ("RAG", "AUC_R", "SM_R"), strict=True):
        ax.axvline(1, color="#9AA0A8", lw=0.9, ls=(0, (4, 3)), zorder=0)
        for eta, points in _by_eta(groups["RAPO"]).items():
            x, y = xy(points, metric)
            colour, label = _shade(eta, groups["RAPO"]), f"RAPO, eta {eta:g}, along w_H"
            ax.plot(x, y, "o-", color=colour, ms=4.5, lw=1.6, zorder=3, label=label)
            if eta == DEFAULT.eta and len(points) > 1 and metric == "RAG":
                for i, shift, side in ((0, (8, -11), "left"), (-1, (-14, 6), "right")):
                    name = f"w_H {points[i].params.w_H:g}"
                    ax.annotate(name, (x[i], y[i]), xytext=shift, ha=side, **_BESIDE)
        if len(groups["tau"]) > 1:
            style = {"color": "#7A5FB5", "mfc": "white", "ms": 5.5, "lw": 1.1, "zorder": 4}
            ax.plot(*xy(groups["tau"], metric), "^--", label="RAPO, along tau", **style)
        changed = [p for p in groups["retrained"] if p.params != DEFAULT]
        if changed:
            style = {"mfc": "white", "mec": COLOURS["RAPO"], "ms": 11, "zorder": 5}
            label = "RAPO trained under changed fields"
            ax.plot(*xy(changed, metric), "*", label=label, **style)
        for point in groups["baselines"]:
            (x,), (y,) = xy([point], metric)
            if x > EDGE:
                text = {"ha": "right", "va": "center", **_BESIDE}
                ax.annotate(f"{x:.1f} →", (EDGE, y), xytext=(-7, 0), **text)
            style = {"color": COLOURS[point.name], "ms": 7.5, "mec": "white", "mew": 0.6}
            x, marker = min(x, EDGE), MARKERS[point.name]
            ax.plot(x, y, marker, zorder=6, label=point.name, ls="", **style)
        if groups["Shield"]:
            x, y = xy(sorted(groups["Shield"], key=lambda p: p.threshold or 0), metric)
            style = {"color": "#B5A900", "mfc": COLOURS["Shield"], "mec": "#6E6700", "ms": 7}
            label = "Shield, along its threshold"
            ax.plot(np.minimum(x, EDGE), y, "X-", lw=1.0, zorder=5, label=label, **style)
        ax.set_xlabel(TITLES[metric])
        ax.set_xlim(left=0)
        tidy(ax)
    axes[0].set_ylabel("ReplayRet")
    figure.suptitle(
        "Return against replay: RAPO under changed fields, and methods under P0", fontsize=12
    )
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def w_H_figure(points: Sequence[Point], means: Means) -> Any:
    """Draw RAG and ReplayRet along w_H, a line for each eta of the grid's points."""
    from rapo.html.figures import new_figure, tidy

    figure, axes = new_figure(1, 2, width=9.5, height=3.7)
    panels = (("RAG", "Replay by w_H and eta"), ("ReplayRet", "Return by w_H and eta"))
    for ax, (metric, title) in zip(axes, panels, strict=True):
        ax.axvline(DIMINISHING_W_H, color="#9AA0A8", lw=1, ls=":", zorder=0)
        for eta, line in _by_eta(points).items():
            intervals = [mean_interval(means[p.tasks][metric]) for p in line]
            w = [p.params.w_H for p in line]
            colour, y = _shade(eta, points), [t.mean for t in intervals]
            ax.plot(w, y, "o-", color=colour, ms=4.5, lw=1.6, label=f"eta {eta:g}")
            if eta == DEFAULT.eta and intervals[0].n >= FEW:
                low, high = [t.low for t in intervals], [t.high for t in intervals]
                ax.fill_between(w, low, high, color=colour, alpha=0.15, lw=0)
        ax.set_xlabel("w_H")
        ax.set_ylabel(metric)
        ax.set_title(title, fontsize=11)
        tidy(ax)
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def tuning_figure(tuned: pd.DataFrame) -> Any:
    """Draw the trials of every Shield-UM, and the threshold that was taken."""
    from rapo.html.figures import COLOURS, new_figure, tidy

    figure, ax = new_figure(1, 1, width=6.5, height=3.9)
    for _, trials in tuned.groupby("graph_seed"):
        line = trials.sort_values("threshold")
        gap = line["ReplayRet"] - line["target"]
        ax.plot(line["threshold"], gap, "o-", color=COLOURS["Shield-UM"], ms=3.5, lw=1, alpha=0.65)
        taken = line["taken"]
        ax.plot(
            line["threshold"][taken], gap[taken], "o", mfc="white", mec="#7A5200", ms=8, mew=1.5
        )
    ax.plot([], [], "o-", color=COLOURS["Shield-UM"], ms=3.5, lw=1, label="trials of one graph")
    ax.plot([], [], "o", mfc="white", mec="#7A5200", ms=8, mew=1.5, label="threshold taken")
    ax.axhline(0, color="#666666", lw=0.9)
    ax.axhspan(-0.02, 0.02, color="#EEEEEE", zorder=0, lw=0)
    ax.set_xlabel("threshold (expected sensitive mass over the aggressive policy's)")
    ax.set_ylabel("ReplayRet less RAPO's")
    ax.set_title("Shield-UM is tuned to RAPO's return, graph by graph", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    tidy(ax)
    return figure
