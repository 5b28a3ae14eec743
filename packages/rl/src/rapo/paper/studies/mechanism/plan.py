"""The evaluations of Table 1, and RAPO's once more with many episodes a stimulus."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo.paper.studies.mechanism.measures import RAPO
from rapo.paper.studies.table1.plan import methods_and_twins

REPEATS = 20
"""Times the episodes of Table 1 that tell a stimulus' own RAG from chance."""


def repeated(preset: Preset) -> list[Evaluation]:
    """RAPO on every graph with so many episodes that each stimulus comes back many times."""
    if RAPO not in preset.methods:
        return []
    return [
        Evaluation(
            preset.policy(RAPO, seed),
            RAPO,
            episodes=REPEATS * preset.episodes,
            label="RAPO-repeated",
        )
        for seed in preset.graph_seeds
    ]


def plan(preset: Preset) -> list[Evaluation]:
    """The evaluations of Table 1, and RAPO's once more with many episodes a stimulus."""
    return methods_and_twins(preset) + repeated(preset)
