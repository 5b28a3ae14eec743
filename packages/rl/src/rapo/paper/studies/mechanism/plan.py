"""The evaluations of Table 1, and RAPO with so many episodes that every stimulus repeats."""

from __future__ import annotations

from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo.paper.studies.mechanism.measures import RAPO
from rapo.paper.studies.table1.plan import methods_and_twins

REPEATS = 20
"""Factor on the episodes of Table 1 that tells a stimulus' own RAG from chance."""


def repeated(preset: Preset) -> list[Evaluation]:
    """Evaluate RAPO on every graph with so many episodes that each stimulus repeats."""
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
    """List the evaluations of Table 1, and RAPO's with more episodes."""
    return methods_and_twins(preset) + repeated(preset)
