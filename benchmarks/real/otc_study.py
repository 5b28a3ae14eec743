"""Bitcoin OTC: the later part, scored once with the settings that were chosen before.

Scored are the last 40% of the time, of all targets but the kept-out ones; and the kept-out targets
over the whole time, since they are in no choice. Memory has everything from the first day on.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from benchmarks.real.held_back import LEVELS, auc, held_at, interval, resampled
from benchmarks.real.otc import CHOICE_SHARE, Bools, Ratings, day_at, kept_out
from benchmarks.real.otc_choose import CHOICE, parts
from benchmarks.real.otc_methods import METHODS, Scores, Setting, by_trace

RESAMPLES = 2000
WITHOUT_SCARS = "gate without scars"
"""The gate's own setting with eta = 0: what scars add. A row that was added after the first score;
nothing was chosen by it."""

Row = dict[str, Any]


def chosen() -> dict[str, Setting]:
    """The frozen settings of every method."""
    settings: dict[str, Setting] = json.loads(CHOICE.read_text())
    return settings


def scored_parts(ratings: Ratings) -> dict[str, Bools]:
    """What is scored, (n,) each: the later part, and targets that no choice has seen."""
    later = ratings.day >= day_at(ratings, CHOICE_SHARE)
    kept = kept_out(ratings)
    return {
        "later part": later & ~kept,
        "kept-out targets": kept,
        "kept-out targets, later part": kept & later,
    }


def study(
    ratings: Ratings, settings: dict[str, Setting], seed: int = 0, resamples: int = RESAMPLES
) -> list[Row]:
    """A row for each part, subset, method and level."""
    scores = {name: METHODS[name](ratings, settings[name]) for name in METHODS}
    scores[WITHOUT_SCARS] = by_trace(ratings, settings["gate"])
    rows: list[Row] = []
    for part, scored in scored_parts(ratings).items():
        for subset, mask in parts(ratings, scored).items():
            weights = resampled(ratings.target[mask], resamples, seed)
            rows += _compared(part, subset, mask, ratings, scores, weights)
    return rows


def _compared(
    part: str, subset: str, mask: Bools, ratings: Ratings, scores: dict[str, Scores],
    weights: Scores,
) -> list[Row]:  # fmt: skip
    """Every method at every level, on one set of ratings."""
    bad = ratings.bad[mask]
    ones = np.ones(bad.size)
    per_good = bad.sum() / max(int((~bad).sum()), 1)
    held = {name: held_at(s[mask], bad, LEVELS, ones) for name, s in scores.items()}
    order = {name: auc(s[mask], bad, ones) for name, s in scores.items()}
    drawn = {
        name: np.array([held_at(s[mask], bad, LEVELS, w) for w in weights])
        for name, s in scores.items()
    }
    drawn_auc = {
        name: np.array([auc(s[mask], bad, w) for w in weights[:500]]) for name, s in scores.items()
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        return [
            {
                "part": part, "subset": subset, "method": name, "level": level,
                "ratings": int(bad.size), "negative": int(bad.sum()),
                "targets": int(np.unique(ratings.target[mask]).size),
                "held": float(held[name][i]), "held_interval": interval(drawn[name][:, i]),
                "per_good_lost": float(held[name][i] * per_good / level),
                "gate_over_this": float(held["gate"][i] / held[name][i]),
                "gate_over_this_interval": interval(drawn["gate"][:, i] / drawn[name][:, i]),
                "auc": order[name], "auc_interval": interval(drawn_auc[name]),
            }
            for name in scores for i, level in enumerate(LEVELS)
        ]  # fmt: skip
