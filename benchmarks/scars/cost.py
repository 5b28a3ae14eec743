"""What a scar field costs: microseconds an update and a query, and numbers an episode.

Times are the processor's, on one thread: what else the machine does hardly moves them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.scars.curves import CAPACITIES, DIMENSIONS, OPTIONS
from benchmarks.scars.sheet import PARAMS, POINTS, WIDTH, make_sheet
from rapo.scars import FullWarning, ScarField, make

EPISODES, WARM, LATER, BATCH = 8, 200, 20, 1000
"""Episodes side by side, steps before anything is timed and while it is, points of a query."""


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
    sheet = make_sheet(d, 1000, steps=WARM + LATER)
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

        def updates() -> None:
            field.restore(state)
            for t in range(WARM, WARM + LATER):
                update(t)

        back = _best(lambda: field.restore(state), rounds)
        step = (_best(updates, rounds) - back) / (LATER * episodes)
        ask = _best(lambda: field.conductance(asked), rounds) / (episodes * BATCH)
    return {"kind": kind, "d": d, "size": _places(field), "points": POINTS,
            "update_us": 1e6 * step, "query_us": 1e6 * ask,
            "numbers": field.numbers}  # fmt: skip


def _best(run: Callable[[], object], rounds: int) -> float:
    """Seconds of the processor in the best of the rounds; the first call may compile."""
    run()
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def _places(field: ScarField) -> int:
    """Places that the field may have."""
    for name in ("centres", "components", "knots"):
        if hasattr(field, name):
            return int(getattr(field, name))
    return 512
