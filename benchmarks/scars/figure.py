"""The picture of the study: calibration, capacity, width, cost."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rapo.html.figures import new_figure, tidy

COLOURS = {"grid": "#4D4D4D", "kernel": "#0072B2", "density": "#E69F00", "network": "#CC79A7"}
BY_DIMENSION = {2: "#7FB8DB", 4: "#0072B2", 8: "#08304F"}


def plot_scars(
    calibration: pd.DataFrame, capacity: pd.DataFrame, width: pd.DataFrame, cost: pd.DataFrame
) -> tuple[Any, Any]:
    """Four panels from the four tables."""
    figure, axes = new_figure(1, 4, width=13, height=3.6)
    for ax in axes:
        tidy(ax)
    _calibration(axes[0], calibration)
    _capacity(axes[1], capacity)
    _width(axes[2], width)
    _cost(axes[3], cost)
    return figure, axes


def _calibration(ax: Any, table: pd.DataFrame) -> None:
    ax.plot([0.1, 1], [0.1, 1], color="#B0B4BA", lw=1, ls=(0, (4, 3)))
    for kind, rows in table.groupby("kind"):
        ax.plot(
            rows["told"], rows["true"], "o-", ms=3, lw=1.3, color=COLOURS[str(kind)], label=kind
        )
    ax.set(title="calibration", xlabel="psi told", ylabel="psi of the exact field")
    ax.legend(frameon=False, fontsize=8)


def _capacity(ax: Any, table: pd.DataFrame) -> None:
    means = table.groupby(["d", "centres"])["error"].mean()
    for d, colour in BY_DIMENSION.items():
        ax.plot(means[d].index, means[d], "o-", ms=3, lw=1.3, color=colour, label=f"d = {d}")
    ax.axhline(0.05, color="#B0B4BA", lw=1, ls=(0, (4, 3)))
    _doubling(ax)
    ax.set_ylim(0, None)
    ax.set(title="capacity of the kernel field", xlabel="centres", ylabel="mean error of psi")
    ax.legend(frameon=False, fontsize=8)


def _width(ax: Any, table: pd.DataFrame) -> None:
    for centres, style in ((128, "o-"), (1024, "s:")):
        rows = table[table["centres"] == centres]
        means = rows.groupby("ratio")[["harm_kept", "disturbed"]].mean()
        named = centres == 128
        ax.plot(means.index, means["harm_kept"], style, ms=3, lw=1.3, color="#D55E00",
                label="harm kept" if named else None)  # fmt: skip
        ax.plot(means.index, means["disturbed"], style, ms=3, lw=1.3, color="#009E73",
                label="clean choices\nmoved" if named else None)  # fmt: skip
    ax.axvline(1, color="#B0B4BA", lw=1, ls=(0, (4, 3)))
    _doubling(ax)
    ax.set_ylim(0, 1.05)
    ax.set(title="what width does (dotted: 1,024 centres)", ylabel="share",
           xlabel="width / spread of one step's candidates")  # fmt: skip
    ax.legend(frameon=False, fontsize=8, loc=(0.0, 0.25))


def _doubling(ax: Any) -> None:
    """A scale of doublings with plain numbers."""
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _cost(ax: Any, table: pd.DataFrame) -> None:
    kernel = table[table["kind"] == "kernel"]
    for d, colour in BY_DIMENSION.items():
        rows = kernel[kernel["d"] == d]
        ax.plot(rows["size"], rows["update_us"], "o-", ms=3, lw=1.3, color=colour,
                label=f"update, d = {d}")  # fmt: skip
        ax.plot(rows["size"], rows["query_us"], "s:", ms=3, lw=1.3, color=colour,
                label=f"query, d = {d}")  # fmt: skip
    _doubling(ax)
    ax.set_yscale("log")
    ax.set(title="cost of the kernel field", xlabel="centres", ylabel="us a step, us a point")
    ax.legend(frameon=False, fontsize=7)
