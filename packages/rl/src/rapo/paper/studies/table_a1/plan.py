"""The evaluations of Table A.1."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset

METHODS = ("SS", "Shield")


def plan(preset: Preset) -> list[Evaluation]:
    """Return SS and Shield on every graph, and GE, whose return is the unit."""
    methods = ("GE", *METHODS)
    return [preset.evaluation(m, s) for m in methods for s in preset.graph_seeds]
