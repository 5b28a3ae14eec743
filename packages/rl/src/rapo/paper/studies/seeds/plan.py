"""Several seeds of the optimiser on the same graphs."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation, Policy
from rapo.paper.presets import Preset

METHODS = ("GE", "PM-ST", "RAPO")
APART = 1000
"""Between the seeds of the optimiser on one graph; the first is that of Table 1."""


def evaluations(preset: Preset, method: str) -> dict[tuple[int, int], Evaluation]:
    """By graph and start."""
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
    """All methods, graphs and starts, and GE's return on the main graphs, the unit."""
    unit = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
    return unit + [each for m in METHODS for each in evaluations(preset, m).values()]
