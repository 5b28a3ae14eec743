"""What a scar field costs: microseconds an update and a query, and numbers an episode."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.scars.curves import CAPACITIES, DIMENSIONS, OPTIONS
from benchmarks.scars.sheet import PARAMS, POINTS, WIDTH, make_sheet
from benchmarks.timing import Contestant, interleave
from rapo.scars import FullWarning, ScarField, make

EPISODES, WARM, BATCH = 8, 200, 1000
"""Episodes side by side, steps before anything is timed, points of a query."""


def costs(rounds: int, progress: Callable[[str], object]) -> pd.DataFrame:
    """A row per kind, dimension and size; times are the best of the rounds."""
    kinds = [("kernel", {"centres": n}) for n in CAPACITIES]
    kinds += [("density", {}), ("network", {}), ("grid", OPTIONS["grid"])]
    rows = []
    for d in DIMENSIONS:
        for kind, options in kinds:
            if kind == "grid" and d > 2:
                continue
            progress(f"scars: cost of {kind} {options}, {d} dimensions")
            few = kind in ("grid", "network")  # tens of times slower: an episode at a time
            rows.append(_cost(kind, options, d, 1 if few else EPISODES, rounds))
    return pd.DataFrame(rows)


def _cost(kind: str, options: dict[str, Any], d: int, episodes: int, rounds: int) -> dict[str, Any]:
    """Updates as a platform does them: deposit, visit and step, 16 points an episode."""
    sheet = make_sheet(d, 1000, steps=WARM + 100)
    field = make(kind, sheet.box, PARAMS, width=WIDTH, batch=episodes, **options)
    points = np.repeat(sheet.points[:, None], episodes, axis=1)
    shares = np.repeat(sheet.shares[:, None], episodes, axis=1)

    def update(t: int) -> None:
        field.deposit(points[t], shares[t])
        field.visit(points[t])
        field.step()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FullWarning)
        for t in range(WARM if kind != "network" else 60):
            update(t)
        state = field.snapshot()
        asked = np.repeat(sheet.queries[None, :BATCH], episodes, axis=0)

        def updates(repeats: int) -> None:
            for i in range(repeats):
                update(WARM + i % 100)

        def queries(repeats: int) -> None:
            for _ in range(repeats):
                field.conductance(asked)

        timings = interleave(
            [
                Contestant("update", updates, units=episodes, prepare=lambda: field.restore(state)),
                Contestant("query", queries, units=episodes * BATCH),
            ],
            rounds,
        )
    return {"kind": kind, "d": d, "size": _places(field), "points": POINTS,
            "update_us": timings.best("update") / 1e3, "query_us": timings.best("query") / 1e3,
            "numbers": field.numbers}  # fmt: skip


def _places(field: ScarField) -> int:
    """Places that the field may have."""
    for name in ("centres", "components", "knots"):
        if hasattr(field, name):
            return int(getattr(field, name))
    return 512
