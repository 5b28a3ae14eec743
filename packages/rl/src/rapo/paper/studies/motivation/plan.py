"""A scripted controller under two kernels; nothing to train."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo.paper.throttle import ThrottledRun

EPISODES = 64
Runs = dict[str, ThrottledRun]
FREE, RESET, CARRIED = "no penalty", "penalty, reset", "penalty, carried on"
KERNELS = {"off": "P0", "full": "deformed"}


def plan(preset: Preset) -> list[Evaluation]:
    """Nothing is trained: the controller is scripted and runs within seconds."""
    return []
