"""Every method on every size, trained alike."""

from __future__ import annotations

from rapo.experiments.presets import Preset
from rapo.experiments.tasks import Evaluate

METHODS = ("GE", "PM-ST", "RAPO", "off@rep")


def plan(preset: Preset) -> list[Evaluate]:
    """Every method on every size and graph, trained alike at all sizes.

    Seed by seed, so that a run that is cut has whole seeds at all sizes.
    """
    kinds = [evaluations(preset, n, m) for n in preset.sizes for m in METHODS]
    return [task for tasks in zip(*kinds, strict=True) for task in tasks]


def evaluations(preset: Preset, nodes: int, method: str) -> list[Evaluate]:
    """A method on the graphs of one size; the main size too has the steps of this study."""
    return [
        Evaluate(
            preset.policy(method, seed, nodes=nodes, steps=preset.size_steps),
            method,
            episodes=preset.episodes,
        )
        for seed in preset.size_seeds
    ]
