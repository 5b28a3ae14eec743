"""What Table A1 is made of."""

from __future__ import annotations

from rapo.paper.presets import Preset
from rapo.paper.tasks import Evaluate

METHODS = ("SS", "Shield")


def plan(preset: Preset) -> list[Evaluate]:
    """SS and Shield on every graph, and GE, whose return is the unit."""
    methods = ("GE", *METHODS)
    return [preset.evaluation(m, s) for m in methods for s in preset.graph_seeds]
