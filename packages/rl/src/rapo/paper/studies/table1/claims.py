"""Judge what the paper says of Table 1: R1, R2, R3, R5 and every cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rapo.cascade.setting import ACTIONS
from rapo.paper.paper import METRICS, RAG_GAP, RAG_GAP_P, REDUCTION, TABLE1
from rapo.paper.studies.graph_means import PARTS, TITLES, interval_text, mean_of, with_interval
from rapo.paper.studies.verdicts import (
    CALIBRATED,
    CONSTRUCTED,
    PREDICTED,
    Claim,
    allowance,
    as_good,
    below,
    cell,
    full_replay,
    in_range,
    judge,
    near,
)
from rapo.rsd.bootstrap import Bootstrap
from rapo.rsd.statistics import by_unit, paired_interval, welch

CONTROL = "PM-ST"
BLIND = ("GE", "DR", "PM-RNN")
"""Methods that see x alone and start Replay without memory: Theorem 1 gives their ratios."""
RATIOS = tuple(PARTS)
AIMED = {"RAPO": METRICS, "off@rep": RATIOS, "DR": ("ReplayRet",), CONTROL: METRICS}
"""Cells that the calibration aimed at, on other graphs; PM-ST's ratios as a stationary kernel's."""
Units = Mapping[str, Mapping[str, Any]]
"""Graph means by method and metric."""
Pooled = Mapping[str, Mapping[str, Bootstrap]]
"""Ratios of means by method and metric."""


def table_claims(units: Units, pooled: Pooled, twin: pd.DataFrame, several: bool) -> list[Claim]:
    """Judge R1, R2, R3, R5 and every cell of the table.

    Args:
        units: graph means of every method of the table.
        pooled: ratios of means of the same methods.
        twin: ratios of off@rep against a P0 twin, a row per episode; may be empty.
        several: whether there is more than one graph, without which nothing can be compared.
    """
    claims = _stationary_claims(units, pooled)
    if several and "RAPO" in units:
        claims += _control_claims(units["RAPO"]["RAG"], units[CONTROL]["RAG"])
    if several and {"RAPO", "Shield-UM"} <= set(units):
        claims.append(_shield_claim(units["RAPO"], units["Shield-UM"]))
    claims += [_cell_claim(m, metric, units, pooled) for m in units for metric in METRICS]
    if not twin.empty:
        ratios = " / ".join(with_interval(by_unit(twin, m)) for m in RATIOS)
        claims.append(
            judge(
                "R3",
                "Switching the deformation off in Replay restores replay",
                "recovers most of the baseline replay",
                f"{ratios} against a P0 twin",
                full_replay([float(twin[m].mean()) for m in RATIOS]),
                PREDICTED,
                "same policy and draws; full replay is within 0.15 of 1, and a policy that sees "
                "the scars may still ask for less",
            )
        )
    return claims


def _stationary_claims(units: Units, pooled: Pooled) -> list[Claim]:
    """R1: every method under a stationary kernel replays in full."""
    claims = []
    for candidates, reason, kind in (
        (BLIND, "Theorem 1", CONSTRUCTED),
        ((CONTROL,), "it sees the fields, so Theorem 1 alone does not say so", CALIBRATED),
    ):
        methods = [m for m in candidates if m in units]
        if not methods:
            continue
        means = {(m, k): mean_of(units[m][k]) for m in methods for k in RATIOS}
        method, metric = worst = max(means, key=lambda pair: abs(means[pair] - 1))
        claims.append(
            judge(
                "R1",
                f"Under a stationary kernel {', '.join(methods)} "
                f"replay{'' if methods[1:] else 's'} in full",
                "RAG ≈ 1.0",
                ", ".join(f"{m} {with_interval(units[m]['RAG'])}" for m in methods),
                full_replay([*means.values()]),
                kind,
                f"{reason}; furthest from 1 of RAG, AUC-R and SM-R: {method} {TITLES[metric]} "
                f"{means[worst]:.2f}{_ratio_of_means(pooled[method], metric)}",
            )
        )
    return claims


def _control_claims(rapo: Any, control: Any) -> list[Claim]:
    """R2: RAPO less PM-ST in RAG, as a difference and as a share."""
    gap, pairs = welch(rapo, control), paired_interval(rapo, control)
    middle, low, high = RAG_GAP
    inside = in_range(gap.difference, (low, high))
    share = 1 - rapo / control
    tolerance = allowance(REDUCTION, "RAG") / TABLE1[CONTROL]["RAG"][0]
    paired = interval_text(pairs.difference, pairs.low, pairs.high)
    return [
        judge(
            "R2",
            "RAPO against PM-ST in RAG",
            f"{middle:.2f} [{low:.2f}, {high:.2f}], p < {RAG_GAP_P:.0e}",
            f"{interval_text(gap.difference, gap.low, gap.high)}, p = {gap.p:.1e}",
            inside and gap.p < RAG_GAP_P,
            CALIBRATED,
            f"Welch over {len(rapo)} graph means; the difference is {'' if inside else 'not '}in "
            f"the paper's interval; paired by graph {paired}",
        ),
        judge(
            "R2",
            "RAPO's reduction of RAG against PM-ST",
            f"{REDUCTION:.0%}",
            with_interval(share),
            near(float(share.mean()), REDUCTION, tolerance),
            CALIBRATED,
            f"1 - RAPO / PM-ST, graph by graph; one of RAPO's stds of RAG is {tolerance:.2f} of it",
        ),
    ]


def _shield_claim(rapo: Mapping[str, Any], shield: Mapping[str, Any]) -> Claim:
    """R5: RAPO suppresses more than the shield that keeps the same return."""
    gap = paired_interval(rapo["RAG"], shield["RAG"])
    kept = paired_interval(rapo["ReplayRet"], shield["ReplayRet"])
    paper = [TABLE1[m]["RAG"][0] for m in ("RAPO", "Shield-UM")]
    return judge(
        "R5",
        "At matched utility the Shield is less effective than RAPO",
        f"RAG {paper[0]:.2f} against {paper[1]:.2f}",
        f"RAG {interval_text(gap.difference, gap.low, gap.high, '+.2f')} at a ReplayRet "
        f"{interval_text(kept.difference, kept.low, kept.high, '+.3f')} from the Shield's",
        below(gap.difference, gap.high) and near(kept.difference, 0.0, allowance(0.0, "ReplayRet")),
        CALIBRATED,
        "RAPO less Shield-UM, paired by graph; returns match within one of RAPO's stds, 0.03",
    )


def _cell_claim(method: str, metric: str, units: Units, pooled: Pooled) -> Claim:
    """Judge one cell; a cell that differs shows its ratio of means too."""
    paper, std = TABLE1[method][metric]
    values = units[method][metric]
    return judge(
        "Table 1",
        f"{method} {TITLES[metric]}",
        f"{paper:.2f} ± {std:.2f}",
        with_interval(values),
        cell(mean_of(values), method, metric),
        kind_of(method, metric),
        "within two of the paper's stds",
        _why_it_differs(method, metric) + _ratio_of_means(pooled[method], metric),
    )


def constants_claim(fixed: pd.DataFrame) -> Claim:
    """Judge GE's return less the best constant action's, graph by graph.

    `fixed` holds ReplayRet, with a row per graph and a column for GE and for each action.
    """
    constants = fixed[list(ACTIONS)]
    gap = paired_interval(fixed["GE"], constants.max(axis=1))
    names = constants.idxmax(axis=1).value_counts()
    best = ", ".join(f"{name} on {n} of {len(fixed)} graphs" for name, n in names.items())
    condition = "no interval" if gap.low != gap.low else "the interval has to lie above -0.01"
    return judge(
        "Baseline",
        "GE is at least as good as every constant action",
        "PPO on the task return (no number)",
        f"ReplayRet {interval_text(gap.difference, gap.low, gap.high, '+.4f')} against the best "
        f"one ({best})",
        as_good(gap.difference, gap.low),
        PREDICTED,
        f"under P0, same graphs, episodes and draws; {condition}",
    )


def kind_of(method: str, metric: str) -> str:
    """Say what kind of claim a cell is: a theorem comes before what the calibration aimed at."""
    if method == "GE" or (method in (*BLIND, "Shield-UM") and metric in RATIOS):
        return CONSTRUCTED  # GE's return is the unit
    return CALIBRATED if metric in AIMED.get(method, ()) else PREDICTED


def _ratio_of_means(pooled: Mapping[str, Bootstrap], metric: str) -> str:
    return f"; ratio of means {pooled[metric].estimate:.2f}" if metric in pooled else ""


def _why_it_differs(method: str, metric: str) -> str:
    if method == "Shield-UM" and metric != "ReplayRet":
        return "a memoryless shield under P0 must replay (Theorem 1)"
    if method == "off@rep" and metric != "ReplayRet":
        return "its Exposure is deformed already; see R3 for the P0 twin"
    if method == "off@rep":
        return "without the deformation nothing holds its return back"
    return "outside two of the paper's stds"
