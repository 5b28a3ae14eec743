"""The evaluations of Table 1: every method, the twin of off@rep, every constant action."""

from __future__ import annotations

from collections.abc import Sequence

from rapo.cascade.setting import ACTIONS
from rapo.paper.jobs import Evaluation, Policy
from rapo.paper.presets import Preset


def plan(preset: Preset) -> list[Evaluation]:
    """Return the evaluations of the table, and of the constant actions that GE is compared with."""
    return methods_and_twins(preset) + constants(preset)


def methods_and_twins(preset: Preset) -> list[Evaluation]:
    """Return every method on every graph, and RAPO's policy under `P0`, the twin of off@rep.

    They are ordered by graph, so that a run that is cut has whole graphs.
    """
    methods = [preset.evaluation(m, s) for s in preset.graph_seeds for m in preset.methods]
    return methods + twins(preset)


def twins(preset: Preset, seeds: Sequence[int] | None = None) -> list[Evaluation]:
    """Return RAPO's policy under `P0` with the same draws, by default on the main graphs."""
    return [
        preset.evaluation("RAPO", seed, options=(("deformation", "off"),), label="P0-twin")
        for seed in (preset.graph_seeds if seeds is None else seeds)
    ]


def constants(preset: Preset) -> list[Evaluation]:
    """Return every constant action on GE's graphs and episodes, with GE's kernel and draws."""
    return [
        Evaluation(
            Policy(preset.config("GE", seed), name), "GE", episodes=preset.episodes, label=name
        )
        for seed in preset.graph_seeds
        for name in ACTIONS
    ]
