"""The evaluations of the ablations: RAPO changed in one respect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rapo.agents.methods import LOCAL_SHARE, SLOW_DECAY, TOP_K
from rapo.paper.jobs import Evaluation
from rapo.paper.presets import Preset
from rapo.paper.studies.graph_means import retrained
from rapo.paper.studies.table1.plan import twins

SPREADS = (0.5, 1.0)
"""Noise of a report, relative: too much or too little by this share."""


@dataclass(frozen=True)
class Variant:
    """A row of a table: RAPO changed in one respect."""

    part: str
    """`decay`, `scope`, `regions` or `harm`."""
    name: str
    evaluations: tuple[Evaluation, ...]
    value: float = float("nan")
    """Where it stands on the axis of its figure."""
    unit: bool = True
    """Whether GE's return on the main graphs is its unit."""


def _each(preset: Preset, method: str, value: object, **options: Any) -> tuple[Evaluation, ...]:
    """Return evaluations of RAPO's policy on the graphs of the sweeps, perhaps with changes."""
    label = f"{method}-{value}" if options else ""
    return tuple(preset.evaluation(method, s, label=label, **options) for s in preset.sweep_seeds)


def full(preset: Preset) -> Variant:
    """Return RAPO as it is in Table 1."""
    return Variant("scope", "full (RAPO)", _each(preset, "RAPO", ""), 1.0)


def free(preset: Preset) -> tuple[Evaluation, ...]:
    """Return RAPO's policy under `P0`, whose reach in Replay the others are compared with."""
    return tuple(twins(preset, preset.sweep_seeds))


def decays(preset: Preset) -> list[Variant]:
    """Return scars that forget, and RAPO, whose scars do not."""
    changed = [
        Variant(
            "decay",
            f"delta {delta:g}",
            _each(preset, "slow-decay", delta, params=(("delta", delta),))
            if delta != SLOW_DECAY
            else _each(preset, "slow-decay", delta),
            delta,
        )
        for delta in preset.delta
    ]
    return [*changed, Variant("decay", "delta 1 (RAPO)", full(preset).evaluations, 1.0)]


def scopes(preset: Preset) -> list[Variant]:
    """Return partial deployment: to the k likeliest destinations, or to a share of the regions."""
    rows = [full(preset)]
    for k in preset.topk:
        changes = {} if k == TOP_K else {"options": (("deformation", f"topk:{k}"),)}
        rows.append(Variant("scope", f"top-k, k = {k}", _each(preset, "top-k", k, **changes), k))
    for share in preset.local:
        changes = {} if share == LOCAL_SHARE else {"options": (("deformation", f"local:{share}"),)}
        part = _each(preset, "local", share, **changes)
        rows.append(Variant("scope", f"local, {share:.0%} of the regions", part, share))
    return [*rows, Variant("scope", "none (P0)", free(preset), 0.0)]


def regions(preset: Preset) -> list[Variant]:
    """Return RAPO trained anew with other regions, and with the literal one-step activation."""
    setting = preset.setting
    literal = setting.replace(persistence=0.0)
    rows = [Variant("regions", f"{setting.regions} (default)", retrained(preset))]
    rows += [
        Variant("regions", spec, retrained(preset, regions=spec))
        for spec in preset.region_sizes
        if spec != setting.regions
    ]
    if setting.persistence:
        one_step = retrained(preset, regions="node", setting=literal)
        # the dynamics are others, so GE's return on the main graphs is not its unit
        rows.append(Variant("regions", "node, one-step activation", one_step, unit=False))
    return rows


def harms(preset: Preset) -> list[Variant]:
    """Return harm credited to wrong regions, reports that are lost, and noisy reports."""
    rows = [Variant("harm", "as it is (RAPO)", full(preset).evaluations, 0.0)]
    for p in preset.misattributed:
        wrong = _each(preset, "RAPO", f"misattributed{p:g}", options=(("misattribute", f"{p:g}"),))
        rows.append(Variant("harm", f"{p:.0%} misattributed", wrong, p))
    for p in preset.unreported:
        lost = _each(preset, "RAPO", f"lost{p:g}", options=(("lost", f"{p:g}"),))
        rows.append(Variant("harm", f"{p:.0%} unreported", lost, p))
    for s in SPREADS:
        noisy = _each(preset, "RAPO", f"noisy{s:g}", options=(("spread", f"{s:g}"),))
        rows.append(Variant("harm", f"noise of ±{s:.0%}", noisy, s))
    return rows


def variants(preset: Preset) -> dict[str, list[Variant]]:
    """Return all rows, by table."""
    return {
        "decay": decays(preset),
        "scope": scopes(preset),
        "regions": regions(preset),
        "harm": harms(preset),
    }


def plan(preset: Preset) -> list[Evaluation]:
    """Return all variants, and GE on the main graphs, whose return is the unit of ReplayRet."""
    wanted = [preset.evaluation("GE", s) for s in preset.graph_seeds]
    wanted += [each for part in variants(preset).values() for v in part for each in v.evaluations]
    return list(dict.fromkeys([*wanted, *free(preset)]))
