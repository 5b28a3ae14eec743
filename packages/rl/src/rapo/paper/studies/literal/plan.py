"""Methods without budgets whose duals rise from 0."""

from __future__ import annotations

from dataclasses import replace

from rapo.paper.jobs import Evaluation, Policy
from rapo.paper.presets import Preset

METHODS = ("SS", "DR", "PM-ST", "RAPO")


def evaluations(preset: Preset, method: str) -> list[Evaluation]:
    """Evaluate a method that was trained without budgets, on the graphs of this study."""
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
    """List GE on the main graphs, whose return is the unit, and all methods, graph by graph."""
    rows = [evaluations(preset, method) for method in METHODS]
    unit = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
    return unit + [each for graph in zip(*rows, strict=True) for each in graph]
