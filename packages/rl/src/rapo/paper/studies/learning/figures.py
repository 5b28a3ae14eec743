"""The plane of return and trace: policies, constants and what their mixtures attain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

GREY = "#6B7280"
MARKS = {"greedy": ("D", "#B45309"), "RAPO-x": ("s", "#8B5CF6")}


def frontier(corners: Any) -> Any:
    """Corners (m, 2) of the upper left edge of what mixtures attain, by rising trace.

    Args:
        corners: (k, 2) return and trace.
    """
    kept: list[Any] = []
    for point in sorted(corners.tolist(), key=lambda p: (p[1], -p[0])):
        if kept and point[0] <= kept[-1][0]:
            continue  # another has as much return at less trace
        while len(kept) > 1 and _turns_up(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return np.array(kept)


def _turns_up(a: Any, b: Any, c: Any) -> bool:
    """Whether the return rises faster from b to c than from a to b: then b is inside."""
    return bool((b[0] - a[0]) * (c[1] - b[1]) <= (c[0] - b[0]) * (b[1] - a[1]))


def plane_figure(units: Mapping[str, pd.DataFrame], constants: Sequence[str]) -> Any:
    """Two panels: all rows, and closer those under RAPO's kernel."""
    from rapo.html.figures import COLOURS, new_figure, tidy

    means = {name: frame[["ReplayRet", "trace"]].mean().to_numpy() for name, frame in units.items()}
    near = [name for name in means if name not in ("GE", "PM-ST")]
    corners = np.array([means[name] for name in constants])
    edge = frontier(corners)
    figure, axes = new_figure(1, 2, width=11.0, height=4.4)
    for ax, names in zip(axes, (list(means), near), strict=True):
        shown = np.array([means[name] for name in names])
        wide, high = np.ptp(shown[:, 1]) or 0.1, np.ptp(shown[:, 0]) or 0.1
        right = shown[:, 1].max() + 0.28 * wide
        bottom = shown[:, 0].min() - 0.12 * high
        outline = [
            (edge[0, 1], bottom),
            *((t, r) for r, t in edge),
            (right, edge[-1, 0]),
            (right, bottom),
        ]
        ax.fill(*zip(*outline, strict=True), color="#E5E7EB", lw=0, zorder=0)
        ax.plot(edge[:, 1], edge[:, 0], color=GREY, lw=1.2, zorder=1)
        for name in names:
            marker, colour = MARKS.get(name, ("o", COLOURS.get(name, GREY)))
            score, trace = means[name]
            ax.plot(trace, score, marker, color=colour, ms=7, zorder=3)
            if ax is axes[0] and name in near and name != "RAPO":
                continue  # too close to each other to be named here
            fixed = name in constants
            ax.annotate(
                name.removeprefix("deformed-"),
                (trace, score),
                color=colour,
                fontsize=9,
                zorder=4,
                xytext=(7, -11) if fixed else (-6, 6),
                textcoords="offset points",
                ha="left" if fixed else "right",
            )
        ax.set_xlim(shown[:, 1].min() - 0.15 * wide, right)
        ax.set_ylim(bottom, shown[:, 0].max() + 0.15 * high)
        ax.set_xlabel("trace: mean sum of $G$ over the episode")
        ax.set_ylabel("ReplayRet")
        tidy(ax)
    axes[0].set_title("all rows", fontsize=11)
    axes[1].set_title("closer: under RAPO's kernel", fontsize=11)
    return figure
