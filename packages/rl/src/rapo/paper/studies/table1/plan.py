"""What Table 1 is made of: every method, the twin of off@rep, every constant action."""

from __future__ import annotations

from collections.abc import Sequence

from rapo.cascade.setting import ACTIONS
from rapo.paper.presets import Preset
from rapo.paper.tasks import Constant, Evaluate


def plan(preset: Preset) -> list[Evaluate]:
    """What the table is made of, and the constant actions that GE must not fall behind."""
    return methods_and_twins(preset) + constants(preset)


def methods_and_twins(preset: Preset) -> list[Evaluate]:
    """Every method on every graph, and RAPO's policy under `P0`, the twin of off@rep.

    Graph by graph, so that a run that is cut has whole graphs.
    """
    tasks = [preset.evaluation(m, s) for s in preset.graph_seeds for m in preset.methods]
    return tasks + twins(preset)


def twins(preset: Preset, seeds: Sequence[int] | None = None) -> list[Evaluate]:
    """RAPO's policy under `P0` with the same draws, by default on the main graphs."""
    return [
        preset.evaluation("RAPO", seed, options=(("deformation", "off"),), label="P0-twin")
        for seed in (preset.graph_seeds if seeds is None else seeds)
    ]


def constants(preset: Preset) -> list[Evaluate]:
    """Every action as a policy, on GE's graphs and episodes under GE's kernel, with its draws."""
    return [
        Evaluate(
            Constant(preset.config("GE", seed), action), "GE", episodes=preset.episodes, label=name
        )
        for seed in preset.graph_seeds
        for action, name in enumerate(ACTIONS)
    ]
