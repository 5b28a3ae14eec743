"""Methods without budgets whose duals rise from 0."""

from __future__ import annotations

from dataclasses import replace

from rapo.paper.presets import Preset
from rapo.paper.tasks import Evaluate, Train

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
            Train(preset.config(method, seed, **changes)),
            method,
            episodes=preset.episodes,
            label=f"literal-{method}",
        )
        for seed in preset.literal_seeds
    ]


def plan(preset: Preset) -> list[Evaluate]:
    """All methods, graph by graph, and GE's return on the main graphs, the unit."""
    each = [evaluations(preset, method) for method in METHODS]
    unit = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
    return unit + [task for tasks in zip(*each, strict=True) for task in tasks]
