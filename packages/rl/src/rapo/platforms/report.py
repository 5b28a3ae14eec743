"""`info` of a step, from the sums of the kernel and the change of the memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo.platforms import kernel as row

Array = npt.NDArray[Any]
RATIOS = ("odds_ratio", "event_odds_ratio", "gating_rate")
"""Entries of `info` that are NaN where they are undefined."""


class Step(NamedTuple):
    """The outcome of a step of all episodes."""

    x: npt.NDArray[np.float32]
    """(E, d) observable after the step."""
    reward: npt.NDArray[np.float64]
    """(E,)."""
    info: dict[str, Array]
    """(E,) each."""


def report_of(
    stats: Array, harm: Array, before: tuple[Array | None, Array | None], scar: Array | None
) -> dict[str, Array]:
    """Entries of `info`, (E,) each; a ratio without nominal harmful mass is NaN.

    Args:
        stats: (STATS, E) of the kernel.
        harm: (E,) that arrived.
        before: trace and scar (E, R) when the step began; None with a scar field.
        scar: (E, R) after the step.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        stay, deformed = stats[row.STAY], stats[row.STAY_DEFORMED]
        event = ((1 - deformed) / deformed) / ((1 - stay) / stay)
        info = {
            "harm": harm,
            "cost": harm,
            "served": stats[row.SERVED].copy(),
            "entry_nominal": stats[row.ENTRY_NOMINAL].copy(),
            "entry_deformed": stats[row.ENTRY_DEFORMED].copy(),
            "odds_ratio": stats[row.ODDS] / stats[row.ODDS_MASS],
            "event_odds_ratio": np.where(np.isfinite(event), event, np.nan),
            "gating_rate": stats[row.GATED] / stats[row.MOVING],
        }
    G, H = before
    if G is not None and H is not None and scar is not None:
        info["cost_G"] = G.sum(axis=1)
        info["cost_H"] = (scar - H).sum(axis=1)
        info["scar_mass"] = scar.sum(axis=1)
    return info
