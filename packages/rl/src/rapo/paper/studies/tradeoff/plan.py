"""Points of the trade-off: RAPO under changed fields, trained anew, baselines and shields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from rapo.agents.methods import SHIELD_THRESHOLD
from rapo.cascade.setting import Setting
from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo.paper.studies.graph_means import retrained
from rapo_core.params import FieldParams

BASELINES = ("GE", "DR", "PM-ST", "PM-RNN", "Shield-UM")
DEFAULT = Setting.default().params
Means = dict[tuple[Evaluation, ...], pd.DataFrame]
"""Graph means by the evaluations of a point."""


@dataclass(frozen=True)
class Point:
    """A point of the figure: evaluations of one kind on several graphs."""

    group: str
    """`RAPO`, `tau`, `retrained`, `Shield` or a baseline."""
    name: str
    tasks: tuple[Evaluation, ...]
    params: FieldParams = DEFAULT
    threshold: float | None = None


Groups = dict[str, list[Point]]


def changes_of(params: FieldParams, base: FieldParams) -> tuple[tuple[str, float], ...]:
    """List the constants that differ from the preset's; none do at Table 1's own point."""
    mine, other = params.to_dict(), base.to_dict()
    return tuple((name, float(mine[name])) for name in mine if mine[name] != other[name])


def under(preset: Preset, params: FieldParams, seeds: Sequence[int]) -> tuple[Evaluation, ...]:
    """Evaluate RAPO's trained policy under other constants of the fields."""
    changed = changes_of(params, preset.params)
    label = "-".join(["RAPO", *(f"{name}{value:g}" for name, value in changed)]) if changed else ""
    return tuple(preset.evaluation("RAPO", s, params=changed, label=label) for s in seeds)


def shield_evaluations(preset: Preset, threshold: float) -> tuple[Evaluation, ...]:
    """Evaluate GE behind a shield; the fixed Shield's own threshold is no change."""
    changed = None if threshold == SHIELD_THRESHOLD else threshold
    return tuple(preset.evaluation("Shield", s, threshold=changed) for s in preset.retrain_seeds)


def grid(preset: Preset) -> list[Point]:
    """List the points of w_H x eta at the default tau, the default among them."""
    values = [replace(preset.params, w_H=w, eta=e) for e in preset.eta for w in preset.w_H]
    if preset.params not in values:
        values.append(preset.params)
    return [
        Point("RAPO", f"w_H {p.w_H:g}, eta {p.eta:g}", under(preset, p, preset.sweep_seeds), p)
        for p in values
    ]


def tau_sweep(preset: Preset) -> list[Point]:
    """List the points of tau at the default w_H and eta."""
    values = [replace(preset.params, tau=tau) for tau in preset.tau]
    return [Point("tau", f"tau {p.tau:g}", under(preset, p, preset.sweep_seeds), p) for p in values]


def checks(preset: Preset) -> list[tuple[Point, Point]]:
    """Pair RAPO's policy evaluated under constants with one trained under them, graph by graph."""
    if not preset.retrained:
        return []
    own = preset.params
    values = [own, *(replace(own, **{name: v}) for name, v in preset.retrained)]
    pairs = []
    for p in values:
        name = " ".join(f"{k} {v:g}" for k, v in changes_of(p, own)) or "default"
        trained = retrained(preset, params=p)
        evaluated = Point("RAPO", name, under(preset, p, preset.retrain_seeds), p)
        pairs.append((evaluated, Point("retrained", name, trained, p)))
    return pairs


def shields(preset: Preset) -> list[Point]:
    """List the points of the fixed-threshold Shield at each threshold."""
    return [
        Point("Shield", f"threshold {t:g}", shield_evaluations(preset, t), threshold=t)
        for t in preset.thresholds
    ]


def baselines(preset: Preset) -> list[Point]:
    """List Table 1's rows of the methods that leave the kernel alone."""
    return [
        Point(m, m, tuple(preset.evaluation(m, s) for s in preset.graph_seeds))
        for m in BASELINES
        if m in preset.methods
    ]


def plan(preset: Preset) -> list[Evaluation]:
    """List all points, and GE on the main graphs, whose return is the unit of ReplayRet."""
    points = [*grid(preset), *tau_sweep(preset), *shields(preset), *baselines(preset)]
    points += [point for pair in checks(preset) for point in pair]
    wanted = [preset.evaluation("GE", s) for s in preset.graph_seeds]
    return list(dict.fromkeys([*wanted, *(each for point in points for each in point.tasks)]))
