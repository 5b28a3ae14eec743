"""RAPO beside constants, greedy and a policy without sight, all with the same draws."""

from __future__ import annotations

from rapo.cascade.setting import ACTIONS
from rapo.paper.jobs import GREEDY, Evaluation, Policy
from rapo.paper.presets import Preset

RAPO, BLIND = "RAPO", "RAPO-x"
DEFORMED = tuple(f"deformed-{name}" for name in ACTIONS)
"""The constant actions under RAPO's kernel."""
STATIONARY = ("PM-ST", "GE")
"""For comparison, under `P0`."""


def rows(preset: Preset) -> dict[str, list[Evaluation]]:
    """Evaluations on every graph by row: same episodes and draws in all of them."""

    def untrained(name: str, label: str) -> list[Evaluation]:
        policies = [Policy(preset.config(RAPO, seed), name) for seed in preset.graph_seeds]
        return [Evaluation(p, RAPO, episodes=preset.episodes, label=label) for p in policies]

    trained = {
        m: [preset.evaluation(m, s) for s in preset.graph_seeds] for m in (RAPO, BLIND, *STATIONARY)
    }
    names = dict(zip((*DEFORMED, GREEDY), (*ACTIONS, GREEDY), strict=True))
    return trained | {label: untrained(name, label) for label, name in names.items()}


def plan(preset: Preset) -> list[Evaluation]:
    """All rows, graph by graph."""
    return [each for row in zip(*rows(preset).values(), strict=True) for each in row]
