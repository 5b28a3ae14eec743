"""A picture of a network: V_sens in colour, and the seeds of its stimuli by how often they act."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.envs.render import ACTIVE, SENSITIVE, edge_lines, node_size, strongest_edges

EDGES_DRAWN = 15_000
"""The most probable edges are drawn; more would be a grey square."""
SHOWN = 0.95
"""Share of the nodes that must lie in the picture."""
_OTHER, _EDGE, _EDGE_INSIDE, _BORDER = "#B4BBC6", "#8C97A6", "#5AA3D0", "#FFFFFF"


def network_figure(graph: Graph, name: str) -> tuple[Any, Any]:
    """Draw edges, nodes by degree, V_sens and seeds of a graph called `name`; return (fig, ax)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 8.5))
    FigureCanvasAgg(figure)
    ax = figure.add_axes((0.02, 0.01, 0.96, 0.87))
    _draw_edges(ax, graph)
    degree = np.diff(graph.neighbours.indptr)
    area = node_size(graph.n) * (0.45 + np.sqrt(degree / max(degree.mean(), 1)))
    border = 0.4 if graph.n <= 2000 else 0.0  # a border would hide a small dot
    x, y = graph.positions.T
    for members, colour, order in ((~graph.sensitive, _OTHER, 2), (graph.sensitive, SENSITIVE, 3)):
        style: dict[str, Any] = {"edgecolors": _BORDER, "linewidths": border, "zorder": order}
        ax.scatter(x[members], y[members], s=area[members], c=colour, **style)
    weight = np.bincount(graph.support.ravel(), graph.weights.ravel(), minlength=graph.n)
    seeds = np.flatnonzero(weight)
    share = np.sqrt(weight[seeds] / weight.max())
    # A seed is drawn smaller than its node, so that V_sens stays visible as a ring around it.
    size = np.maximum(0.55 * area[seeds] * share, 1.5)
    ax.scatter(x[seeds], y[seeds], s=size, c=ACTIVE, edgecolors="none", zorder=4)
    centre, half = _frame(graph)
    limits = {f"{axis}lim": (c - half, c + half) for axis, c in zip("xy", centre, strict=True)}
    ax.set(**limits, xticks=[], yticks=[], aspect="equal")
    beyond = int((np.abs(graph.positions - centre) > half).any(axis=1).sum())
    for side in ax.spines.values():
        side.set_visible(False)
    inside = int(graph.sensitive.sum())
    figure.text(0.035, 0.955, name, fontsize=16, fontweight="bold", color="#2B2F36")
    caption = f"{graph.n:,} nodes, {graph.edges:,} edges"
    caption += f"; {beyond:,} nodes lie beyond the frame" if beyond else ""
    figure.text(0.035, 0.927, caption, fontsize=11, color="#5B6470")
    _legend(
        figure,
        {
            f"$V_{{sens}}$, {inside:,} nodes ({inside / graph.n:.0%})": SENSITIVE,
            "other nodes": _OTHER,
            f"{len(seeds):,} seeds of {graph.stimuli} stimuli, by weight": ACTIVE,
        },
    )
    return figure, ax


def _frame(graph: Graph) -> tuple[npt.NDArray[np.float64], float]:
    """Centre (2,) and half width of the square to draw.

    The square holds the whole layout, unless a few far nodes would leave most of it empty.
    """
    points = graph.positions.astype(np.float64)
    middle = np.median(points, axis=0)
    usual = 1.08 * float(np.quantile(np.abs(points - middle).max(axis=1), SHOWN))
    if usual < 0.4:
        return middle, max(usual, 0.05)
    return np.array([0.5, 0.5]), 0.53


def _draw_edges(ax: Any, graph: Graph) -> None:
    edges = strongest_edges(graph, EDGES_DRAWN)
    inside = graph.sensitive[edges].all(axis=1)
    faint = float(np.clip(1200 / max(len(edges), 1), 0.05, 0.6))
    for members, colour in ((~inside, _EDGE), (inside, _EDGE_INSIDE)):
        style = {"colors": colour, "linewidths": 0.5, "alpha": faint, "zorder": 1}
        ax.add_collection(edge_lines(graph, edges[members], **style))


def _legend(figure: Any, entries: dict[str, str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="none", markersize=8, color=colour, label=label)
        for label, colour in entries.items()
    ]
    style = {"frameon": False, "fontsize": 10.5, "labelcolor": "#2B2F36", "handletextpad": 0.1}
    where = {"loc": "upper left", "bbox_to_anchor": (0.015, 0.922)}
    figure.legend(handles=handles, ncols=3, columnspacing=1.2, **style, **where)
