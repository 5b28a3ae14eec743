"""The floor from above: shelves, robots and their routes, hidden hazards, and scars."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rapo.platforms.candidates import Array
from rapo.platforms.canvas import FULL_SCAR, INK, NIGHT, SCAR, Canvas
from rapo.platforms.warehouse.orders import Orders

FLOOR, SHELF, OUT, LOADED = "#1b2331", "#46546b", "#59c2ff", "#ffd166"
STOPPED, HAZARD = "#ff9f1c", "#c77dff"


class Picture:
    """Frames of one floor. The figure is made once; its robots and scars change.

    Args:
        orders: what to draw.
        zone: rows and columns of a zone.
    """

    def __init__(self, orders: Orders, zone: tuple[int, int]) -> None:
        free = orders.floor.free
        rows, columns = free.shape
        self._columns = columns
        self._canvas = Canvas((12, 5.9), (0.02, 0.1, 0.96, 0.8))
        ax = self._canvas.ax
        ax.imshow(free, cmap=ListedColormap([SHELF, FLOOR]), interpolation="nearest")
        boxes = _boxes(orders, zone)
        self._scars: Any = PolyCollection(boxes, facecolors=SCAR, linewidths=0, zorder=2)
        hidden = [boxes[r] for r in np.flatnonzero(orders.hazard)]
        hazards = PolyCollection(
            hidden, facecolors="none", edgecolors=HAZARD, linewidths=1.3, linestyles=(0, (2, 1.5)),
            zorder=3,
        )  # fmt: skip
        ax.add_collection(self._scars)
        ax.add_collection(hazards)
        y, x = np.divmod(orders.doors, columns)
        doors = ax.scatter(x, y, s=34, c=INK, marker="s", linewidths=0, zorder=4)
        self._ways: Any = ax.plot([], [], color=OUT, alpha=0.35, lw=1.4, zorder=4)[0]
        self._robots: Any = ax.scatter([], [], s=26, zorder=5, linewidths=1.4)
        ax.set_xlim(-0.5, columns - 0.5)
        ax.set_ylim(rows - 0.5, -0.5)
        dot: dict[str, Any] = {"ls": "", "marker": "o", "markersize": 6}
        self._canvas.legend(
            [
                Line2D([], [], color=OUT, label="on the way out", **dot),
                Line2D([], [], color=LOADED, label="picking, or back", **dot),
                Line2D([], [], color=NIGHT, markeredgecolor=STOPPED, label="stopped", **dot),
                Line2D([], [], color=INK, label="door", **{**dot, "marker": "s"}),
                Patch(fill=False, edgecolor=HAZARD, ls=(0, (2, 1.5)), label="hazard (hidden)"),
                Patch(color=SCAR, alpha=0.5, label="scar"),
            ]
        )
        self._canvas.finish(self._scars, hazards, doors, self._ways, self._robots)

    def draw(self, ahead: list[Array], back: Array, stopped: Array, scar: Array, title: str) -> Any:
        """A picture (590, 1200, 3) uint8.

        Args:
            ahead: cells of every robot on the floor, from its present cell on.
            back: bool, robots that pick or have picked.
            stopped: bool, robots that are stopped.
            scar: (R,).
            title: a line above the picture.
        """
        here = np.array([cells[0] for cells in ahead], np.int64)
        y, x = np.divmod(here, self._columns)
        self._robots.set_offsets(np.column_stack([x, y]))
        colours = np.where(back, LOADED, OUT)
        self._robots.set_facecolors(colours)
        self._robots.set_edgecolors(np.where(stopped, STOPPED, colours))
        line = np.array([v for cells in ahead for v in (*cells, -1)], np.int64)
        y, x = np.where(line < 0, np.nan, np.divmod(line, self._columns))
        self._ways.set_data(x, y)
        self._scars.set_alpha(0.75 * np.clip(scar / FULL_SCAR, 0, 1))
        return self._canvas.pixels(title)


def _boxes(orders: Orders, zone: tuple[int, int]) -> list[Array]:
    """Corners (4, 2) of every region."""
    rows, columns = orders.floor.free.shape
    cell = np.zeros(len(orders.hazard), np.int64)
    used = np.flatnonzero(orders.zone_of >= 0)
    cell[orders.zone_of[used]] = used
    boxes = []
    for y, x in zip(*np.divmod(cell, columns), strict=True):
        top, left = y // zone[0] * zone[0], x // zone[1] * zone[1]
        low, right = min(top + zone[0], rows), min(left + zone[1], columns)
        corners = [(left, top), (right, top), (right, low), (left, low)]
        boxes.append(np.array(corners) - 0.5)
    return boxes
