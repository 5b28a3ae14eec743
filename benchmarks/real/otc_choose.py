"""Choosing settings for Bitcoin OTC: on the first 60% of the time, without the kept-out targets.

Memory fills from the first day; settings are compared on the second half of that part. One number
for all methods: harm held back, averaged over losses of 3 to 7% of the good, summed over all
ratings, those after 30 and those after 60 silent days. What is chosen is written to
`otc_choice.json`, which the study reads; the later part is not looked at here.

    python -m benchmarks.real.otc_choose
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real.held_back import held_at
from benchmarks.real.otc import (
    CHOICE_SHARE,
    INNER_SHARE,
    SILENCES,
    Bools,
    Ratings,
    day_at,
    find,
    kept_out,
    read,
)  # fmt: skip
from benchmarks.real.otc_methods import METHODS, Scores, Setting

CHOICE = Path(__file__).with_name("otc_choice.json")
LOSSES = (0.03, 0.04, 0.05, 0.06, 0.07)
"""Around the 5% at which the study compares; one loss alone would be a matter of single ratings."""
CLIMBS, DRAWS, MOVES = 20, 20, 70
"""Of the search for the gate: starts, random settings before each, moves after it."""

Grid = dict[str, tuple[Any, ...]]

RATE: Grid = {
    "harm": ("one", "size"), "half_life": (15.0, 30.0, 60.0, 90.0, 180.0, 360.0, 720.0, 1e6),
    "shrinkage": (0.3, 1.0, 3.0, 10.0, 30.0), "base_rate": (0.03, 0.06, 0.1),
}  # fmt: skip
DAMPING: Grid = {
    "harm": ("one", "size"), "half_life": (1.0, 3.0, 7.0, 15.0, 30.0, 60.0, 180.0, 720.0, 1e6)
}  # fmt: skip
GATE: Grid = {
    "harm": ("one", "size"), "half_life": (30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 360.0),
    "shrinkage": (0.3, 1.0, 2.0, 3.0, 5.0), "base_rate": (0.01, 0.02, 0.03, 0.06, 0.1),
    "z": (0.0, 0.1, 0.25, 0.5), "scale": (0.2, 0.4, 0.6, 0.8, 1.0),
    "lam": (0.03, 0.1, 0.3, 0.6, 1.0), "tau": (0.0, 0.03, 0.1, 0.2, 0.3, 0.5),
    "eta": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1), "delta": (1.0, 0.9995, 0.999, 0.997),
    "w_G": (0.3, 1.0, 3.0, 10.0), "w_H": (1.0,),
}  # fmt: skip
TRACE: Grid = {**GATE, "eta": (0.0,), "tau": (0.0,), "delta": (1.0,), "w_G": (1.0,)}


def choice_part(ratings: Ratings) -> Ratings:
    """What a choice may see."""
    return ratings.part((ratings.day < day_at(ratings, CHOICE_SHARE)) & ~kept_out(ratings))


def parts(ratings: Ratings, scored: Bools) -> dict[str, Bools]:
    """The ratings that are scored: all, and those after so many silent days."""
    silence = ratings.silence
    return {"all": scored, **{f"after {d} days": scored & (silence >= d) for d in SILENCES}}


class Objective:
    """What a score is worth on the second half of the choice part."""

    def __init__(self, ratings: Ratings, first_day: int) -> None:
        self.ratings = ratings
        self.parts = parts(ratings, ratings.day >= first_day)

    def __call__(self, scores: Scores) -> float:
        bad = self.ratings.bad
        return sum(
            float(held_at(scores[m], bad[m], LOSSES, np.ones(int(m.sum()))).mean())
            for m in self.parts.values()
        )


def best_of_all(worth: Callable[[Setting], float], grid: Grid) -> Setting:
    """The best setting of the whole grid; the first wins a tie."""
    every = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    return max(every, key=worth)


def climbed(worth: Callable[[Setting], float], grid: Grid, seed: int = 0) -> Setting:
    """The best that hill climbs from random settings find, two steps on the grid at a time."""
    rng = np.random.default_rng(seed)
    names = [name for name, values in grid.items() if len(values) > 1]

    def drawn() -> Setting:
        return {name: values[rng.integers(len(values))] for name, values in grid.items()}

    def moved(setting: Setting) -> Setting:
        new = dict(setting)
        for name in rng.choice(names, 2, replace=False):
            at = grid[name].index(setting[name]) + int(rng.choice([-1, 1]))
            new[name] = grid[name][min(max(at, 0), len(grid[name]) - 1)]
        return new

    tops = []
    for _ in range(CLIMBS):
        value, top = max(((worth(s), s) for s in (drawn() for _ in range(DRAWS))), key=_first)
        for _ in range(MOVES):
            candidate = moved(top)
            found = worth(candidate)
            if found > value:
                value, top = found, candidate
        tops.append((value, top))
    return max(tops, key=_first)[1]


def _first(pair: tuple[float, Setting]) -> float:
    return pair[0]


def choose(ratings: Ratings) -> dict[str, Setting]:
    """A setting for every method, from what a choice may see."""
    objective = Objective(choice_part(ratings), day_at(ratings, INNER_SHARE))

    def worth(name: str) -> Callable[[Setting], float]:
        return lambda setting: objective(METHODS[name](objective.ratings, setting))

    return {
        "gate": climbed(worth("gate"), GATE),
        "rate": best_of_all(worth("rate"), RATE),
        "flap damping": best_of_all(worth("flap damping"), DAMPING),
        "trace only": climbed(worth("trace only"), TRACE),
    }


def main() -> None:
    """Choose, print, write."""
    folder = find()
    if folder is None:
        raise SystemExit("there is no Bitcoin OTC data here; see benchmarks/real/otc.py")
    ratings = read(folder)
    chosen = choose(ratings)
    objective = Objective(choice_part(ratings), day_at(ratings, INNER_SHARE))
    for name, setting in chosen.items():
        print(f"{objective(METHODS[name](objective.ratings, setting)):.4f} {name} {setting}")
    CHOICE.write_text(json.dumps(chosen, indent=1) + "\n")


if __name__ == "__main__":
    main()
