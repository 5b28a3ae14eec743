"""RAPO beside constants, greedy and a policy without sight, all with the same draws."""

from __future__ import annotations

from rapo.cascade.setting import ACTIONS
from rapo.paper.presets import Preset
from rapo.paper.tasks import Constant, Evaluate, Greedy

RAPO, BLIND, GREEDY = "RAPO", "RAPO-x", "greedy"
DEFORMED = tuple(f"deformed-{name}" for name in ACTIONS)
"""The constant actions under RAPO's kernel."""
STATIONARY = ("PM-ST", "GE")
"""For comparison, under `P0`."""


def rows(preset: Preset) -> dict[str, list[Evaluate]]:
    """Evaluations on every graph by row: same episodes and draws in all of them."""

    def constant(action: int) -> list[Evaluate]:
        return [
            Evaluate(
                Constant(preset.config(RAPO, s), action),
                RAPO,
                episodes=preset.episodes,
                label=DEFORMED[action],
            )
            for s in preset.graph_seeds
        ]

    greedy = [
        Evaluate(Greedy(preset.config(RAPO, s)), RAPO, episodes=preset.episodes, label=GREEDY)
        for s in preset.graph_seeds
    ]
    trained = {
        m: [preset.evaluation(m, s) for s in preset.graph_seeds] for m in (RAPO, BLIND, *STATIONARY)
    }
    return trained | {DEFORMED[a]: constant(a) for a in range(len(ACTIONS))} | {GREEDY: greedy}


def plan(preset: Preset) -> list[Evaluate]:
    """All rows, graph by graph."""
    return [task for tasks in zip(*rows(preset).values(), strict=True) for task in tasks]
