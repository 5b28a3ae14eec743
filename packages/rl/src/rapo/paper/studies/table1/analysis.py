"""The table of every method, its tests and what stands beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rapo.cascade.setting import ACTIONS
from rapo.paper.paper import METRICS, TABLE1
from rapo.paper.presets import Preset
from rapo.paper.results import Results
from rapo.paper.studies.budgets import idle, printed_budgets
from rapo.paper.studies.graph_means import PARTS, TITLES, ratios_of_means
from rapo.paper.studies.section import Section
from rapo.paper.studies.table1.claims import CONTROL, constants_claim, table_claims
from rapo.paper.studies.table1.figures import cells_figure
from rapo.paper.studies.table1.plan import plan
from rapo.rsd.bootstrap import Bootstrap
from rapo.rsd.statistics import by_unit, tests_against


def table(frame: pd.DataFrame, methods: tuple[str, ...]) -> pd.DataFrame:
    """A row per method: mean, std over graph means (`_std`) and over episodes (`_episode_std`)."""
    rows = []
    for method in methods:
        part = frame[frame["method"] == method]
        row: dict[str, Any] = {"method": method}
        for metric in METRICS:
            means = by_unit(part, metric)
            row[metric] = float(means.mean())
            row[f"{metric}_std"] = float(means.std())
            row[f"{metric}_episode_std"] = float(part[metric].std())
        rows.append(row)
    return pd.DataFrame(rows)


def pooled_table(pooled: dict[str, dict[str, Bootstrap]]) -> pd.DataFrame:
    """A row per method: the ratio of means of each metric with its 95% interval over graphs."""
    rows = []
    for method, ratios in pooled.items():
        row: dict[str, Any] = {"method": method}
        for metric, ratio in ratios.items():
            row |= {
                metric: ratio.estimate,
                f"{metric}_low": ratio.low,
                f"{metric}_high": ratio.high,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def analyse(results: Results) -> Section:
    """The table, its tests, the figure and the claims R1, R2 and of each cell."""
    preset = results.preset
    paying = [preset.evaluation(m, seed) for m in preset.methods for seed in preset.graph_seeds
              if m != "off@rep"]  # fmt: skip
    return section(preset, results.episodes(plan(preset)), results.budgets(paying))


def section(preset: Preset, episodes: pd.DataFrame, paid: pd.DataFrame) -> Section:
    """The study from its frames.

    Args:
        preset: whose methods and graphs the table has.
        episodes: of the methods, of `P0-twin` and of the constant actions, by `method`.
        paid: budgets of the trainings.
    """
    base = float(episodes.loc[episodes["method"] == "GE", "ReplayReturn"].mean())
    whole = episodes.assign(ReplayRet=episodes["ReplayReturn"] / base)
    frame = whole[whole["method"].isin(preset.methods)]
    summary = table(frame, preset.methods)
    units = {
        method: {m: by_unit(frame[frame["method"] == method], m) for m in METRICS}
        for method in preset.methods
    }
    several = len(preset.graph_seeds) > 1
    tests = {
        metric: tests_against({name: values[metric] for name, values in units.items()}, CONTROL)
        if several
        else None
        for metric in METRICS
    }
    pooled = {m: ratios_of_means(frame[frame["method"] == m]) for m in preset.methods}
    twin = against_twin(whole)
    fixed = against_constants(whole)
    printed = _printed(summary, tests, several)
    text = [
        f"{preset.nodes} nodes, {len(preset.graph_seeds)} graphs x {preset.episodes} episodes, "
        f"{preset.steps:,} training steps. Mean ± std over graph means, the paper's in brackets. "
        "† differs from PM-ST (Welch over graph means, Holm over methods, p < 0.01). The "
        "calibration aimed, on other graphs, at RAPO's row, at off@rep's ratios, at the returns "
        "of DR and PM-ST and at ratios of 1 under the stationary kernel.",
        "off@rep shares RAPO's deformed Exposure, so its ratios exceed 1. Against the Exposure of "
        f"a twin under P0 (same policy, same draws) they are {_ratios(twin)}.",
    ]
    tables = [
        ("Ours (the paper's)", printed),
        ("The same as ratios of means over all episodes, which the few whose Exposure hardly "
         "touches V_sens do not carry", _printed_pooled(pooled)),
    ]  # fmt: skip
    if len(paid):
        tables.append(
            ("Budgets: costs relative to the constant aggressive policy's under P0; a budget "
             "counts as met up to a tenth above it", printed_budgets(paid))
        )  # fmt: skip
    if idle(paid, "RAPO"):
        text.append(
            "RAPO met its budgets on every graph with duals at 0: its row is the deformation, not "
            "learning under constraints."
        )
    files = {
        "table1": summary.drop(columns=[c for c in summary if str(c).endswith("_episode_std")]),
        "table1_spread": summary,
        "table1_pooled": pooled_table(pooled),
        "budgets": paid,
        "episodes": frame,
        "table1_tests": pd.concat(
            {m: t for m, t in tests.items() if t is not None}, names=["metric"]
        ).reset_index()
        if several
        else pd.DataFrame(),
        "off_at_replay_twin": twin,
        "constant_actions": fixed.reset_index(),
    }
    return Section(
        name="table1",
        title="Table 1: replay under a frozen policy",
        text=text,
        tables=tables,
        figures=[
            ("table1", "Every cell of Table 1: ours (filled, with 95% intervals over graphs; "
             "stroke: ratio of means) and the paper's mean ± std (hollow)",
             cells_figure(units, pooled, several)),
        ],
        claims=[*table_claims(units, pooled, twin, several), constants_claim(fixed)],
        files={name: part for name, part in files.items() if len(part)},
    )  # fmt: skip


def against_twin(episodes: pd.DataFrame) -> pd.DataFrame:
    """off@rep's Replay over the Exposure of the `P0` twin, per episode; empty without off@rep."""
    off, free = (
        episodes[episodes["method"] == name].reset_index(drop=True)
        for name in ("off@rep", "P0-twin")
    )
    if off.empty:
        return pd.DataFrame()
    return pd.DataFrame(
        {
            "graph_seed": off["graph_seed"],
            "episode": off["episode"],
            **{m: off[f"{part}_replay"] / free[f"{part}_exposure"] for m, part in PARTS.items()},
        }
    )


