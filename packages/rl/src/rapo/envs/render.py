"""Drawing the graph with its active, sensitive and scarred nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph

# Okabe-Ito colours, distinguishable with any common colour blindness.
ACTIVE, SENSITIVE, SCAR, QUIET = "#E69F00", "#0072B2", "#CC3311", "#C9CED6"
SCAR_FULL = 1.0
"""Scar at which a node's ring reaches its full strength (psi is at its floor by then)."""


class GraphRenderer:
    """Frames of one graph; the figure is built once and its colours updated.

    Args:
        graph: what to draw.
        regions: (n,) region of each node.
        pixels: width and height of a frame.
    """

    def __init__(self, graph: Graph, regions: npt.NDArray[np.int32], pixels: int = 640) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.graph, self.regions = graph, regions
        figure = Figure(figsize=(pixels / 100, pixels / 100), dpi=100)
        self._canvas: Any = FigureCanvasAgg(figure)
        self.ax = figure.add_axes((0.02, 0.02, 0.96, 0.9))
        self._nodes = draw_graph(self.ax, graph)
        x, y = graph.positions.T
        self._scars = self.ax.scatter(
            x,
            y,
            s=4.2 * node_size(graph.n),
            facecolors="none",
            linewidths=2.2,
            edgecolors="none",
            zorder=2,
        )
        self._title = self.ax.set_title("", fontsize=13, loc="left")

    def draw(
        self,
        active: npt.NDArray[np.bool_],
        H: npt.NDArray[np.float32],
        phase: str,
        clock: int,
    ) -> npt.NDArray[np.uint8]:
        """A frame (pixels, pixels, 3) uint8 of one episode; active (n,), H (regions,)."""
        paint(self._nodes, self._scars, self.graph, active, H[self.regions])
        inside = int((active & self.graph.sensitive).sum())
        self._title.set_text(
            f"{phase}, step {clock}   reach {int(active.sum())}, of it sensitive {inside}"
        )
        self._canvas.draw()
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()

    def close(self) -> None:
        """Drop the figure."""
        self._canvas.figure.clear()


def node_size(n: int) -> float:
    """Marker area in points^2 that suits a graph of n nodes."""
    return float(np.clip(9000 / n, 2, 120))


def strongest_edges(graph: Graph, most: int = 20_000) -> npt.NDArray[np.integer[Any]]:
    """(k, 2) nodes of the most probable edges; more than 20,000 would be a grey square."""
    strongest = np.argsort(-graph.prob, kind="stable")[:most]
    return np.stack([graph.sources[strongest], graph.indices[strongest]], axis=1)


def edge_lines(graph: Graph, edges: npt.NDArray[np.integer[Any]], **style: Any) -> Any:
    """A line for each of some edges (k, 2), to add to axes; `style` is that of matplotlib."""
    from matplotlib.collections import LineCollection

    return LineCollection(list(graph.positions[edges]), **style)


def draw_graph(ax: Any, graph: Graph) -> Any:
    """Edges, nodes and the outline of V_sens on `ax`; returns the node collection."""
    from matplotlib.lines import Line2D

    style = {"colors": "#DDE1E7", "linewidths": 0.5, "zorder": 1}
    ax.add_collection(edge_lines(graph, strongest_edges(graph), **style))
    borders = np.where(graph.sensitive, SENSITIVE, "#8A919C")
    nodes = ax.scatter(
        *graph.positions.T,
        s=node_size(graph.n),
        c=QUIET,
        edgecolors=borders.tolist(),
        linewidths=np.where(graph.sensitive, 1.4, 0.4),
        zorder=3,
    )
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.1), xticks=[], yticks=[], aspect="equal")
    for side in ax.spines.values():
        side.set_visible(False)
    marks: dict[str, dict[str, Any]] = {
        "active": {"markerfacecolor": ACTIVE, "markeredgecolor": "#8A919C"},
        "sensitive": {"markerfacecolor": QUIET, "markeredgecolor": SENSITIVE, "markeredgewidth": 2},
        "scarred": {"markerfacecolor": "none", "markeredgecolor": SCAR, "markeredgewidth": 2},
    }
    handles = [
        Line2D([], [], marker="o", linestyle="none", markersize=8, label=name, **style)
        for name, style in marks.items()
    ]
    ax.legend(handles=handles, loc="upper left", ncols=3, frameon=False, fontsize=11)
    return nodes


def paint(
    nodes: Any,
    scars: Any,
    graph: Graph,
    active: npt.NDArray[np.bool_],
    scar: npt.NDArray[np.floating[Any]],
) -> None:
    """Colour nodes by activity and ring them by scar; active and scar are (n,)."""
    from matplotlib.colors import to_rgba

    nodes.set_facecolors(np.where(active[:, None], to_rgba(ACTIVE), to_rgba(QUIET)))
    rings = np.tile(to_rgba(SCAR), (graph.n, 1))
    rings[:, 3] = np.clip(scar / SCAR_FULL, 0, 1)
    scars.set_edgecolors(rings)
