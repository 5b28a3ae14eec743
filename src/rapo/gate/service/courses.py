"""The courses of many regions: what the table of regions draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rapo.gate.events import Region
from rapo.gate.gate import Gate
from rapo.gate.state import State

Course = dict[str, list[float]]


def courses(gate: Gate, regions: Sequence[Region], points: int = 60) -> list[Course]:
    """G and H of each region from the first report of any of them to now.

    Returns:
        For each region `G` and `H`, lists of up to `points` values at the same ticks; empty lists
        if nothing was reported on any of them.
    """

    def look(state: State) -> list[Course]:
        found = [state.fold.course(state.regions.number(r)) for r in regions]
        first = min((start for start, course in found if course.size), default=None)
        if first is None:
            return [{"G": [], "H": []} for _ in regions]
        ticks = np.unique(np.linspace(first - 1, state.tick, points).astype(np.int64))
        drawn = []
        for start, course in found:
            at = np.clip(ticks - start + 1, 0, course.size)
            values = {n: np.concatenate(([0.0], course[n]))[at].tolist() for n in ("G", "H")}
            drawn.append(values)
        return drawn

    return list(gate.read(look))
