"""The table of methods without budgets beside the paper's, with the duals that they end with."""

from __future__ import annotations

import pandas as pd

from rapo.paper.paper import METRICS, TABLE1
from rapo.paper.results import Results
from rapo.paper.studies.graph_means import TITLES, unit_means, with_interval
from rapo.paper.studies.literal.plan import METHODS, evaluations
from rapo.paper.studies.section import Section


def analyse(results: Results) -> Section:
    """Make the table; there are no claims, as Table 1 judges the paper's numbers once."""
    preset, base = results.preset, results.base_return()
    rows, files = [], []
    for method in METHODS:
        wanted = evaluations(preset, method)
        means = unit_means(results, wanted, base)
        paid = results.budgets(wanted)
        row = {"method": method}
        for metric in METRICS:
            paper = f" ({TABLE1[method][metric][0]:.2f})" if method in TABLE1 else ""
            row[TITLES[metric]] = with_interval(means[metric]) + paper
        for cost, part in paid.groupby("cost", sort=False) if len(paid) else ():
            row[f"{cost}: spent"] = with_interval(part["spent"])
            row[f"{cost}: dual"] = with_interval(part["dual"])
        rows.append(row)
        files.append(means.assign(method=method).reset_index())
    return Section(
        name="literal",
        title="Duals without budgets: the paper's rule to the letter",
        text=[
            f"{preset.nodes} nodes, {len(preset.literal_seeds)} graphs x {preset.episodes} "
            f"episodes, {preset.literal_steps:,} training steps. The paper's objective subtracts "
            "lambda times the cost and names no budget, so projected ascent raises every dual from "
            "0 as long as there is any cost: how far depends on when training ends. Spent "
            "is the cost at the end of training over the constant aggressive policy's under P0. "
            "The paper's numbers in brackets; they are judged in Table 1, not here.",
        ],
        tables=[("Mean and 95% interval over graph means", pd.DataFrame(rows).fillna(""))],
        files={"literal": pd.concat(files, ignore_index=True)},
    )
