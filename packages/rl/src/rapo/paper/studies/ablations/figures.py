"""Every variant beside RAPO as it is; regions by their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rapo.paper.studies.ablations.plan import Variant
from rapo.paper.studies.graph_means import FEW, mean_of
from rapo.paper.studies.tradeoff.plan import Means
from rapo.rsd.statistics import mean_interval

COLOURS = {"decay": "slow-decay", "scope": "top-k", "harm": "off@rep"}
"""Whose colour the rows of a table have."""


def overview_figure(parts: dict[str, list[Variant]], means: Means) -> Any:
    """Rows are tables, columns metrics: every variant beside RAPO as it is."""
    from rapo.html.figures import COLOURS as PALETTE
    from rapo.html.figures import new_figure, tidy

    shown = ("decay", "scope", "harm")
    titles = ("scars that forget", "partial deployment", "harm told wrongly")
    metrics = ("RAG", "OddsRatio", "ReplayRet")
    heights = [len(parts[name]) for name in shown]
    figure, axes = new_figure(
        3,
        3,
        width=11.5,
        height=1.9 + 0.33 * sum(heights),
        sharex="col",
        sharey="row",
        squeeze=False,
        height_ratios=heights,
    )
    rapo = means[parts["scope"][0].evaluations]
    for line, name, title in zip(axes, shown, titles, strict=True):
        order = parts[name][::-1]
        for ax, metric in zip(line, metrics, strict=True):
            ax.axvline(mean_of(rapo[metric]), color=PALETTE["RAPO"], lw=1, zorder=1)
            ax.axvline(1, color="#9AA0A8", lw=0.9, ls=(0, (4, 3)), zorder=1)
            for y, v in enumerate(order):
                own = "(RAPO)" in v.name
                colour = PALETTE["RAPO"] if own else PALETTE[COLOURS[name]]
                _mark(ax, means[v.evaluations][metric], y, colour)
            ax.set_yticks(range(len(order)), [v.name for v in order], fontsize=9)
            ax.set_ylim(-0.6, len(order) - 0.4)
            tidy(ax)
            if name == shown[0]:
                ax.set_title(metric, fontsize=11)
                _fit(ax, [means[v.evaluations][metric] for n in shown for v in parts[n]])
        line[0].set_ylabel(title, fontsize=10)
    figure.align_ylabels(axes[:, 0])
    return figure


def regions_figure(part: Sequence[Variant], means: Means) -> Any:
    """OddsRatio, RAG and return by the size of regions, the finest at the top."""
    from rapo.html.figures import COLOURS as PALETTE
    from rapo.html.figures import new_figure, tidy

    figure, axes = new_figure(1, 3, width=11.5, height=1.6 + 0.34 * len(part), sharey=True)
    order = sorted(part, key=_coarseness)[::-1]
    for ax, metric in zip(axes, ("OddsRatio", "RAG", "ReplayRet"), strict=True):
        ax.axvline(1, color="#9AA0A8", lw=0.9, ls=(0, (4, 3)), zorder=1)
        for y, v in enumerate(order):
            colour = PALETTE["RAPO"] if "default" in v.name else "#6B7280"
            _mark(ax, means[v.evaluations][metric], y, colour)
        ax.set_title(metric, fontsize=11)
        ax.set_yticks(range(len(order)), [v.name for v in order], fontsize=9)
        ax.set_ylim(-0.6, len(order) - 0.4)
        _fit(ax, [means[v.evaluations][metric] for v in order])
        tidy(ax)
    return figure


def _mark(ax: Any, values: Any, y: int, colour: str) -> None:
    """A dot at the mean, a tick per graph, and the interval unless there are too few graphs."""
    interval = mean_interval(values)
    if interval.n >= FEW:
        ax.plot([interval.low, interval.high], [y, y], color=colour, lw=1.6, zorder=2)
    ax.plot(values, [y] * len(values), "|", color=colour, ms=9, alpha=0.5, zorder=2)
    ax.plot(interval.mean, y, "o", color=colour, ms=6, zorder=3)


def _fit(ax: Any, values: Sequence[Any]) -> None:
    """Set the scale by graph means and 1, the same whether intervals are drawn or not."""
    known = np.concatenate([np.asarray(v, float) for v in values])
    known = np.append(known[np.isfinite(known)], 1.0)
    margin = 0.08 * max(float(np.ptp(known)), 0.1)
    ax.set_xlim(float(known.min()) - margin, float(known.max()) + margin)


def _coarseness(v: Variant) -> float:
    """Mean size of a region, the literal node-level reading first."""
    if v.name.startswith("node"):
        return 1.0 if v.unit else 0.0
    size = v.name.partition(":")[2].split()
    return float(size[0]) if size else 0.0
