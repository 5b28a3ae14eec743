"""Likes and hates: every method tuned on half of the people's first days, scored on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.real.held_back import LEVELS, held_at, interval, resampled
from benchmarks.real.kuairand import Stream, Trial, split
from benchmarks.real.kuairand_methods import METHODS, Method, Scores, Setting, score

SPLITS = range(8)
"""Seeds of the split of people."""
CHOSEN_AT = 0.05
"""Loss of likes at which settings are compared in the tuning part."""
RESAMPLES = 500

Row = dict[str, Any]


def lifts(trial: Trial, scores: Scores, weight: Scores | None = None) -> Scores:
    """Share of the hated held back per share of the liked lost, at each of `LEVELS`.

    Where less can be lost than allowed, the lift is against what is lost; nan of nothing.
    """
    mine, bad = scores[trial.scored], trial.stream.hated[trial.scored]
    weight = np.ones(mine.size) if weight is None else weight
    held = held_at(mine, bad, LEVELS, weight)
    reach = float(weight[~bad & (mine > 0)].sum() / weight[~bad].sum())
    lost = np.minimum(LEVELS, reach)
    return np.divide(held, lost, out=np.full(len(LEVELS), np.nan), where=lost > 0)


def tune(method: Method, trial: Trial) -> Setting:
    """The setting that holds back most at `CHOSEN_AT`; the first of the grid wins a tie."""
    bad = trial.stream.hated[trial.scored]
    ones = np.ones(bad.size)

    def held(setting: Setting) -> float:
        found = score(method, trial.stream, setting, trial.stream)[trial.scored]
        return float(held_at(found, bad, (CHOSEN_AT,), ones)[0])

    return max(method.grid, key=held)


def study(
    stream: Stream, splits: Sequence[int] = SPLITS, methods: tuple[Method, ...] = METHODS,
    progress: Callable[[str], object] = lambda text: None,
) -> list[Row]:  # fmt: skip
    """A row for each split, method and level."""
    rows = []
    for seed in splits:
        progress(f"likes and hates: split {seed}")
        tuning, test = split(stream, seed)
        weights = resampled(test.stream.user[test.scored], RESAMPLES, seed)
        for method in methods:
            setting = tune(method, tuning)
            scores = score(method, test.stream, setting, tuning.stream)
            found = lifts(test, scores)
            draws = np.array([lifts(test, scores, weight) for weight in weights])
            rows += [
                {
                    "split": seed, "method": method.name, "level": level,
                    "lift": float(found[i]), "interval": interval(draws[:, i]),
                    "setting": setting,
                }
                for i, level in enumerate(LEVELS)
            ]  # fmt: skip
    return rows


def mean_lifts(rows: list[Row], level: float = CHOSEN_AT) -> dict[str, float]:
    """Mean lift of every method over the splits."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["level"] == level:
            found.setdefault(row["method"], []).append(row["lift"])
    return {name: float(np.mean(values)) for name, values in found.items()}
