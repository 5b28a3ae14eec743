"""Methods without budgets whose duals rise from 0."""

from __future__ import annotations

from dataclasses import replace

from rapo.paper.jobs import Evaluation, Policy
from rapo.paper.presets import Preset

METHODS = ("SS", "DR", "PM-ST", "RAPO")


def evaluations(preset: Preset, method: str) -> list[Evaluation]:
    """A method trained without budgets on the graphs of this study."""
    changes = {
        "steps": preset.literal_steps,
        "setting": preset.setting.replace(budget=0.0),
        "ppo": replace(preset.ppo, dual_start=0.0),
    }
    return [
        Evaluation(
            Policy(preset.config(method, seed, **changes)),
            method,
            episodes=preset.episodes,
            label=f"literal-{method}",
        )
        for seed in preset.literal_seeds
    ]


def plan(preset: Preset) -> list[Evaluation]:
    """All methods, graph by graph, and GE's return on the main graphs, the unit."""
    each = [evaluations(preset, method) for method in METHODS]
    unit = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
    return unit + [one for row in zip(*each, strict=True) for one in row]
