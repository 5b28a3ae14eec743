"""The courses of many regions, found in one fold: what the table of regions draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.gate.events import Region
from rapo.gate.fold import Fold
from rapo.gate.gate import Gate
from rapo.gate.state import State

Course = dict[str, list[float]]


def courses(gate: Gate, regions: Sequence[Region], points: int = 60) -> list[Course]:
    """G and H of each region from the first report of any of them to now.

    Returns:
        For each region `G` and `H`, lists of up to `points` values at the same ticks; empty lists
        if nothing was reported on any of them.
    """

    # What the fold needs is copied under the lock; the fold itself runs outside, so that a long
    # ledger keeps nobody waiting.
    def look(state: State) -> Any:
        numbers = [state.regions.number(r) for r in regions]
        rows = state.ledger.rows
        mine = rows["tick"][np.isin(rows["region"], numbers)]
        first = max(int(mine.min()) - 1, state.fold.start) if mine.size else None
        return (
            numbers, first, state.tick, rows.copy() if mine.size else None,
            list(state.segments()), state.sizes(), state.fold.start,
        )  # fmt: skip

    numbers, first, last, rows, segments, sizes, start = gate.read(look)
    if first is None:
        return [{"G": [], "H": []} for _ in regions]
    ticks = np.unique(np.linspace(first, last, points).astype(np.int64))
    G = np.zeros((len(numbers), ticks.size))
    H = np.zeros_like(G)
    chosen: npt.NDArray[np.intp] = np.array(numbers, np.intp)
    fold, at = Fold(start), 0
    fold.grow(*sizes)
    for until, config, act in segments:
        while at < ticks.size and ticks[at] <= until:
            fold.run(rows, int(ticks[at]), config)
            G[:, at], H[:, at] = fold.G[chosen], fold.H[chosen]
            at += 1
        fold.run(rows, until, config)
        if act is not None:
            fold.confirm(act.confirmed, act.until)
    return [{"G": g.tolist(), "H": h.tolist()} for g, h in zip(G, H, strict=True)]
