"""Graph sizes: replay reduction and retained utility from 50 to 1000 nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rapo.experiments.paper import SIZES_REDUCTION, SIZES_UTILITY
from rapo.experiments.presets import Preset
from rapo.experiments.studies.graph_means import FEW
from rapo.experiments.studies.section import Claim, Section, Store
from rapo.experiments.studies.verdicts import (
    CALIBRATED,
    PREDICTED,
    full_replay,
    in_range,
    verdict,
)
from rapo.experiments.tasks import Evaluate
from rapo.rsd.statistics import MeanInterval, by_unit, mean_interval

METHODS = ("GE", "PM-ST", "RAPO", "off@rep")
COLUMNS = {
    "reduction": "RAPO replay reduction (1 - RAG)",
    "utility": "RAPO utility (return over GE's)",
    "RAG_RAPO": "RAPO RAG",
    "RAG_PM-ST": "PM-ST RAG",
    "RAG_off@rep": "off@rep RAG",
}
"""What is told of every size, and its title."""


def plan(preset: Preset) -> list[Evaluate]:
    """Every method on every size and graph, trained alike at all sizes.

    Seed by seed, so that a run that is cut has whole seeds at all sizes.
    """
    kinds = [evaluations(preset, n, m) for n in preset.sizes for m in METHODS]
    return [task for tasks in zip(*kinds, strict=True) for task in tasks]


def evaluations(preset: Preset, nodes: int, method: str) -> list[Evaluate]:
    """A method on the graphs of one size; the main size too has the steps of this study."""
    return [
        Evaluate(
            preset.policy(method, seed, nodes=nodes, steps=preset.size_steps),
            method,
            episodes=preset.episodes,
        )
        for seed in preset.size_seeds
    ]


def summary(store: Store) -> dict[int, dict[str, MeanInterval]]:
    """By size and column, mean and interval over graph means.

    Utility is RAPO's Replay return over GE's mean, pooled over the graphs of the same size.
    """
    preset = store.preset
    found = {}
    for nodes in preset.sizes:
        frames = {m: store.frame(evaluations(preset, nodes, m)) for m in METHODS}
        base = float(frames["GE"]["ReplayReturn"].mean())
        rag = {m: by_unit(frame, "RAG") for m, frame in frames.items()}
        values = {
            "reduction": 1 - rag["RAPO"],
            "utility": by_unit(frames["RAPO"], "ReplayReturn") / base,
            **{f"RAG_{m}": rag[m] for m in ("RAPO", "PM-ST", "off@rep")},
        }
        found[nodes] = {name: mean_interval(values[name]) for name in COLUMNS}
    return found


def analyse(store: Store) -> Section:
    """The table, its figure and the claims about the ranges over sizes."""
    preset = store.preset
    found = summary(store)
    printed = pd.DataFrame(
        [
            {"|V|": str(nodes)} | {title: _cell(row[name], name) for name, title in COLUMNS.items()}
            for nodes, row in found.items()
        ]
    )
    rows: list[dict[str, Any]] = []
    for nodes, row in found.items():
        flat: dict[str, Any] = {"nodes": nodes}
        for name, told in row.items():
            flat |= {name: told.mean, f"{name}_low": told.low, f"{name}_high": told.high}
        rows.append(flat)
    size = (
        f"{len(preset.size_seeds)} graphs x {preset.episodes} episodes a size, "
        f"{preset.size_steps:,} training steps at every size"
    )
    return Section(
        name="sizes",
        title="Sizes: RAPO from small to large graphs",
        text=[
            f"{size}, the main one too, so that sizes compare alike. Means with 95% intervals over "
            "graph means. Utility is RAPO's Replay return over GE's at the same size. The paper "
            f"gives {_percent(SIZES_REDUCTION)} reduction at {_percent(SIZES_UTILITY)} utility and "
            "no number for a single size. off@rep shares RAPO's deformed Exposure, so its RAG "
            "exceeds 1.",
        ],
        tables=[(f"By size: {size}", printed)],
        figures=[
            ("sizes", "Replay reduction and utility of RAPO at every size, from "
             f"{FEW} graphs on with 95% intervals; the paper's ranges are shaded", _figure(found)),
        ],
        claims=_claims(found),
        files={"sizes": pd.DataFrame(rows)},
    )  # fmt: skip


def _percent(ends: Sequence[float]) -> str:
    return f"{100 * ends[0]:.0f}-{100 * ends[1]:.0f}%"


def _cell(told: MeanInterval, name: str) -> str:
    if np.isnan(told.mean):
        return "-"
    scale, digits, unit = (1, 2, "") if name.startswith("RAG") else (100, 0, "%")
    text = f"{scale * told.mean:.{digits}f}{unit}"
    if np.isnan(told.low):
        return text
    return f"{text} [{scale * told.low:.{digits}f}, {scale * told.high:.{digits}f}]"


def _claims(found: dict[int, dict[str, MeanInterval]]) -> list[Claim]:
    claims = [
        _range_claim(
            "Replay reduction over sizes", "reduction", SIZES_REDUCTION, found, CALIBRATED
        ),
        _range_claim("Task utility over sizes", "utility", SIZES_UTILITY, found, PREDICTED),
    ]
    rag = {n: row["RAG_PM-ST"].mean for n, row in found.items()}
    far = max(rag, key=lambda n: np.nan_to_num(abs(rag[n] - 1), nan=np.inf))
    full = full_replay(list(rag.values()))
    claims.append(
        Claim(
            "Sizes",
            "PM-ST replays in full at every size",
            "RAG ≈ 1.0 (250 nodes)",
            ", ".join(f"{n}: {value:.2f}" for n, value in rag.items()),
            verdict(full),
            "within 0.15 of 1 at every size" if full else f"{far} nodes are furthest from 1",
            PREDICTED,
        )
    )
    return claims


def _range_claim(
    statement: str,
    name: str,
    ends: tuple[float, float],
    found: dict[int, dict[str, MeanInterval]],
    kind: str,
) -> Claim:
    """Whether the mean of every size, in whole percent, lies in the paper's range."""
    means = {n: row[name].mean for n, row in found.items()}
    out = {n: m for n, m in means.items() if not in_range(m, ends)}
    touching = [n for n in out if found[n][name].low <= ends[1] and found[n][name].high >= ends[0]]
    why = "the mean of every size is in the range"
    if out:
        why = "out of the range: " + ", ".join(
            f"{n} nodes" + (" (interval reaches it)" if n in touching else "") for n in out
        )
    return Claim(
        "Sizes",
        statement,
        _percent(ends),
        f"{_percent((min(means.values()), max(means.values())))}: "
        + ", ".join(f"{n}: {_cell(row[name], name)}" for n, row in found.items()),
        verdict(not out),
        why,
        kind,
    )


