"""What is run under each reading of the paper: RAPO, its neighbours, and constant actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rapo.cascade.setting import ACTIONS, AGGRESSIVE, READINGS, Setting
from rapo.paper.jobs import Evaluation, Policy
from rapo.paper.presets import Preset
from rapo.paper.studies.learning.plan import DEFORMED
from rapo.paper.studies.table1.plan import twins

METHODS = ("GE", "PM-ST", "RAPO", "off@rep", "slow-decay")
TWIN = "P0-twin"
"""RAPO's policy under `P0`."""
FIXED = "off@rep-aggressive"
"""off@rep of the constant aggressive action, which cannot act differently in Replay."""


def under(preset: Preset, reading: str) -> Preset:
    """Put a preset under one reading, with the graphs and training steps of this study."""
    return replace(
        preset,
        setting=Setting.named(reading),
        graph_seeds=preset.reading_seeds,
        steps=preset.reading_steps,
    )


def evaluations(preset: Preset) -> dict[str, list[Evaluation]]:
    """List the evaluations of one reading on every graph, by row.

    Constant actions stand under RAPO's kernel.
    """

    def constant(action: int, method: str, label: str) -> list[Evaluation]:
        policies = [Policy(preset.config("RAPO", s), ACTIONS[action]) for s in preset.graph_seeds]
        return [Evaluation(p, method, episodes=preset.episodes, label=label) for p in policies]

    rows = {m: [preset.evaluation(m, s) for s in preset.graph_seeds] for m in METHODS}
    rows |= {DEFORMED[a]: constant(a, "RAPO", DEFORMED[a]) for a in range(len(ACTIONS))}
    return rows | {TWIN: twins(preset), FIXED: constant(AGGRESSIVE, "off@rep", FIXED)}


def plan(preset: Preset) -> Sequence[Evaluation]:
    """List all readings, graph by graph, so that a run that is cut has whole graphs."""
    readings = [evaluations(under(preset, reading)) for reading in READINGS]
    graphs = range(len(preset.reading_seeds))
    return [row[graph] for graph in graphs for rows in readings for row in rows.values()]
