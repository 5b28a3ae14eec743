"""The two kinds of panels of a film: a graph with its scars, and a platform's own picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.envs.frame_cache import Pixels
from rapo.envs.render import ACTIVE, QUIET, SCAR, SENSITIVE, edge_lines, node_size, strongest_edges
from rapo.show.record import GraphView, PlatformView, Recording

Box = tuple[float, float, float, float]
"""Left, bottom, width and height, as shares of the figure."""

PAPER = "#FFFFFF"
LAND = "#E4F0F8"
"""Colour of the ground of V_sens where there is no scar."""
EMBER, FADING = "#8A4B00", "#F0C878"
"""Colours of the rim of an active node, and of a node that was active since the last frame."""
FULL = 0.72
"""Share of a scar's colour in the ground of a region that is closed."""
LEVELS = 24
"""Number of shades of a scar: few enough for the palette of a GIF."""
MARGIN = 0.06
"""Free space around the unit square of the positions."""
MESH = 400
"""Cells along a side of the grid that the outline of V_sens is traced on."""


class GraphPanel:
    """A graph: V_sens is outlined, scars tint their regions, active nodes are lit.

    Args:
        figure: the figure to draw in.
        box: the part of the figure to draw in.
        recording: of a graph.
    """

    def __init__(self, figure: Any, box: Box, recording: Recording) -> None:
        view = recording.view
        assert isinstance(view, GraphView)
        self._recording, self._view = recording, view
        self._graph, self._size = view.graph, node_size(view.graph.n)
        ax = self._ax = figure.add_axes(box)
        ax.set_axis_off()
        seen = (-MARGIN, 1 + MARGIN)
        ax.set(xlim=seen, ylim=seen, aspect="equal")
        self._draw_land()
        self._draw_network()
        size = self._size
        self._fading = ax.scatter([], [], c=FADING, linewidths=0, zorder=5)
        self._glow = ax.scatter([], [], s=6 * size, c=ACTIVE, linewidths=0, alpha=0.3, zorder=6)
        self._lit = ax.scatter(
            [], [], s=1.3 * size, c=ACTIVE, linewidths=0.9, edgecolors=EMBER, zorder=7
        )
        self.moving = [self._fading, self._glow, self._lit]
        share = FULL * np.linspace(0, 1, LEVELS + 1)[:, None] ** 0.8
        self._shift = share * (_colour(SCAR) - _colour(LAND))
        self.colours = np.rint(_colour(LAND) + self._shift).astype(np.uint8)
        """(LEVELS + 1, 3) colours of the ground, from no scar to a closed region."""

    def ground(self, colour: str) -> None:
        """Give the ground of V_sens another colour."""
        self._land.set_facecolor(colour)

    def settle(self, light: Pixels, dark: Pixels) -> None:
        """Find the pixels that scars will tint, and the share of ground in each.

        A pixel under a line or a node has less ground in it, or none.

        Args:
            light: (H, W, 3) the whole picture over the ground `LAND`.
            dark: (H, W, 3) the same picture over a black ground.
        """
        bottom, left = self._ax.bbox.y0, self._ax.bbox.x0
        own = np.zeros(light.shape[:2], np.bool_)
        last = light.shape[0] - int(bottom)
        own[max(last - int(self._ax.bbox.height) - 1, 0) : last + 1,
            int(left) : int(self._ax.bbox.x1) + 1] = True  # fmt: skip
        still = light.astype(np.float32)
        bare = ((still - dark) / _colour(LAND)).mean(axis=2).clip(0, 1)
        rows, columns = np.nonzero(own & (bare > 0.01))
        points = np.stack([columns + 0.5, light.shape[0] - rows - 0.5], axis=1)
        node = self._nearest_sensitive(self._ax.transData.inverted().transform(points))
        self._pixels = rows, columns
        fields = self._recording.fields
        number = np.zeros(int(self._view.regions.max()) + 1, np.intp)
        number[fields.regions] = np.arange(len(fields.regions))
        self._region = number[self._view.regions[node]]
        self._still = still[rows, columns]
        self._bare = bare[rows, columns, None]

    def show(self, step: int) -> None:
        """Put the state after a step, and what was active since the frame before, into artists."""
        recording, positions = self._recording, self._graph.positions
        since = self._view.active(step - recording.every + 1, step)
        active, share = since[-1], since.mean(axis=0, dtype=np.float32)
        self._glow.set_offsets(positions[active])
        self._lit.set_offsets(positions[active])
        past = np.flatnonzero((share > 0) & ~active)
        self._fading.set_offsets(positions[past])
        self._fading.set_sizes(self._size * (0.4 + 0.9 * np.sqrt(share[past])))
        closed = recording.fields.closed(step) * recording.deformed
        self._level = np.rint(closed * LEVELS).astype(np.intp)

    def paint(self, pixels: Pixels) -> None:
        """Tint the ground by the scars after the step that is shown."""
        shift = self._shift[self._level][self._region]
        pixels[(*self._pixels, slice(0, 3))] = np.rint(self._still + self._bare * shift)

    def _nearest_sensitive(self, points: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.intp]:
        from scipy.spatial import cKDTree

        inside = np.flatnonzero(self._graph.sensitive)
        return inside[cKDTree(self._graph.positions[inside]).query(points)[1]]

    def _draw_land(self) -> None:
        """Draw the ground of V_sens: what is near its nodes and nearer to them than to others."""
        from matplotlib.patches import PathPatch
        from scipy.ndimage import binary_fill_holes, gaussian_filter
        from scipy.spatial import cKDTree

        graph = self._graph
        middle = np.linspace(-MARGIN, 1 + MARGIN, 2 * MESH + 1)[1::2]
        cells = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
        far, nearest = cKDTree(graph.positions).query(cells)
        near = (far < 0.9 / np.sqrt(graph.n)).reshape(MESH, MESH)
        inside = graph.sensitive[nearest].reshape(MESH, MESH) & near
        inside |= binary_fill_holes(inside) & ~near  # gaps that no node is near to
        soft = gaussian_filter(inside.astype(float), min(2.4, 38 / np.sqrt(graph.n)))
        filled = self._ax.contourf(middle, middle, soft, levels=[0.5, 2])
        self._land = PathPatch(filled.get_paths()[0], facecolor=LAND, linewidth=0, zorder=1)
        filled.remove()
        self._ax.add_patch(self._land)
        self._ax.contour(
            middle, middle, soft, levels=[0.5], colors=SENSITIVE, linewidths=1.5, zorder=2
        )

    def _draw_network(self) -> None:
        """Draw edges and quiet nodes, with those of V_sens in its colour."""
        graph = self._graph
        style = {"colors": "#7A8594", "alpha": 0.22, "linewidths": 0.5, "zorder": 3}
        self._ax.add_collection(edge_lines(graph, strongest_edges(graph), **style))
        for mask, face, rim, width in (
            (~graph.sensitive, QUIET, "#9AA2AE", 0.4),
            (graph.sensitive, PAPER, SENSITIVE, 0.9),
        ):
            self._ax.scatter(
                *graph.positions[mask].T, s=0.5 * self._size, c=face, edgecolors=rim,
                linewidths=width, zorder=4,
            )  # fmt: skip


