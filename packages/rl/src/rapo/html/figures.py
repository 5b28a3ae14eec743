"""Figures in one look, with colours that colour-blind readers can tell apart."""

from __future__ import annotations

from typing import Any

COLOURS = {
    "GE": "#4D4D4D",
    "SS": "#8C6D31",
    "DR": "#56B4E9",
    "Shield": "#F0E442",
    "Shield-UM": "#E69F00",
    "PM-ST": "#009E73",
    "PM-RNN": "#CC79A7",
    "RAPO": "#0072B2",
    "off@rep": "#D55E00",
    "slow-decay": "#7A5FB5",
    "top-k": "#5B8DB8",
    "local": "#3E7C5F",
}
"""Okabe and Ito's palette; a method has one colour everywhere."""


def new_figure(
    rows: int, columns: int, *, width: float = 7.0, height: float = 4.0, **options: Any
) -> tuple[Any, Any]:
    """A figure without a window and its axes, as `plt.subplots` would give."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **options)


def tidy(ax: Any) -> None:
    """No frame above and to the right, a light grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(color="#E8EAED", lw=0.7)
    ax.set_axisbelow(True)


def mark_phases(ax: Any, horizons: tuple[int, ...]) -> None:
    """Shade the washout and name the three phases along the top."""
    exposure, decay, _ = horizons
    ax.axvspan(exposure, exposure + decay, color="#F2F3F5", zorder=0)
    places = (exposure / 2, exposure + decay / 2, exposure + decay + horizons[2] / 2)
    for place, name in zip(places, ("exposure", "washout", "replay"), strict=True):
        ax.text(
            place,
            1.01,
            name,
            transform=ax.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=9,
            color="#666666",
        )
