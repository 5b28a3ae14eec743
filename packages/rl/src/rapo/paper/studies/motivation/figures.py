"""The course of the example under every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.paper.studies.motivation.runs import CARRIED, FREE, RESET, Runs, ThrottledRun
from rapo.platforms.cascade.baseline import Throttle

BIN = 10
"""Number of steps that a point of the figure averages over."""


def curves(runs: Runs) -> pd.DataFrame:
    """Tabulate quartiles over episodes of reach and penalty in bins of ten steps, run by run."""
    parts = []
    for name, run in runs.items():
        part = {"run": name, "step": starts_of(run.horizons)}
        for trace in ("reach", "penalty"):
            low, middle, high = quartiles(getattr(run, trace), run.horizons)
            part |= {f"{trace}_low": low, trace: middle, f"{trace}_high": high}
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def starts_of(horizons: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return the first steps of bins that do not cross phases."""
    ends = np.cumsum(horizons)
    return np.concatenate(
        [np.arange(end - span, end, BIN) for end, span in zip(ends, horizons, strict=True)]
    )


def quartiles(values: npt.NDArray[Any], horizons: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return quartiles over episodes of binned (E, T) values, (3, bins)."""
    starts = starts_of(horizons)
    sizes = np.diff([*starts, values.shape[1]])
    return np.quantile(np.add.reduceat(values, starts, axis=1) / sizes, (0.25, 0.5, 0.75), axis=0)


def course_figure(runs: Runs, controller: Throttle) -> Any:
    """Draw the reach over the phases under every kernel, and the controller's penalty."""
    from rapo.html.figures import COLOURS, mark_phases, new_figure, tidy

    figure, (top, bottom) = new_figure(2, 1, width=9.0, height=6.2, sharex=True)
    shown: tuple[tuple[str, str, Any, str], ...] = (
        (f"P0, {FREE}", COLOURS["GE"], (0, (4, 2)), "P0, no penalty"),
        (f"P0, {RESET}", COLOURS["off@rep"], "-", "P0, transient penalty"),
        (f"deformed, {RESET}", COLOURS["RAPO"], "-", "deformed kernel, the same controller"),
    )
    for name, colour, style, label in shown:
        _draw(top, runs[name], "reach", colour, style, label, band=name != f"P0, {FREE}")
    lower: tuple[tuple[str, str, Any, str], ...] = (
        *shown[1:],
        (f"P0, {CARRIED}", "#8A3B00", (0, (1, 1.2)), "P0, penalty not reset"),
    )
    for name, colour, style, label in lower:
        _draw(bottom, runs[name], "penalty", colour, style, label, band=style == "-")
    horizons = next(iter(runs.values())).horizons
    for ax in (top, bottom):
        tidy(ax)
        ax.set_xlim(0, sum(horizons))
        ax.set_ylim(bottom=0)
        mark_phases(ax, horizons)
    for level, action in zip(controller.levels, ("moderate", "conservative"), strict=True):
        bottom.axhline(level, color="#9AA0A8", lw=0.9, zorder=1)
        bottom.text(
            sum(horizons) * 1.008,
            level,
            f"{action} above",
            va="center",
            fontsize=8.5,
            color="#555B66",
        )
    top.set_ylabel("reach |A| (nodes)")
    bottom.set_ylabel("penalty p")
    bottom.set_xlabel("step")
    top.set_title("Under P0 the cascade returns; behind scars it does not", fontsize=11.5, pad=20)
    bottom.set_title(
        "The penalty throttles while harm arrives and is forgotten by Replay", fontsize=11.5, pad=20
    )
    for ax in (top, bottom):
        ax.legend(frameon=False, fontsize=9, loc="upper center", ncols=3)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * 1.18)  # room for the legend
    return figure


def _draw(
    ax: Any, run: ThrottledRun, trace: str, colour: str, style: Any, label: str, *, band: bool
) -> None:
    low, middle, high = quartiles(getattr(run, trace), run.horizons)
    starts = starts_of(run.horizons)
    for phase, span in enumerate(run.horizons):  # a line across phases would hide the reset
        first = sum(run.horizons[:phase])
        part = (starts >= first) & (starts < first + span)
        x = starts[part] + BIN / 2
        ax.plot(x, middle[part], color=colour, ls=style, lw=1.8, label=label if not phase else None)
        if band:
            ax.fill_between(x, low[part], high[part], color=colour, alpha=0.15, lw=0)