class PicturePanel:
    """The picture that a platform draws of itself, scaled to the panel.

    Args:
        figure: the figure to draw in.
        box: the part of the figure to draw in.
        recording: of a platform.
    """

    colours = np.zeros((0, 3), np.uint8)
    """(0, 3): a GIF need not keep any colour."""
    moving: tuple[Any, ...] = ()
    """No artists: the panel's pixels are written."""

    def __init__(self, figure: Any, box: Box, recording: Recording) -> None:
        assert isinstance(recording.view, PlatformView)
        self._view, self._scars = recording.view, recording.deformed
        width, height = figure.bbox.size
        left, bottom, across, up = box
        self._columns = slice(round(left * width), round((left + across) * width))
        self._rows = slice(round((1 - bottom - up) * height), round((1 - bottom) * height))

    def ground(self, colour: str) -> None:
        """Do nothing: a picture has no ground."""

    def settle(self, light: Pixels, dark: Pixels) -> None:
        """Do nothing: a picture has no ground."""

    def show(self, step: int) -> None:
        """Take the picture after a step."""
        self._picture = self._view.picture(step, scars=self._scars)

    def paint(self, pixels: Pixels) -> None:
        """Write the picture into its part of the pixels."""
        from PIL import Image

        target = pixels[self._rows, self._columns]
        image = Image.fromarray(self._picture)
        size = (target.shape[1], target.shape[0])
        target[..., :3] = np.asarray(image.resize(size, Image.Resampling.HAMMING))


def _colour(name: str) -> npt.NDArray[np.float32]:
    """(3,) red, green and blue of a named colour, 0 to 255."""
    from matplotlib.colors import to_rgb

    return np.array(to_rgb(name), np.float32) * 255
