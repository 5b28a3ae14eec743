"""The demo's figure: reach over the three phases, and where Replay happens under each kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.setting import DECAY, PHASES, REPLAY
from rapo.envs.render import SENSITIVE, edge_lines, node_size, strongest_edges
from rapo.rsd.plots import smoothed
from rapo.rsd.result import RSDResult
from rapo_core.checks import UserError

COLOURS = {"P0": "#4D4D4D", "RAPO": "#0072B2", "off@rep": "#D55E00"}
NAMES = {
    "P0": "$P_0$: stationary kernel",
    "RAPO": "RAPO: deformed kernel",
    "off@rep": "off@rep: off in Replay only",
}
_SMOOTH = 15
"""Steps of the moving mean of each curve."""


def replay_figure(graph: Graph, results: dict[str, RSDResult]) -> tuple[Any, Any]:
    """Draw reach with bands of the middle half of episodes, and Replay on two maps; (fig, axes)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 3, width_ratios=[2.1, 1, 1])
    _curves(axes[0], results)
    activity = {name: _replay_activity(result) for name, result in results.items()}
    highest = max(float(share.max()) for share in activity.values())
    for ax, kernel in zip(axes[1:], ("P0", "RAPO"), strict=True):
        points = _map(ax, graph, activity[kernel], highest)
        name = "$P_0$" if kernel == "P0" else kernel
        ax.set_title(f"Replay under {name}", fontsize=12, color=COLOURS[kernel])
    bar = figure.colorbar(points, ax=axes[1:], location="bottom", shrink=0.7, pad=0.02, aspect=35)
    bar.set_label("share of Replay a node is active (blue outline: $V_{sens}$)", fontsize=10)
    bar.outline.set_visible(False)
    return figure, axes


def _replay_activity(result: RSDResult) -> Any:
    if result.activity is None:
        raise UserError("the figure needs results of a graph environment, got one without")
    return result.activity[REPLAY]


def _curves(ax: Any, results: dict[str, RSDResult]) -> None:
    phase = results["P0"].phase
    for kernel, result in results.items():
        smooth = smoothed(result.traces["reach"], phase, _SMOOTH)
        low, high = np.quantile(smooth, (0.25, 0.75), axis=0)
        ax.fill_between(np.arange(len(phase)), low, high, color=COLOURS[kernel], alpha=0.13, lw=0)
        style = (0, (5, 3)) if kernel == "off@rep" else "-"  # it lies on the others by design
        ax.plot(smooth.mean(axis=0), color=COLOURS[kernel], lw=2, ls=style, label=NAMES[kernel])
    ax.set_ylim(bottom=0)
    top = ax.get_ylim()[1] * 1.1
    ax.set(xlim=(0, len(phase)), ylim=(0, top), xlabel="step", ylabel="active nodes $|A_t|$")
    for number, name in enumerate(PHASES):
        first, last = np.flatnonzero(phase == number)[[0, -1]]
        if number == DECAY:
            ax.axvspan(first, last + 1, color="#F2F2F2", zorder=0)
        if number == REPLAY:
            ax.axvline(first, color="#999999", lw=0.8, ls=":")
        title = "washout" if number == DECAY else name
        ax.text((first + last) / 2, 0.985 * top, title, ha="center", va="top", color="#555555")
    ax.legend(loc="center left", bbox_to_anchor=(0.1, 0.31), frameon=False, fontsize=9)
    ax.set_title("The same stimulus returns after a washout", loc="left", fontsize=12)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _map(ax: Any, graph: Graph, activity: npt.NDArray[np.float32], highest: float) -> Any:
    style = {"colors": "#E3E6EA", "linewidths": 0.4, "zorder": 1}
    ax.add_collection(edge_lines(graph, strongest_edges(graph), **style))
    x, y = graph.positions.T
    points = ax.scatter(
        x, y, s=0.7 * node_size(graph.n), c=activity, cmap="OrRd", vmin=0, vmax=highest,
        edgecolors=np.where(graph.sensitive, SENSITIVE, "#9AA0A8").tolist(),
        linewidths=np.where(graph.sensitive, 1.1, 0.4), zorder=2,
    )  # fmt: skip
    ax.set(xticks=[], yticks=[], aspect="equal")
    for side in ax.spines.values():
        side.set_visible(False)
    return points
