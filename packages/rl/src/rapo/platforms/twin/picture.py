"""The phase plane: paths of the units, the limit of damage, and scars."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap

from rapo.platforms.canvas import INK, NIGHT, Canvas, when
from rapo.platforms.twin.reactor import ACTIVATION, FEED_C, FEED_T, HEAT, RATE, TRANSFER, Array

if TYPE_CHECKING:
    from rapo.platforms.twin.platform import Twin

FAINT, DAMAGE = "#3a4660", "#ff6b5e"
SEEN_C, SEEN_T = (0.0, 0.26), (358.0, 410.0)
"""mol/L and K of the picture."""
TRAIL = 24
"""Steps of a path that are drawn."""
MESH = (240, 200)


class Picture:
    """Frames of a twin. Paths join the steps that were drawn.

    Args:
        twin: what to draw.
    """

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._trails: dict[int, deque[tuple[tuple[int, int], Array]]] = {}
        self._canvas = Canvas((9, 6.4), (0.08, 0.1, 0.84, 0.8), bare=False)
        figure, ax = self._canvas.figure, self._canvas.ax
        ax.set(xlim=SEEN_C, ylim=SEEN_T)
        ax.set_xlabel("A left in the reactor, mol/L", color=INK)
        ax.set_ylabel("temperature, K", color=INK)
        ax.tick_params(colors=INK)
        for spine in ax.spines.values():
            spine.set_color(FAINT)
        self._drift(ax)
        c, T = (np.linspace(*ends, n) for ends, n in zip((SEEN_C, SEEN_T), MESH, strict=True))
        self._mesh = np.stack(np.meshgrid(c, T), axis=-1).reshape(-1, 2)
        self._scars = ax.imshow(
            np.zeros((MESH[1], MESH[0])), extent=(*SEEN_C, *SEEN_T), origin="lower", aspect="auto",
            cmap=_see_through("inferno"), vmin=0, vmax=1, zorder=2, interpolation="nearest",
        )  # fmt: skip
        bar = figure.colorbar(self._scars, cax=figure.add_axes((0.93, 0.1, 0.018, 0.8)))
        bar.ax.set_title("1 - psi", color=INK, fontsize=10)
        bar.ax.tick_params(colors=INK)
        bar.outline.set_edgecolor(FAINT)
        damage = twin.setting.damage
        line = ax.axhline(damage, color=DAMAGE, lw=1.4, ls=(0, (6, 3)), zorder=3)
        caption = ax.text(
            SEEN_C[1] * 0.99, damage + 0.6, f"damage above {damage:g} K (hidden)", color=DAMAGE,
            ha="right", fontsize=11, zorder=3,
        )  # fmt: skip
        c_rest, T_rest = twin.plant.rest.T
        rest = ax.scatter(c_rest, T_rest, s=26, facecolors="none", edgecolors="#7fd1a8", zorder=4)
        self._paths: Any = LineCollection([], zorder=5, capstyle="round")
        ax.add_collection(self._paths)
        self._units: Any = ax.scatter([], [], s=44, linewidths=0.8, edgecolors=NIGHT, zorder=6)
        above = (line, caption, rest, self._paths, self._units)
        self._canvas.finish(self._scars, *ax.spines.values(), *above)

    def draw(self, episode: int) -> Array:
        """A picture (640, 900, 3) uint8 of the present step."""
        twin = self._twin
        now = (int(twin.phase[episode]), int(twin.clock[episode]))
        trail = self._trails.setdefault(episode, deque(maxlen=TRAIL))
        if trail and (now[0] != trail[-1][0][0] or now[1] < trail[-1][0][1]):
            trail.clear()
        at = np.stack([twin.state["c"][episode], twin.state["T"][episode]], axis=1)
        if not trail or trail[-1][0] != now:
            trail.append((now, at))
        self._scars.set_data(1 - twin.psi_at(self._mesh, episode).reshape(MESH[1], MESH[0]))
        self._draw_paths(np.array([points for _, points in trail]))
        hot = at[:, 1] > twin.setting.damage
        self._units.set_offsets(at)
        self._units.set_facecolors([DAMAGE if h else "#8fd3ff" for h in hot])
        return self._canvas.pixels(
            f"{len(at)} reactors: {when(twin, episode)}   "
            f"{int(twin.reach(twin.state)[episode])} warm, {int(hot.sum())} in damage"
        )

    def _draw_paths(self, points: Array) -> None:
        """Lines from older to newer points (n, m, 2), brighter towards now."""
        pieces = np.stack([points[:-1], points[1:]], axis=2)  # (n - 1, m, 2 ends, 2)
        age = np.repeat(np.linspace(0, 1, max(len(pieces), 1))[: len(pieces)], points.shape[1])
        colours = colormaps["Blues"](0.35 + 0.5 * age)
        colours[:, 3] = 0.12 + 0.75 * age
        self._paths.set_segments(list(pieces.reshape(-1, 2, 2)))
        self._paths.set_color(colours)
        self._paths.set_linewidths(0.8 + 1.4 * age)

    def _drift(self, ax: Any) -> None:
        """Streamlines of the textbook's unit at the middle set-point, faint."""
        middle = self._twin.set_points[len(self._twin.set_points) // 2]
        c, T = np.meshgrid(np.linspace(*SEEN_C, 50), np.linspace(*SEEN_T, 50))
        r = RATE * np.exp(-ACTIVATION / T) * c
        dT = FEED_T - T + HEAT * r + TRANSFER * (middle - T)
        ax.streamplot(
            c, T, FEED_C - c - r, dT, color=FAINT, density=1.1, linewidth=0.7, arrowsize=0.7,
            zorder=1,
        )  # fmt: skip


def _see_through(name: str) -> Any:
    """A colour map whose low end lets the background through."""
    colours = colormaps[name](np.linspace(0.15, 0.8, 256))
    colours[:, 3] = np.clip(np.linspace(0, 1.6, 256), 0, 0.85)
    return ListedColormap(colours)
