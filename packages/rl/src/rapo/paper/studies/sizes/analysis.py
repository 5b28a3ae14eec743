"""The size study: means over graphs at every size, and the claims about their ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rapo.paper.paper import SIZES_REDUCTION, SIZES_UTILITY
from rapo.paper.presets import Preset
from rapo.paper.results import Results
from rapo.paper.studies.graph_means import FEW
from rapo.paper.studies.section import Section
from rapo.paper.studies.sizes.figures import sizes_figure
from rapo.paper.studies.sizes.plan import METHODS, as_many_regions, evaluations
from rapo.paper.studies.verdicts import CALIBRATED, PREDICTED, Claim, full_replay, in_range, judge
from rapo.rsd.statistics import MeanInterval, by_unit, mean_interval

COLUMNS = {
    "reduction": "RAPO replay reduction (1 - RAG)",
    "utility": "RAPO utility (return over GE's)",
    "RAG_RAPO": "RAPO RAG",
    "RAG_PM-ST": "PM-ST RAG",
    "RAG_off@rep": "off@rep RAG",
}
"""Numbers of a row of the table, and their titles."""


Rows = dict[int, dict[str, MeanInterval]]
"""By size and column."""


def summary(results: Results, sizes: Sequence[int], *, as_large: bool = False) -> Rows:
    """Return mean and interval over graph means of every size.

    Utility is RAPO's Replay return over GE's mean, pooled over the graphs of the same size.

    Args:
        results: of the study.
        sizes: numbers of nodes.
        as_large: whether regions are as large as at the main size, see `evaluations`.
    """
    preset = results.preset
    by_size = {}
    for nodes in sizes:
        frames = {
            m: results.episodes(evaluations(preset, nodes, m, as_large=as_large)) for m in METHODS
        }
        base = float(frames["GE"]["ReplayReturn"].mean())
        rag = {m: by_unit(frame, "RAG") for m, frame in frames.items()}
        values = {
            "reduction": 1 - rag["RAPO"],
            "utility": by_unit(frames["RAPO"], "ReplayReturn") / base,
            **{f"RAG_{m}": rag[m] for m in ("RAPO", "PM-ST", "off@rep")},
        }
        by_size[nodes] = {name: mean_interval(values[name]) for name in COLUMNS}
    return by_size


def analyse(results: Results) -> Section:
    """The table, its figure and the claims about the ranges over sizes."""
    preset = results.preset
    by_size = summary(results, preset.sizes)
    as_large = summary(results, preset.as_many, as_large=True)
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
            *_about_regions(preset),
        ],
        tables=[
            (f"By size: {size}", _printed(by_size)),
            *(
                [("The same with regions as large at every size", _printed(as_large))]
                * bool(as_large)
            ),
        ],
        figures=[
            (
                "sizes",
                f"Replay reduction and utility of RAPO at every size, from {FEW} graphs on with "
                "95% intervals; the paper's ranges are shaded",
                sizes_figure(by_size),
            ),
        ],
        claims=_claims(by_size),
        files={
            "sizes": pd.DataFrame(
                [_flat(preset, n, row) for n, row in by_size.items()]
                + [_flat(preset, n, row, as_large=True) for n, row in as_large.items()]
            )
        },
    )


def _about_regions(preset: Preset) -> list[str]:
    if not preset.as_many:
        return []
    specs = {n: as_many_regions(preset, n) for n in preset.as_many}
    return [
        "Cascades are as large at every size, and a region scars only while enough of their harm "
        f"falls into it. So larger graphs have as many regions as one of {preset.nodes} "
        "nodes: "
        + ", ".join(f"{spec} at {n}" for n, spec in specs.items())
        + f". With regions as large as there ({preset.setting.regions}) harm is spread over more "
        "of them, and fewer scar: the second table."
    ]


def _printed(by_size: Rows) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"|V|": str(nodes)} | {title: _cell(row[name], name) for name, title in COLUMNS.items()}
            for nodes, row in by_size.items()
        ]
    )


def _flat(
    preset: Preset, nodes: int, row: dict[str, MeanInterval], *, as_large: bool = False
) -> dict[str, Any]:
    """A row of the file."""
    scaled = nodes in preset.as_many and not as_large
    regions = as_many_regions(preset, nodes) if scaled else preset.setting.regions
    flat: dict[str, Any] = {"nodes": nodes, "regions": regions}
    for name, interval in row.items():
        flat |= {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
    return flat


def _percent(ends: Sequence[float]) -> str:
    return f"{100 * ends[0]:.0f}-{100 * ends[1]:.0f}%"


def _cell(interval: MeanInterval, name: str) -> str:
    if np.isnan(interval.mean):
        return "-"
    scale, digits, unit = (1, 2, "") if name.startswith("RAG") else (100, 0, "%")
    text = f"{scale * interval.mean:.{digits}f}{unit}"
    if np.isnan(interval.low):
        return text
    return f"{text} [{scale * interval.low:.{digits}f}, {scale * interval.high:.{digits}f}]"


def _claims(by_size: Rows) -> list[Claim]:
    rag = {n: row["RAG_PM-ST"].mean for n, row in by_size.items()}
    far = max(rag, key=lambda n: np.nan_to_num(abs(rag[n] - 1), nan=np.inf))
    return [
        _range_claim("Replay reduction", "reduction", SIZES_REDUCTION, by_size, CALIBRATED),
        _range_claim("Task utility", "utility", SIZES_UTILITY, by_size, PREDICTED),
        judge(
            "Sizes",
            "PM-ST replays in full at every size",
            "RAG ≈ 1.0 (250 nodes)",
            ", ".join(f"{n}: {value:.2f}" for n, value in rag.items()),
            full_replay(list(rag.values())),
            PREDICTED,
            "within 0.15 of 1 at every size",
            f"{far} nodes are furthest from 1",
        ),
    ]


def _range_claim(
    subject: str, name: str, ends: tuple[float, float], by_size: Rows, kind: str
) -> Claim:
    """Judge whether the mean of every size, in whole percent, lies in the paper's range."""
    means = {n: row[name].mean for n, row in by_size.items()}
    out = [n for n, mean in means.items() if not in_range(mean, ends)]
    touching = [
        n for n in out if by_size[n][name].low <= ends[1] and by_size[n][name].high >= ends[0]
    ]
    return judge(
        "Sizes",
        f"{subject} over sizes",
        _percent(ends),
        f"{_percent((min(means.values()), max(means.values())))}: "
        + ", ".join(f"{n}: {_cell(row[name], name)}" for n, row in by_size.items()),
        not out,
        kind,
        "the mean of every size is in the range",
        "out of the range: "
        + ", ".join(f"{n} nodes{' (interval reaches it)' * (n in touching)}" for n in out),
    )
