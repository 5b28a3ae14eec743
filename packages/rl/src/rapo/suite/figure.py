"""The picture of the scorecard: six numbers of every domain, of RAPO and of the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from rapo.html.figures import COLOURS, new_figure, tidy
from rapo.suite.demands import RETURN_KEPT, scores

if TYPE_CHECKING:
    from rapo.suite.scorecard import Card

MISSED = "#C4483A"
BASELINES = ("#8A5A00", "#5A5F66")
DEMAND_BEHIND = {
    "suppression": "SM_vs_P0",
    "persistence": "SM_R",
    "return kept": "ReturnKept",
    "restored by off@rep": "restored",
    "gain over constants": "frontier",
}
"""The demand behind a number. No demand is about ASD."""
NOT_DRAWN = {"trace": "the trace's replay", "baseline": "the baselines"}
"""Demands without a bar in the picture: a missed one is named above the panel."""
OF_BASELINES = ("suppression", "persistence", "return kept", "gain over constants")


def plot_scorecard(cards: Sequence[Card]) -> tuple[Any, Any]:
    """Draw a panel per domain with six bars, cut to [0, 1]; their numbers stand beside them."""
    columns = min(len(cards), 3)
    rows = ceil(len(cards) / columns)
    figure, axes = new_figure(
        rows,
        columns,
        width=1.7 + 3.1 * columns,
        height=0.4 + 2.7 * rows,
        squeeze=False,
    )
    for i, ax in enumerate(axes.flat):
        if i >= len(cards):
            ax.set_axis_off()
            continue
        _panel(ax, cards[i])
        if i % columns:
            ax.tick_params(axis="y", labelleft=False)
    figure.suptitle(
        "RAPO, 1 is best (red: missed); dashes: asked; diamonds: the field's own baselines",
        fontsize=9.5, color="#444444",
    )  # fmt: skip
    return figure, axes


def _panel(ax: Any, card: Card) -> None:
    tidy(ax)
    ax.grid(axis="y", visible=False)
    ours = scores(card.rows)
    verdicts = {d.name: d.holds for d in card.demands}
    heights = np.arange(len(ours))[::-1]
    for row, (name, value) in zip(heights, ours.items(), strict=True):
        fine = verdicts.get(DEMAND_BEHIND.get(name, ""), True)
        shown = float(np.clip(np.nan_to_num(value), 0, 1))
        ax.barh(row, shown, height=0.62, color=COLOURS["RAPO"] if fine else MISSED, zorder=2)
        number = "n/a" if np.isnan(value) else f"{value:.2f}"
        ax.text(1.04, row, number, va="center", fontsize=8, color="#222222", zorder=6)
        limit = _limit(name, card)
        if limit is not None:
            ax.plot([limit, limit], [row - 0.4, row + 0.4], color="#222222", lw=1.4,
                    ls=(0, (2, 1.2)), zorder=4)  # fmt: skip
    for colour, baseline in zip(BASELINES, card.domain.baselines, strict=False):
        theirs = scores(card.rows, baseline.name)
        values = [np.clip(theirs[name], 0, 1) for name in OF_BASELINES]
        at = [heights[list(ours).index(name)] for name in OF_BASELINES]
        ax.scatter(values, at, marker="D", s=26, color=colour, edgecolors="white", linewidths=0.7,
                   zorder=5, label=baseline.name)  # fmt: skip
    ax.set_yticks(heights, list(ours), fontsize=8.5)
    ax.set_xlim(0, 1.2)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", ".5", "", "1"], fontsize=8.5)
    ax.set_ylim(-0.6, len(ours) - 0.4)
    missed = [NOT_DRAWN[d.name] for d in card.demands if not d.holds and d.name in NOT_DRAWN]
    # With two lines in the title the missed demands stand below the platform's name.
    above = {"fontsize": 10.5, "loc": "left", "fontweight": "bold"}
    ax.set_title(f"{card.title}\n" if missed else card.title, **above)
    if missed:
        ax.text(
            0, 1.02, f"missed: {', '.join(missed)}", transform=ax.transAxes, fontsize=8.5,
            color=MISSED, fontweight="bold", va="bottom",
        )  # fmt: skip
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=1, fontsize=7.5, frameon=False,
        handletextpad=0.2, borderaxespad=0.2, labelspacing=0.2,
    )  # fmt: skip


def _limit(name: str, card: Card) -> float | None:
    """The limit of a number; None for a number without one."""
    return {
        "suppression": 1 - card.domain.SM_vs_P0,
        "persistence": 1 - card.domain.SM_R,
        "return kept": RETURN_KEPT,
    }.get(name)