def against_constants(episodes: pd.DataFrame) -> pd.DataFrame:
    """ReplayRet of GE and of every constant action under `P0`; a row per graph_seed."""
    return pd.DataFrame(
        {m: by_unit(episodes[episodes["method"] == m], "ReplayRet") for m in ("GE", *ACTIONS)}
    )


def _ratios(twin: pd.DataFrame) -> str:
    if twin.empty:
        return "not available"
    return " / ".join(f"{twin[m].mean():.2f}" for m in PARTS)


def _printed_pooled(pooled: dict[str, dict[str, Bootstrap]]) -> pd.DataFrame:
    rows = []
    for method, ratios in pooled.items():
        cells = {"method": method}
        for metric, ratio in ratios.items():
            between = "" if np.isnan(ratio.low) else f" [{ratio.low:.2f}, {ratio.high:.2f}]"
            cells[TITLES[metric]] = f"{ratio.estimate:.2f}{between}"
        rows.append(cells)
    return pd.DataFrame(rows)


def _printed(summary: pd.DataFrame, tests: dict[str, Any], several: bool) -> pd.DataFrame:
    rows = []
    for row in summary.to_dict("records"):
        method = str(row["method"])
        cells = {"method": method}
        for metric in METRICS:
            test = tests[metric]
            dagger = ""
            if several and test is not None and method in test.index:
                dagger = "†" if test.loc[method, "p_holm"] < 0.01 else ""
            spread = row[f"{metric}_std"] if several else row[f"{metric}_episode_std"]
            paper, std = TABLE1[method][metric]
            cells[TITLES[metric]] = (
                f"{row[metric]:.2f} ± {spread:.2f}{dagger} ({paper:.2f} ± {std:.2f})"
            )
        rows.append(cells)
    return pd.DataFrame(rows)
