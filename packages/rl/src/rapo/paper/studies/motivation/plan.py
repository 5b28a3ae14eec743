"""The motivation study trains nothing: its controller is scripted and runs within seconds."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset


def plan(preset: Preset) -> list[Evaluation]:
    """Return no evaluation."""
    return []
