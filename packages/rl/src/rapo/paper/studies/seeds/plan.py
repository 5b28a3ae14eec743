"""Several seeds of the optimiser on the same graphs."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation, Policy
from rapo.paper.presets import Preset

METHODS = ("GE", "PM-ST", "RAPO")
APART = 1000
"""Difference between the optimiser's seeds on one graph; the first seed is that of Table 1."""


def evaluations(preset: Preset, method: str) -> dict[tuple[int, int], Evaluation]:
    """Evaluate a method from every seed of the optimiser, by graph and start."""
    return {
        (seed, start): Evaluation(
            Policy(preset.config(method, seed, seed=seed + APART * start)),
            method,
            episodes=preset.episodes,
        )
        for seed in preset.spread_seeds
        for start in range(preset.starts)
    }


def plan(preset: Preset) -> list[Evaluation]:
    """List GE on the main graphs, whose return is the unit, and all methods, graphs and starts."""
    unit = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
    return unit + [each for m in METHODS for each in evaluations(preset, m).values()]
