"""What down-weights come to: hated rows taken away, liked rows lost, intervals over people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.gate.kuairand.data import Trial
from rapo.gate.kuairand.methods import Method, Setting, Weights, weigh

LEVELS = (0.01, 0.02, 0.05, 0.1)
"""Shares of the liked exposure that may be lost."""
RESAMPLES = 2000

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Taken:
    """Sums per person, (people,) each; rows are counted with their down-weights."""

    hated: Array
    hated_rows: Array
    liked: Array
    liked_rows: Array

    def shares(self, pick: npt.NDArray[Any] | None = None) -> tuple[Array, Array]:
        """Shares of the hated and of the liked exposure taken away.

        Args:
            pick: numbers of people, (..., people); everyone once without it.
        """
        sums = []
        for name in ("hated", "hated_rows", "liked", "liked_rows"):
            values = getattr(self, name)
            sums.append(np.asarray(values.sum() if pick is None else values[pick].sum(-1)))
        return sums[0] / sums[1], sums[2] / sums[3]


def taken(trial: Trial, weights: Weights) -> Taken:
    """The sums of the scored rows."""
    mask, hated = trial.scored, trial.stream.hated[trial.scored]
    people, person = np.unique(trial.stream.user[mask], return_inverse=True)
    weight, n = weights[mask], people.size

    def summed(values: npt.NDArray[Any]) -> Array:
        return np.bincount(person, values.astype(float), n).astype(np.float64)

    return Taken(summed(weight * hated), summed(hated), summed(weight * ~hated), summed(~hated))


def at_level(hated: float, liked: float, level: float) -> float:
    """Hated share taken away if only so many decisions are enforced that likes lose `level`.

    Enforcing a percentage of decisions scales both shares alike; it cannot take more than all.
    """
    return hated if liked <= level else hated * level / liked


def tune(method: Method, trial: Trial) -> dict[float, tuple[Setting, float]]:
    """For each level the setting that takes most, and the percentage to enforce: one rule for all.

    The first of the grid wins a tie.
    """
    best: dict[float, tuple[float, Setting, float]] = {}
    for setting in method.grid:
        shares = taken(trial, weigh(method, trial.stream, setting, trial.stream)).shares()
        hated, liked = map(float, shares)
        for level in LEVELS:
            found = at_level(hated, liked, level)
            if level not in best or found > best[level][0]:
                best[level] = (found, setting, min(1.0, level / liked) if liked > 0 else 1.0)
    return {level: (setting, share) for level, (_, setting, share) in best.items()}


def resampled(people: int, seed: int) -> npt.NDArray[np.int64]:
    """People drawn with replacement, (RESAMPLES, people)."""
    return np.random.default_rng(seed).integers(0, people, (RESAMPLES, people))


def interval(values: Array) -> list[float] | None:
    """95% percentile interval; None where it is not defined."""
    known = values[np.isfinite(values)]
    if known.size < 0.95 * values.size:
        return None
    return [float(v) for v in np.quantile(known, (0.025, 0.975))]


def lift(hated: Array, liked: Array) -> Array:
    """Hated share taken away per liked share lost; 1 is what chance does, NaN of nothing."""
    out = np.full(np.shape(hated), np.nan)
    np.divide(hated, liked, out=out, where=liked > 0)
    return out
