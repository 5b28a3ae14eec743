"""The paper's dual rule taken literally: no budget, duals rise from 0 with every cost."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from rapo.experiments.paper import METRICS, TABLE1
from rapo.experiments.presets import Preset
from rapo.experiments.studies.budgets import budgets
from rapo.experiments.studies.graph_means import told, unit_means
from rapo.experiments.studies.section import Section, Store
from rapo.experiments.studies.table1 import TITLES
from rapo.experiments.tasks import Evaluate, Train

METHODS = ("SS", "DR", "PM-ST", "RAPO")


def evaluations(preset: Preset, method: str) -> list[Evaluate]:
    """A method trained without budgets on the graphs of this study."""
    changes = {
        "steps": preset.literal_steps,
        "setting": preset.setting.replace(budget=0.0),
        "ppo": replace(preset.ppo, dual_start=0.0),
    }
    return [
        Evaluate(
            Train(preset.config(method, seed, **changes)), method, episodes=preset.episodes,
            label=f"literal-{method}",
        )
        for seed in preset.literal_seeds
    ]  # fmt: skip


def plan(preset: Preset) -> list[Evaluate]:
    """All methods, graph by graph, and GE's return on the main graphs, the unit."""
    each = [evaluations(preset, method) for method in METHODS]
    unit = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
    return unit + [task for tasks in zip(*each, strict=True) for task in tasks]


def analyse(store: Store) -> Section:
    """A table; no claims, as the numbers of the paper are judged once, in Table 1."""
    preset, base = store.preset, store.base_return()
    rows, flat = [], []
    for method in METHODS:
        tasks = evaluations(preset, method)
        found = unit_means(store, tasks, base)
        paid = budgets(store.pieces(tasks))
        row = {"method": method}
        for metric in METRICS:
            paper = f" ({TABLE1[method][metric][0]:.2f})" if method in TABLE1 else ""
            row[TITLES[metric]] = told(found[metric]) + paper
        for cost, part in paid.groupby("cost", sort=False) if len(paid) else ():
            row[f"{cost}: spent"] = told(part["spent"])
            row[f"{cost}: dual"] = told(part["dual"])
        rows.append(row)
        flat.append(found.assign(method=method).reset_index())
    return Section(
        name="literal",
        title="Duals without budgets: the paper's rule to the letter",
        text=[
            f"{preset.nodes} nodes, {len(preset.literal_seeds)} graphs x {preset.episodes} "
            f"episodes, {preset.literal_steps:,} training steps. The paper's objective subtracts "
            "lambda times the cost and names no budget, so projected ascent raises every dual from "
            "0 as long as there is any cost: what it comes to depends on when training ends. Spent "
            "is the cost at the end of training over the constant aggressive policy's under P0. "
            "The paper's numbers in brackets; they are judged in Table 1, not here.",
        ],
        tables=[("Mean and 95% interval over graph means", pd.DataFrame(rows).fillna(""))],
        files={"literal": pd.concat(flat, ignore_index=True)},
    )
