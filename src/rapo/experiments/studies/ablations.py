"""Ablations: forgetting scars, partial deployment, regions, and harm that is told wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rapo.agents.methods import LOCAL_SHARE, SLOW_DECAY, TOP_K
from rapo.experiments.paper import METRICS, SLOW_DECAY_RAG, TABLE1
from rapo.experiments.presets import Preset
from rapo.experiments.studies.graph_means import FEW, mean_of, retrained, told, unit_means
from rapo.experiments.studies.section import Claim, Section, Store
from rapo.experiments.studies.tradeoff_points import TITLES, Means, unique
from rapo.experiments.studies.verdicts import (
    CALIBRATED,
    PREDICTED,
    above,
    allowance,
    bare,
    cell,
    verdict,
)
from rapo.experiments.tasks import Evaluate
from rapo.rsd.statistics import mean_interval, paired_interval

SPREADS = (0.5, 1.0)
"""Noise of a report, relative: too much or too little by this share."""
COLUMNS = (*METRICS, "OddsRatio", "ScarMass", "reach_replay")


@dataclass(frozen=True)
class Variant:
    """A row of a table: RAPO changed in one respect."""

    part: str
    """`decay`, `scope`, `regions` or `harm`."""
    name: str
    tasks: tuple[Evaluate, ...]
    value: float = float("nan")
    """Where it stands on the axis of its figure."""
    unit: bool = True
    """Whether GE's return on the main graphs is its unit."""


def _each(preset: Preset, method: str, value: object, **options: Any) -> tuple[Evaluate, ...]:
    """RAPO's trained policy on the graphs of the sweeps; without options the method as it is."""
    label = f"{method}-{value}" if options else ""
    return tuple(preset.evaluation(method, s, label=label, **options) for s in preset.sweep_seeds)


def full(preset: Preset) -> Variant:
    """RAPO as in Table 1."""
    return Variant("scope", "full (RAPO)", _each(preset, "RAPO", ""), 1.0)


def free(preset: Preset) -> tuple[Evaluate, ...]:
    """RAPO's policy under `P0`: what the reach in Replay is measured against."""
    return tuple(
        preset.evaluation("RAPO", s, options=(("deformation", "off"),), label="P0-twin")
        for s in preset.sweep_seeds
    )


