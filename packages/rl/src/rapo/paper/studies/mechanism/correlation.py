"""How closely the odds ratio goes with replay within RAPO's runs, and how much of it is chance.

An episode's RAG is a ratio of two peaks, each a single draw, so part of its spread has no cause
that a mechanism could explain. Stimuli met many times tell that part from the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rapo.paper.paper import ODDS_RAG_CORRELATION
from rapo.paper.studies.graph_means import interval_text
from rapo.paper.studies.mechanism.measures import RAPO, TWIN, Frames
from rapo.paper.studies.verdicts import CALIBRATED, Claim, correlates, judge
from rapo.rsd.statistics import by_unit, correlation

METRICS = ("RAG", "AUC_R", "SM_R")
STIMULI = "stimulus means"
EVERYONE = "graph means of all methods"


def stimulus_means(frame: pd.DataFrame) -> pd.DataFrame:
    """Average OddsRatio and the ratios of each graph and stimulus that came at least twice."""
    groups = frame.groupby(["graph_seed", "stimulus"])[["OddsRatio", *METRICS]]
    return groups.mean()[groups.count()["RAG"] >= 2]


def chance(frame: pd.DataFrame, metric: str) -> float:
    """Compute the share of a metric's variance that is left at a fixed graph and stimulus."""
    defined = frame.dropna(subset=[metric])
    groups = defined.groupby(["graph_seed", "stimulus"])[metric]
    freedom = len(defined) - groups.ngroups
    if freedom <= 0 or not defined[metric].var(ddof=1) > 0:
        return np.nan
    within = float(((defined[metric] - groups.transform("mean")) ** 2).sum()) / freedom
    return min(within / float(defined[metric].var(ddof=1)), 1.0)


def correlations(frames: Frames, often: pd.DataFrame) -> pd.DataFrame:
    """Correlate OddsRatio with RAG, AUC_R and SM_R within RAPO's runs, and over all methods.

    `within graphs` takes each graph's means off first. The correlation over the graph means of all
    methods says no more than that RAPO differs from the other methods. `chance` is the share of the
    metric's variance over episodes that graph and stimulus leave open.

    Args:
        frames: the episodes of Table 1 by method.
        often: RAPO's episodes of `repeated`.
    """
    rapo, means = frames[RAPO], stimulus_means(often)
    rows = []
    for metric in METRICS:
        odds, ratio = by_unit(rapo, "OddsRatio"), by_unit(rapo, metric)
        everyone = [
            (by_unit(f, "OddsRatio"), by_unit(f, metric)) for m, f in frames.items() if m != TWIN
        ]
        levels: dict[str, tuple[Any, ...]] = {
            "episodes": (rapo["OddsRatio"].to_numpy(float), rapo[metric].to_numpy(float)),
            "episodes within graphs": tuple(
                (rapo[name] - rapo.groupby("graph_seed")[name].transform("mean")).to_numpy(float)
                for name in ("OddsRatio", metric)
            ),
            STIMULI: (means["OddsRatio"].to_numpy(float), means[metric].to_numpy(float)),
            "graph means": (odds.to_numpy(), ratio.to_numpy()),
            EVERYONE: tuple(
                np.concatenate([pair[side].to_numpy() for pair in everyone]) for side in (0, 1)
            ),
        }
        if len(odds) == 1:
            levels = {name: levels[name] for name in ("episodes", STIMULI)}
        for level, (x, y) in levels.items():
            pearson, spearman = correlation(x, y), correlation(x, y, "spearman")
            row = {"metric": metric, "level": level}
            row |= {name: getattr(pearson, name) for name in ("r", "low", "high", "p", "n")}
            left = chance(often, metric) if level == "episodes" else np.nan
            rows.append(row | {"spearman": spearman.r, "chance": left})
    return pd.DataFrame(rows)


def correlation_claims(table: pd.DataFrame) -> list[Claim]:
    """Judge the correlation of OddsRatio with RAG at each level that "a run" may mean."""
    rows = {(row["metric"], row["level"]): row for row in table.to_dict("records")}
    noise = rows["RAG", "episodes"]["chance"]
    share = (
        ""
        if np.isnan(noise)
        else f": {noise:.0%} of its variance is left at a fixed graph and stimulus, so what "
        f"depends on these alone reaches {np.sqrt(1 - noise):.2f} at most"
    )
    reasons = {
        "episodes": f"RAG is a ratio of two single peaks{share}",
        STIMULI: f"chance averaged out; with AUC-R {rows['AUC_R', STIMULI]['r']:.2f}, with SM-R "
        f"{rows['SM_R', STIMULI]['r']:.2f}: RAG looks at the peak of all nodes, OddsRatio at the "
        "mean over V_sens",
        "graph means": "graphs differ little in either, so few and close points",
        EVERYONE: "not within RAPO: it says that RAPO differs from the rest, and may be what the "
        "paper's runs are",
    }
    claims = []
    for level, reason in reasons.items():
        if ("RAG", level) not in rows:
            continue
        row = rows["RAG", level]
        units = f"over {level}" if level == EVERYONE else f"within RAPO's runs, over {level}"
        claims.append(
            judge(
                "Odds contraction",
                f"OddsRatio correlates with RAG {units}",
                f"{ODDS_RAG_CORRELATION:.2f}, p < 1e-5",
                f"{interval_text(row['r'], row['low'], row['high'])}, p = {row['p']:.1e}, "
                f"n = {row['n']:.0f}",
                correlates(row["r"], ODDS_RAG_CORRELATION),
                CALIBRATED,
                reason,
            )
        )
    return claims


def printed_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Format the correlations."""
    return pd.DataFrame(
        [
            {
                "OddsRatio with": row["metric"].replace("_", "-"),
                "over": row["level"],
                "r": f"{row['r']:.2f}",
                "95%": f"[{row['low']:.2f}, {row['high']:.2f}]",
                "p": f"{row['p']:.1e}",
                "n": row["n"],
                "Spearman": f"{row['spearman']:.2f}",
                "chance in the metric": ""
                if np.isnan(row["chance"])
                else f"{row['chance']:.0%} of its variance",
            }
            for row in table.to_dict("records")
        ]
    )
