"""Figures of the mechanism study."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rapo.cascade.setting import REPLAY
from rapo.paper.paper import ODDS_RATIO
from rapo.paper.studies.mechanism.correlation import stimulus_means
from rapo.paper.studies.mechanism.measures import (
    BASE,
    CONTROL,
    RAPO,
    TWIN,
    Frames,
    in_phase,
    pooled,
)


def _band(ax: Any, curve: pd.DataFrame, colour: str, label: str, style: Any = "-") -> None:
    x = (curve["step"] + curve["end"]) / 2
    ax.plot(x, curve["mean"], color=colour, lw=1.8, ls=style, label=label)
    low, high = curve["mean"] - curve["std"], curve["mean"] + curve["std"]
    ax.fill_between(x, low.clip(lower=0), high, color=colour, alpha=0.15, lw=0)


def odds_figure(
    curves: Frames, frames: Frames, often: pd.DataFrame | None, horizons: tuple[int, ...]
) -> Any:
    """Draw the odds ratio over Replay, and against RAG within RAPO's runs."""
    from rapo.html.figures import COLOURS, new_figure, tidy

    figure, (left, right) = new_figure(
        1, 2, width=11.0, height=4.0, gridspec_kw={"width_ratios": (1.5, 1)}
    )
    styles = {CONTROL: (0, (5, 2)), "off@rep": (0, (1, 1.5))}  # both lie on 1: let both be seen
    for method in (m for m in (RAPO, CONTROL, "off@rep") if m in curves):
        curve = in_phase(pooled(curves[method], "odds_ratio"), horizons, REPLAY)
        _band(left, curve, COLOURS[method], method, styles.get(method, "-"))
    left.axhline(ODDS_RATIO, color="#6B7280", lw=1, ls=(0, (4, 3)), zorder=1)
    text = {"va": "center", "fontsize": 8.5, "color": "#555B66"}
    beside = left.get_yaxis_transform()
    left.text(1.0, ODDS_RATIO, " the paper's\n RAPO mean", transform=beside, **text)
    left.set(xlabel="step of Replay", ylabel="odds ratio of harmful entry")
    left.set(xlim=(0, horizons[REPLAY]), ylim=(0, 1.08))
    left.set_title("Harmful entry is contracted throughout Replay", fontsize=11.5)
    left.legend(frameon=False, fontsize=9, loc="center right", bbox_to_anchor=(1, 0.72))
    if often is not None:
        rapo, means = frames[RAPO], stimulus_means(often)
        dots = {"color": COLOURS[RAPO], "alpha": 0.35, "ms": 5}
        right.plot(rapo["OddsRatio"], rapo["RAG"], ".", label="an episode", **dots)
        rings = {"mfc": "none", "mec": "#1F2430", "mew": 1.0, "ms": 4.5}
        right.plot(means["OddsRatio"], means["RAG"], "o", label="mean of a stimulus", **rings)
        right.legend(frameon=False, fontsize=9, loc="upper left")
    right.set(xlabel="OddsRatio (mean over Replay)", ylabel="RAG")
    right.set_title("Contraction and replay within RAPO's runs", fontsize=11.5)
    tidy(left)
    tidy(right)
    return figure


def scar_figure(curves: Frames, horizons: tuple[int, ...]) -> Any:
    """Draw the scar mass across the phases."""
    from rapo.html.figures import COLOURS, mark_phases, new_figure, tidy

    shown = [m for m in (RAPO, CONTROL) if m in curves]
    figure, axes = new_figure(1, max(len(shown), 1), width=11.0, height=3.8, squeeze=False)
    titles = {
        RAPO: "RAPO: scars form in Exposure and persist",
        CONTROL: "PM-ST: under P0 harm goes on, and so do scars",
    }
    for ax, method in zip(axes[0], shown, strict=False):
        _band(ax, pooled(curves[method], "scar_mass"), COLOURS[method], method)
        tidy(ax)
        mark_phases(ax, horizons)
        ax.set(xlim=(0, sum(horizons)), xlabel="step", ylabel="total scar mass")
        ax.set_ylim(bottom=0)
        ax.set_title(titles[method], fontsize=11.5, pad=20)
    return figure


def reach_figure(curves: Frames, horizons: tuple[int, ...]) -> Any:
    """Draw the activity inside and outside V_sens."""
    from rapo.html.figures import COLOURS, mark_phases, new_figure, tidy

    figure, axes = new_figure(1, 2, width=11.0, height=4.0)
    for method in (m for m in (BASE, CONTROL, TWIN, RAPO) if m in curves):
        reach, inside = (pooled(curves[method], name) for name in ("reach", "sensitive_mass"))
        colour = COLOURS.get(method, COLOURS["off@rep"])
        label = "RAPO's policy under P0" if method == TWIN else method
        style = (0, (3, 1.5)) if method == TWIN else "-"
        x = (reach["step"] + reach["end"]) / 2
        for ax, values in zip(axes, (inside["mean"], reach["mean"] - inside["mean"]), strict=True):
            ax.plot(x, values, color=colour, lw=1.7, ls=style, label=label)
    for ax, title in zip(axes, ("Active inside V_sens", "Active outside V_sens"), strict=True):
        tidy(ax)
        mark_phases(ax, horizons)
        ax.set(xlim=(0, sum(horizons)), xlabel="step", ylabel="active nodes")
        ax.set_ylim(bottom=0)
        ax.set_title(title, fontsize=11.5, pad=20)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def compounding_figure(steps: pd.DataFrame) -> Any:
    """Draw the sensitive mass over the twin's, beside powers of one contraction."""
    from rapo.html.figures import COLOURS, new_figure, tidy

    figure, ax = new_figure(1, 1, width=8.0, height=4.0)
    first = steps[steps["step"] < 100]
    x = (first["step"] + first["end"]) / 2
    dashed = {"color": COLOURS["PM-ST"], "lw": 1.8, "ls": (0, (5, 2))}
    ax.plot(x, first["odds_ratio"], label="one step: odds ratio", **dashed)
    label = "sensitive mass, RAPO over its P0 twin (bins of 10)"
    ax.plot(x, first["mass_ratio"], color=COLOURS[RAPO], lw=2, marker="o", ms=3.5, label=label)
    psi, t = float(steps["odds_ratio"].mean()), np.arange(1, 101)
    dotted = {"color": "#6B7280", "lw": 1.4, "ls": (0, (1, 1.5)), "marker": "."}
    ax.plot(t, psi**t, label="psi^t: a cascade that is not fed anew", **dotted)
    shown = first["mass_ratio"][first["mass_ratio"] > 0]
    ax.set_yscale("log")
    ax.set_yticks([1, 0.3, 0.1, 0.03, 0.01, 0.003], ["1", "0.3", "0.1", "0.03", "0.01", "0.003"])
    ax.minorticks_off()
    ax.set(xlabel="step of Replay", ylabel="share of the nominal", xlim=(0, 100))
    ax.set_ylim(np.nanmin([0.1, *shown]) / 2, 1.2 * np.nanmax([1, *shown]))
    ax.set_title("One step's contraction, and what many steps make of it", fontsize=11.5)
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    tidy(ax)
    return figure