def _figure(found: dict[int, dict[str, MeanInterval]]) -> Any:
    from rapo.experiments.studies.drawing import COLOURS, new_figure, tidy

    figure, axes = new_figure(1, 2, width=10, height=3.9)
    sizes = np.array(list(found))
    panels = (
        ("Replay reduction by size", "replay reduction, 1 - RAG", SIZES_REDUCTION),
        ("Utility of RAPO by size", "Replay return over GE's", SIZES_UTILITY),
    )
    for ax, name, (title, label, ends) in zip(axes, ("reduction", "utility"), panels, strict=True):
        ax.axhspan(*ends, color="#D9E8F3", zorder=0, lw=0)
        ax.text(0.99, ends[0], "paper", transform=ax.get_yaxis_transform(), ha="right", va="bottom",
                fontsize=9, color="#5B7A94")  # fmt: skip
        _line(ax, sizes, [row[name] for row in found.values()], COLOURS["RAPO"], "RAPO", "o")
        if name == "reduction":
            still = [row["RAG_PM-ST"] for row in found.values()]
            gone = [MeanInterval(1 - t.mean, t.std, 1 - t.high, 1 - t.low, t.n, t.undefined)
                    for t in still]  # fmt: skip
            _line(ax, sizes, gone, COLOURS["PM-ST"], "PM-ST", "s")
            ax.axhline(0, color="#CBD0D6", lw=0.9, ls=(0, (4, 3)), zorder=1)
            ax.legend(frameon=False, fontsize=9, loc="best")
        ax.set_xscale("log")
        ax.set_xticks(sizes, [str(n) for n in sizes])
        ax.minorticks_off()
        ax.set_xlim(sizes.min() / 1.3, sizes.max() * 1.5)
        low = min(0.0, *(1 - row["RAG_PM-ST"].mean for row in found.values()))
        ax.set_ylim(max(low, -0.5) - 0.12 if name == "reduction" else 0.5, 1.05)
        ax.set_xlabel("nodes |V|")
        ax.set_ylabel(label)
        ax.set_title(title, fontsize=11)
        tidy(ax)
    return figure


def _line(
    ax: Any, x: Any, told: Sequence[MeanInterval], colour: str, label: str, marker: str
) -> None:
    mean = np.array([t.mean for t in told])
    half = np.array([[t.mean - t.low, t.high - t.mean] if t.n >= FEW else [0.0, 0.0] for t in told])
    ax.errorbar(
        x, mean, half.T, color=colour, marker=marker, ms=5.5, lw=1.6, elinewidth=1.3,
        capsize=2.5, label=label, zorder=3,
    )  # fmt: skip
