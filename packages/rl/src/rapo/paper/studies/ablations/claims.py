"""Judge what the paper says of partial and forgetful RAPO: R4, R6 and the discussion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rapo.agents.methods import LOCAL_SHARE, SLOW_DECAY, TOP_K
from rapo.paper.paper import SLOW_DECAY_RAG, TABLE1
from rapo.paper.studies.ablations.plan import Variant
from rapo.paper.studies.graph_means import interval_text, mean_of, with_interval
from rapo.paper.studies.tradeoff.plan import Means
from rapo.paper.studies.verdicts import (
    CALIBRATED,
    PREDICTED,
    Claim,
    above,
    allowance,
    bare,
    cell,
    judge,
)
from rapo.rsd.statistics import paired_interval

WRONG_HARM = {
    "misattributed": (
        "Misaligned attribution weakens suppression",
        "wrong regions lie in V_sens too, so their scars still stand in the way",
    ),
    "unreported": (
        "Harm that goes unreported weakens suppression",
        "reports that do arrive pass tau nevertheless",
    ),
    "noise": (
        "Noisy harm weakens suppression",
        "the trace averages noise over 1 / lambda steps, and tau lets its peaks pass",
    ),
}
"""By kind of wrong harm: the claim, and why it does not hold here."""


def reach_vs_free(values: pd.DataFrame, open_reach: pd.Series) -> pd.Series:
    """Divide the reach in Replay by that under `P0` on the same graph.

    Graphs differ in how much of them can be reached.

    Args:
        values: graph means of a variant, by graph seed.
        open_reach: reach under `P0` by graph seed; it may hold more graphs than `values`.
    """
    return values["reach_replay"] / open_reach.where(open_reach > 0).reindex(values.index)


def ablation_claims(
    parts: Mapping[str, Sequence[Variant]], means: Means, open_reach: pd.Series
) -> list[Claim]:
    """Judge all four tables; `open_reach` is the reach in Replay under `P0`, by graph seed."""
    return [
        *_decay_claim(parts["decay"], means),
        *_scope_claims(parts["scope"], means, open_reach),
        *_region_claims(parts["regions"], means),
        *_harm_claims(parts["harm"], means, means[parts["scope"][0].evaluations]["RAG"]),
    ]


def _nearest(part: Sequence[Variant], prefix: str, value: float) -> Variant | None:
    """Find the variant of a kind whose value comes closest."""
    kind = [v for v in part if v.name.startswith(prefix)]
    return min(kind, key=lambda v: abs(v.value - value)) if kind else None


def _decay_claim(part: Sequence[Variant], means: Means) -> list[Claim]:
    slow = _nearest([v for v in part if v.value < 1], "delta", SLOW_DECAY)
    if slow is None:
        return []
    rag = means[slow.evaluations]["RAG"]
    reason = (
        f"one of RAPO's stds ({allowance(SLOW_DECAY_RAG, 'RAG'):.2f}), as the paper gives none; "
        "nor does it say which delta"
    )
    return [
        judge(
            "R4",
            f"Slow-decay scars maintain suppression ({slow.name})",
            f"RAG {SLOW_DECAY_RAG:.2f}",
            f"RAG {with_interval(rag)}",
            bare(mean_of(rag), SLOW_DECAY_RAG, "RAG"),
            CALIBRATED,
            f"within {reason}",
            f"outside {reason}",
        )
    ]


def _scope_claims(part: Sequence[Variant], means: Means, open_reach: pd.Series) -> list[Claim]:
    """Partial deployment keeps at least half of the reduction of RAG, and of the reach.

    RAG alone would pass a deployment that only lets Exposure reach further.
    """

    def measures(v: Variant) -> dict[str, pd.Series]:
        return {
            "RAG": means[v.evaluations]["RAG"],
            "reach vs P0": reach_vs_free(means[v.evaluations], open_reach),
        }

    full = measures(part[0])
    limits = {name: (1 + mean_of(values)) / 2 for name, values in full.items()}
    condition = " and ".join(f"{name} {limit:.2f}" for name, limit in limits.items())
    claims = []
    for prefix, value in (("top-k", TOP_K), ("local", LOCAL_SHARE)):
        variant = _nearest(part, prefix, value)
        if variant is None:
            continue
        ours = measures(variant)
        claims.append(
            judge(
                "R6",
                f"Partial deployment retains suppression: {variant.name}",
                "retains replay suppression (no number)",
                "; ".join(
                    f"{m} {with_interval(ours[m])}, full {with_interval(full[m])}" for m in full
                ),
                all(mean_of(ours[m]) <= limits[m] for m in limits),
                PREDICTED,
                f"at least half of full deployment's reduction asks for {condition} or less",
            )
        )
    return claims


def _region_claims(part: Sequence[Variant], means: Means) -> list[Claim]:
    paper, std = TABLE1["RAPO"]["RAG"]
    return [
        judge(
            "Regions",
            f"Suppression with node-level regions: {v.name}",
            f"RAG {paper:.2f} ± {std:.2f} (R = |V|)",
            f"RAG {with_interval(means[v.evaluations]['RAG'])}, "
            f"OddsRatio {with_interval(means[v.evaluations]['OddsRatio'])}",
            cell(mean_of(means[v.evaluations]["RAG"]), "RAPO", "RAG"),
            PREDICTED,
            "within two of the paper's stds",
            "a node's trace hardly passes tau with the paper's constants",
        )
        for v in part
        if v.name.startswith("node")
    ]


def _harm_claims(part: Sequence[Variant], means: Means, rapo: Any) -> list[Claim]:
    """Judge what the discussion fears of biased and of noisy harm by the worst of each kind."""
    claims = []
    for kind, (statement, otherwise) in WRONG_HARM.items():
        variants = [v for v in part if kind in v.name]
        if not variants:
            continue
        worst = max(variants, key=lambda v: v.value)
        gap = paired_interval(means[worst.evaluations]["RAG"], rapo)
        before, after = (with_interval(means[v.evaluations]["OddsRatio"]) for v in (part[0], worst))
        claims.append(
            judge(
                "Limits",
                f"{statement} ({worst.name})",
                "biased or noisy harm misplaces scars (no number)",
                f"RAG {interval_text(gap.difference, gap.low, gap.high, '+.2f')}; "
                f"OddsRatio {after} instead of {before}",
                above(gap.difference, gap.low),
                PREDICTED,
                "same graphs, policy and draws, paired",
                otherwise,
            )
        )
    return claims
