"""Several seeds of the optimiser on the same graphs."""

from __future__ import annotations

from rapo.paper.presets import Preset
from rapo.paper.tasks import Evaluate, Train

METHODS = ("GE", "PM-ST", "RAPO")
APART = 1000
"""Between the seeds of the optimiser on one graph; the first is that of Table 1."""


def evaluations(preset: Preset, method: str) -> dict[tuple[int, int], Evaluate]:
    """By graph and start."""
    return {
        (seed, start): Evaluate(
            Train(preset.config(method, seed, seed=seed + APART * start)),
            method,
            episodes=preset.episodes,
        )
        for seed in preset.spread_seeds
        for start in range(preset.starts)
    }


def plan(preset: Preset) -> list[Evaluate]:
    """All methods, graphs and starts, and GE's return on the main graphs, the unit."""
    unit = [preset.evaluation("GE", seed) for seed in preset.graph_seeds]
    return unit + [task for m in METHODS for task in evaluations(preset, m).values()]
