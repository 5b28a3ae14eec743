"""The network on its map: loads of the links, grey links and scars."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from rapo.platforms.canvas import FULL_SCAR, INK, SCAR, Canvas
from rapo.platforms.routing.demand import Demand
from rapo.platforms.routing.topology import Array

QUIET, GREY = "#2e394c", "#b9c0cc"
FULL_LOAD = 20.0
"""Flows on a link that are drawn at full strength."""


class Picture:
    """Frames of one network. The figure is made once; its lines change.

    Args:
        demand: what to draw.
    """

    def __init__(self, demand: Demand) -> None:
        t = demand.topology
        self._canvas = Canvas((9, 6.4), (0.03, 0.08, 0.94, 0.83))
        ax = self._canvas.ax
        ax.set_aspect(1 / np.cos(np.deg2rad(t.place[:, 1].mean())), adjustable="datalim")
        lines = list(t.place[t.ends])
        self._scars: Any = LineCollection(lines, colors=SCAR, zorder=1, capstyle="round")
        self._loads: Any = LineCollection(lines, zorder=2, capstyle="round")
        grey = LineCollection(
            [lines[r] for r in np.flatnonzero(demand.grey)], colors=GREY, linewidths=1.6,
            linestyles=(0, (1.2, 1.6)), zorder=3,
        )  # fmt: skip
        for collection in (self._scars, self._loads, grey):
            ax.add_collection(collection)
        degree = np.bincount(t.ends.ravel(), minlength=len(t.place))
        x, y = t.place.T
        nodes = ax.scatter(x, y, s=8 + 6 * degree, c=INK, linewidths=0, zorder=4)
        ax.autoscale_view()
        self._canvas.legend(
            [
                Line2D([], [], color=colormaps["YlGnBu_r"](0.75), lw=5, label="flows on a link"),
                Line2D([], [], color=GREY, ls=(0, (1.2, 1.6)), lw=1.6, label="grey link (hidden)"),
                Line2D([], [], color=SCAR, lw=9, alpha=0.5, label="scar"),
            ]
        )
        self._canvas.finish(self._scars, self._loads, grey, nodes)

    def draw(self, load: Array, scar: Array, title: str) -> Array:
        """A picture (640, 900, 3) uint8 of loads and scars (R,) each."""
        full = np.clip(load / FULL_LOAD, 0, 1)
        colours = colormaps["YlGnBu_r"](0.35 + 0.6 * full)
        colours[load == 0] = to_rgba(QUIET)
        self._loads.set_color(colours)
        self._loads.set_linewidths(1.2 + 7 * full)
        bad = np.clip(scar / FULL_SCAR, 0, 1)
        self._scars.set_linewidths(np.where(bad > 0, 8 + 10 * bad, 0))
        self._scars.set_alpha(0.15 + 0.5 * bad)
        return self._canvas.pixels(title)