def decays(preset: Preset) -> list[Variant]:
    """Scars that forget; the method's own delta is no change."""
    found = [
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
    return [*found, Variant("decay", "delta 1 (RAPO)", full(preset).tasks, 1.0)]


def scopes(preset: Preset) -> list[Variant]:
    """Partial deployment: the k likeliest destinations, or a share of the regions."""
    found = [full(preset)]
    for k in preset.topk:
        changed = {} if k == TOP_K else {"options": (("deformation", f"topk:{k}"),)}
        found.append(Variant("scope", f"top-k, k = {k}", _each(preset, "top-k", k, **changed), k))
    for share in preset.local:
        changed = {} if share == LOCAL_SHARE else {"options": (("deformation", f"local:{share}"),)}
        tasks = _each(preset, "local", share, **changed)
        found.append(Variant("scope", f"local, {share:.0%} of the regions", tasks, share))
    return [*found, Variant("scope", "none (P0)", free(preset), 0.0)]


def regions(preset: Preset) -> list[Variant]:
    """Trained anew with other regions, and with the paper's literal one-step activation."""
    setting = preset.setting
    literal = setting.replace(persistence=0.0)
    found = [Variant("regions", f"{setting.regions} (default)", retrained(preset))]
    found += [
        Variant("regions", spec, retrained(preset, regions=spec))
        for spec in preset.region_sizes
        if spec != setting.regions
    ]
    if setting.persistence > 0:
        one_step = retrained(preset, regions="node", setting=literal)
        # other dynamics, so GE's return there is not its unit
        found.append(Variant("regions", "node, one-step activation", one_step, unit=False))
    return found


def harms(preset: Preset) -> list[Variant]:
    """Harm credited to wrong regions, reports that are lost, and reports that are noisy."""
    found = [Variant("harm", "as it is (RAPO)", full(preset).tasks, 0.0)]
    for p in preset.misattributed:
        wrong = _each(preset, "RAPO", f"misattributed{p:g}", options=(("misattribute", f"{p:g}"),))
        found.append(Variant("harm", f"{p:.0%} misattributed", wrong, p))
    for p in preset.unreported:
        lost = _each(preset, "RAPO", f"lost{p:g}", options=(("lost", f"{p:g}"),))
        found.append(Variant("harm", f"{p:.0%} unreported", lost, p))
    for s in SPREADS:
        noisy = _each(preset, "RAPO", f"noisy{s:g}", options=(("spread", f"{s:g}"),))
        found.append(Variant("harm", f"noise of ±{s:.0%}", noisy, s))
    return found


def variants(preset: Preset) -> dict[str, list[Variant]]:
    """All rows, by table."""
    return {
        "decay": decays(preset), "scope": scopes(preset), "regions": regions(preset),
        "harm": harms(preset),
    }  # fmt: skip


def plan(preset: Preset) -> list[Evaluate]:
    """All variants, and GE's return on the main graphs, the unit of ReplayRet."""
    tasks = [preset.evaluation("GE", s) for s in preset.graph_seeds]
    tasks += [task for part in variants(preset).values() for v in part for task in v.tasks]
    return unique([*tasks, *free(preset)])


def analyse(store: Store) -> Section:
    """Four tables, two figures and the claims R4, R6 and of the discussion."""
    preset = store.preset
    base = store.base_return()
    parts = variants(preset)
    rows = [v for part in parts.values() for v in part]
    means = {v.tasks: unit_means(store, v.tasks, base, COLUMNS) for v in rows}
    for v in rows:
        if not v.unit:
            means[v.tasks]["ReplayRet"] = np.nan
    open_reach = means[free(preset)]["reach_replay"]
    sweep = (
        f"{preset.nodes} nodes, {len(preset.sweep_seeds)} graphs x {preset.episodes} episodes, "
        f"RAPO's policy of {preset.steps:,} training steps"
    )
    anew = (
        f"{preset.nodes} nodes, {len(preset.retrain_seeds)} graphs x {preset.episodes} episodes, "
        f"each trained anew for {preset.retrain_steps:,} steps"
    )
    captions = {
        "decay": f"Scars that forget: {sweep}",
        "scope": f"Partial deployment: {sweep}",
        "regions": f"Regions: {anew}",
        "harm": f"Harm told wrongly: {sweep}",
    }
    text = [
        "Mean with 95% interval over graph means. Decay, deployment and harm change the "
        "environment of a trained RAPO and do not train again. Reach vs P0 is the mean reach in "
        "Replay over that of the same policy under P0, graph by graph: ratios to Exposure alone "
        "mislead where Exposure itself is deformed less.",
        "A region's trace must pass tau before a scar grows; a node alone passes it only if it is "
        f"active most of the time. The paper's are nodes; ours: {_told(parts, means)}. "
        "One-step activation is the literal reading of the diffusion; its graphs are rescaled to "
        "the same cascade size, and GE's return on them is not known, so it has no ReplayRet. Scar "
        "mass is the sum over regions; OddsRatio below 1 without scars is the trace's work.",
        "Misattributed: a share of the sensitive nodes credits a random other region that holds "
        "sensitive nodes. Unreported: what a region is charged with at a step is lost with that "
        "probability. Noise: it is that much too large or too small, each half of the time.",
    ]
    figures = [
        ("ablations", "Replay and return of every variant: mean, single graphs (ticks) and, from "
         f"{FEW} graphs on, 95% intervals; the blue line is RAPO as it is, the dashed one 1",
         _overview(parts, means)),
        ("regions", "OddsRatio, RAG and return of RAPO trained with regions of each size; "
         "ticks are single graphs", _regions_figure(parts["regions"], means)),
    ]  # fmt: skip
    return Section(
        name="ablations",
        title="Ablations: forgetting, partial deployment, regions, wrong harm",
        text=text,
        tables=[
            (captions[name], _printed(part, means, None if name == "regions" else open_reach))
            for name, part in parts.items()
        ],
        figures=figures,
        claims=_claims(parts, means, open_reach),
        files={"ablations": _flat(parts, means)},
    )


def reach_vs_free(found: pd.DataFrame, open_reach: pd.Series) -> pd.Series:
    """Reach in Replay over that under `P0` on the same graph: graphs differ in what can be reached.

    Args:
        found: graph means of a variant, by graph seed.
        open_reach: reach under `P0` by graph seed; other graphs than those of `found` do no harm.
    """
    return found["reach_replay"] / open_reach.where(open_reach > 0).reindex(found.index)


def _printed(part: Sequence[Variant], means: Means, open_reach: Any) -> pd.DataFrame:
    rows = []
    for v in part:
        found = means[v.tasks]
        row = {"": v.name}
        row |= {TITLES[m]: told(found[m]) for m in (*METRICS, "OddsRatio")}
        if open_reach is None:
            row["scar mass"] = told(found["ScarMass"])
        else:
            row["reach vs P0"] = told(reach_vs_free(found, open_reach))
        rows.append(row)
    return pd.DataFrame(rows)


def _told(parts: dict[str, list[Variant]], means: Means) -> str:
    """OddsRatio and RAG of node-level regions beside those of the default."""
    shown = [v for v in parts["regions"] if "default" in v.name or v.name.startswith("node")]
    return "; ".join(
        f"{v.name}: OddsRatio {mean_of(means[v.tasks]['OddsRatio']):.2f}, "
        f"RAG {mean_of(means[v.tasks]['RAG']):.2f}"
        for v in shown
    )


def _flat(parts: dict[str, list[Variant]], means: Means) -> pd.DataFrame:
    rows = []
    for name, part in parts.items():
        for v in part:
            row: dict[str, Any] = {"part": name, "name": v.name, "graphs": len(means[v.tasks])}
            for metric in COLUMNS:
                told = mean_interval(means[v.tasks][metric])
                row |= {metric: told.mean, f"{metric}_low": told.low, f"{metric}_high": told.high}
            rows.append(row)
    return pd.DataFrame(rows)


def _claims(parts: dict[str, list[Variant]], means: Means, open_reach: pd.Series) -> list[Claim]:
    rapo = means[parts["scope"][0].tasks]["RAG"]
    return [
        *_decay_claim(parts["decay"], means),
        *_scope_claims(parts["scope"], means, open_reach),
        *_region_claims(parts["regions"], means),
        *_harm_claims(parts["harm"], means, rapo),
    ]


def _nearest(part: Sequence[Variant], prefix: str, value: float) -> Variant | None:
    """The variant of a kind whose value comes closest."""
    kind = [v for v in part if v.name.startswith(prefix)]
    return min(kind, key=lambda v: abs(v.value - value)) if kind else None


def _decay_claim(part: Sequence[Variant], means: Means) -> list[Claim]:
    slow = _nearest([v for v in part if v.value < 1], "delta", SLOW_DECAY)
    if slow is None:
        return []
    rag = means[slow.tasks]["RAG"]
    within = bare(mean_of(rag), SLOW_DECAY_RAG, "RAG")
    return [
        Claim(
            "R4",
            f"Slow-decay scars maintain suppression ({slow.name})",
            f"RAG {SLOW_DECAY_RAG:.2f}",
            f"RAG {told(rag)}",
            verdict(within),
            f"{'within' if within else 'outside'} one of RAPO's stds "
            f"({allowance(SLOW_DECAY_RAG, 'RAG'):.2f}), as the paper gives none; nor does it say "
            "which delta",
            CALIBRATED,
        )
    ]


def _scope_claims(part: Sequence[Variant], means: Means, open_reach: pd.Series) -> list[Claim]:
    """Partial deployment keeps at least half of the reduction of RAG, and of the reach.

    RAG alone would pass what only lets Exposure reach further.
    """

    def measures(v: Variant) -> dict[str, pd.Series]:
        found = means[v.tasks]
        return {"RAG": found["RAG"], "reach vs P0": reach_vs_free(found, open_reach)}

    whole = measures(part[0])
    half = {name: (1 + mean_of(values)) / 2 for name, values in whole.items()}
    asked = " and ".join(f"{name} {most:.2f}" for name, most in half.items())
    claims = []
    for prefix, value in (("top-k", TOP_K), ("local", LOCAL_SHARE)):
        found = _nearest(part, prefix, value)
        if found is None:
            continue
        ours = measures(found)
        claims.append(
            Claim(
                "R6",
                f"Partial deployment retains suppression: {found.name}",
                "retains replay suppression (no number)",
                "; ".join(f"{m} {told(ours[m])}, full {told(whole[m])}" for m in whole),
                verdict(all(mean_of(ours[m]) <= half[m] for m in whole)),
                f"at least half of full deployment's reduction asks for {asked} or less",
                PREDICTED,
            )
        )
    return claims


def _region_claims(part: Sequence[Variant], means: Means) -> list[Claim]:
    claims = []
    paper, std = TABLE1["RAPO"]["RAG"]
    for v in part:
        if not v.name.startswith("node"):
            continue
        rag, odds = means[v.tasks]["RAG"], means[v.tasks]["OddsRatio"]
        within = cell(mean_of(rag), "RAPO", "RAG")
        claims.append(
            Claim(
                "Regions",
                f"Suppression with node-level regions: {v.name}",
                f"RAG {paper:.2f} ± {std:.2f} (R = |V|)",
                f"RAG {told(rag)}, OddsRatio {told(odds)}",
                verdict(within),
                "within two of the paper's stds"
                if within
                else "a node's trace hardly passes tau with the paper's constants",
                PREDICTED,
            )
        )
    return claims


def _harm_claims(part: Sequence[Variant], means: Means, rapo: Any) -> list[Claim]:
    """What the discussion fears of biased and of noisy harm: the worst of each kind."""
    kinds = {
        "misattributed": ("Misaligned attribution weakens suppression",
                          "wrong regions lie in V_sens too, so their scars still stand in the way"),
        "unreported": ("Harm that goes unreported weakens suppression",
                       "reports that do arrive pass tau nevertheless"),
        "noise": ("Noisy harm weakens suppression",
                  "the trace averages noise over 1 / lambda steps, and tau lets its peaks pass"),
    }  # fmt: skip
    claims = []
    for kind, (statement, otherwise) in kinds.items():
        these = [v for v in part if kind in v.name]
        if not these:
            continue
        most = max(these, key=lambda v: v.value)
        odds = [means[v.tasks]["OddsRatio"] for v in (part[0], most)]
        gap = paired_interval(means[most.tasks]["RAG"], rapo)
        between = "" if np.isnan(gap.low) else f" [{gap.low:+.2f}, {gap.high:+.2f}]"
        weaker = above(gap.difference, gap.low)
        claims.append(
            Claim(
                "Limits",
                f"{statement} ({most.name})",
                "biased or noisy harm misplaces scars (no number)",
                f"RAG {gap.difference:+.2f}{between}; OddsRatio {told(odds[1])} instead of "
                f"{told(odds[0])}",
                verdict(weaker),
                "same graphs, policy and draws, paired" if weaker else otherwise,
                PREDICTED,
            )
        )
    return claims


COLOURS = {"decay": "slow-decay", "scope": "top-k", "harm": "off@rep"}
"""Whose colour the rows of a table have."""


def _overview(parts: dict[str, list[Variant]], means: Means) -> Any:
    from rapo.experiments.studies.drawing import COLOURS as PALETTE
    from rapo.experiments.studies.drawing import new_figure, tidy

    shown = ("decay", "scope", "harm")
    titles = ("scars that forget", "partial deployment", "harm told wrongly")
    metrics = ("RAG", "OddsRatio", "ReplayRet")
    heights = [len(parts[name]) for name in shown]
    figure, axes = new_figure(
        3, 3, width=11.5, height=1.9 + 0.33 * sum(heights), sharex="col", sharey="row",
        squeeze=False, height_ratios=heights,
    )  # fmt: skip
    rapo = means[parts["scope"][0].tasks]
    for line, name, title in zip(axes, shown, titles, strict=True):
        order = parts[name][::-1]
        for ax, metric in zip(line, metrics, strict=True):
            ax.axvline(mean_of(rapo[metric]), color=PALETTE["RAPO"], lw=1, zorder=1)
            ax.axvline(1, color="#9AA0A8", lw=0.9, ls=(0, (4, 3)), zorder=1)
            for y, v in enumerate(order):
                own = "(RAPO)" in v.name
                colour = PALETTE["RAPO"] if own else PALETTE[COLOURS[name]]
                _mark(ax, means[v.tasks][metric], y, colour)
            ax.set_yticks(range(len(order)), [v.name for v in order], fontsize=9)
            ax.set_ylim(-0.6, len(order) - 0.4)
            tidy(ax)
            if name == shown[0]:
                ax.set_title(metric, fontsize=11)
                _fit(ax, [means[v.tasks][metric] for n in shown for v in parts[n]])
        line[0].set_ylabel(title, fontsize=10)
    figure.align_ylabels(axes[:, 0])
    return figure


def _regions_figure(part: Sequence[Variant], means: Means) -> Any:
    from rapo.experiments.studies.drawing import COLOURS as PALETTE
    from rapo.experiments.studies.drawing import new_figure, tidy

    figure, axes = new_figure(1, 3, width=11.5, height=1.6 + 0.34 * len(part), sharey=True)
    order = sorted(part, key=_coarseness)[::-1]
    for ax, metric in zip(axes, ("OddsRatio", "RAG", "ReplayRet"), strict=True):
        ax.axvline(1, color="#9AA0A8", lw=0.9, ls=(0, (4, 3)), zorder=1)
        for y, v in enumerate(order):
            colour = PALETTE["RAPO"] if "default" in v.name else "#6B7280"
            _mark(ax, means[v.tasks][metric], y, colour)
        ax.set_title(metric, fontsize=11)
        ax.set_yticks(range(len(order)), [v.name for v in order], fontsize=9)
        ax.set_ylim(-0.6, len(order) - 0.4)
        _fit(ax, [means[v.tasks][metric] for v in order])
        tidy(ax)
    return figure


def _mark(ax: Any, values: Any, y: int, colour: str) -> None:
    """A dot at the mean, a tick per graph, and the interval unless there are too few graphs."""
    told = mean_interval(values)
    if told.n >= FEW:
        ax.plot([told.low, told.high], [y, y], color=colour, lw=1.6, zorder=2)
    ax.plot(values, [y] * len(values), "|", color=colour, ms=9, alpha=0.5, zorder=2)
    ax.plot(told.mean, y, "o", color=colour, ms=6, zorder=3)


def _fit(ax: Any, values: Sequence[Any]) -> None:
    """Set the scale by graph means and 1, the same whether intervals are drawn or not."""
    known = np.concatenate([np.asarray(v, float) for v in values])
    known = np.append(known[np.isfinite(known)], 1.0)
    margin = 0.08 * max(float(np.ptp(known)), 0.1)
    ax.set_xlim(float(known.min()) - margin, float(known.max()) + margin)


def _coarseness(v: Variant) -> float:
    """Mean size of a region, the literal node-level reading first."""
    if v.name.startswith("node"):
        return 1.0 if v.unit else 0.0
    size = v.name.partition(":")[2].split()
    return float(size[0]) if size else 0.0
