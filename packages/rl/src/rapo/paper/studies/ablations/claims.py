"""What the paper says of partial and forgetful RAPO, judged: R4, R6 and the discussion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rapo.agents.methods import LOCAL_SHARE, SLOW_DECAY, TOP_K
from rapo.paper.paper import SLOW_DECAY_RAG, TABLE1
from rapo.paper.studies.ablations.plan import Variant
from rapo.paper.studies.graph_means import mean_of, with_interval
from rapo.paper.studies.section import Claim
from rapo.paper.studies.tradeoff.plan import Means
from rapo.paper.studies.verdicts import (
    CALIBRATED,
    PREDICTED,
    above,
    allowance,
    bare,
    cell,
    verdict,
)
from rapo.rsd.statistics import paired_interval


def reach_vs_free(found: pd.DataFrame, open_reach: pd.Series) -> pd.Series:
    """Reach in Replay over that under `P0` on the same graph: graphs differ in what can be reached.

    Args:
        found: graph means of a variant, by graph seed.
        open_reach: reach under `P0` by graph seed; other graphs than those of `found` do no harm.
    """
    return found["reach_replay"] / open_reach.where(open_reach > 0).reindex(found.index)


def ablation_claims(
    parts: dict[str, list[Variant]], means: Means, open_reach: pd.Series
) -> list[Claim]:
    """Claims of all four tables; `open_reach` is the reach in Replay under `P0`, by graph seed."""
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
            f"RAG {with_interval(rag)}",
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
                "; ".join(
                    f"{m} {with_interval(ours[m])}, full {with_interval(whole[m])}" for m in whole
                ),
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
                f"RAG {with_interval(rag)}, OddsRatio {with_interval(odds)}",
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
                f"RAG {gap.difference:+.2f}{between}; OddsRatio {with_interval(odds[1])} instead "
                f"of {with_interval(odds[0])}",
                verdict(weaker),
                "same graphs, policy and draws, paired" if weaker else otherwise,
                PREDICTED,
            )
        )
    return claims
