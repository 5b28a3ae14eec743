"""What a fit found, in words and as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rapo.gate.fit import EARLIER, LOSSES, Fit, Interval

MOST_NAMES = 10
"""Regions named; of more only the number is given."""


def lines(found: Fit, ticks_per_day: float) -> list[str]:
    """A fit in plain sentences, the call to make last."""
    law, score = found.law, found.score
    told = [
        f"{found.reports:,} reports on {found.exposures:,.0f} exposures of "
        f"{found.acting.regions:,} regions.",
        f"Base rate {law.base_rate:.3g} reports per exposure{_ends(found.base_interval)}; "
        f"half-life {law.half_life / ticks_per_day:.2g} days, "
        f"shrinkage {law.shrinkage:.3g} exposures, z {law.z:g}, scale {law.scale:.3g}, "
        f"tau {law.params.tau:.3g}.",
        f"On the last {1 - EARLIER:.0%} of the log, which the choice did not see: "
        f"{score.held:.1%} of the harm held back{_ends(score.held_interval, percent=True)}, "
        f"{score.lost:.1%} of the good lost{_ends(score.lost_interval, percent=True)}, "
        + (f"lift {score.lift:.2f}{_ends(score.lift_interval)}." if score.lift > 0 else "no lift."),
        f"{_scarred(found)} {found.acting}.",
    ]
    return [*told, *(f"Note: {note}." for note in found.notes), found.configure()]


def _scarred(found: Fit) -> str:
    names = ", ".join(map(str, found.scarred[:MOST_NAMES]))
    rest = len(found.scarred) - MOST_NAMES
    if not found.scarred:
        return "No region would have a scar."
    more = f" and {rest} more" if rest > 0 else ""
    count = "1 region" if len(found.scarred) == 1 else f"{len(found.scarred)} regions"
    return f"{count} would have a scar ({names}{more})."


def _ends(ends: Interval, percent: bool = False) -> str:
    if ends is None:
        return ""
    low, high = (f"{v:.1%}" if percent else f"{v:.3g}" for v in ends)
    return f" [{low}, {high}]"


def draw(found: Fit) -> tuple[Any, Any]:
    """Lift against good exposures lost, on the later part; returns (figure, axes)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    curve, low, high = found.score.curve
    if np.isfinite(low).any():
        axes.fill_between(
            100 * LOSSES, low, high, color="C0", alpha=0.2, lw=0, label="95%, regions"
        )
    axes.plot(100 * LOSSES, curve, color="C0", label="holding back the lowest psi first")
    if found.score.lift > 0:
        axes.plot(100 * found.score.lost, found.score.lift, "o", color="C3", label="these settings")
    axes.axhline(1, color="0.6", lw=1, ls=":", label="chance")
    axes.set(xlabel="good exposures lost, %", ylabel="harm held back per good lost (lift)")
    axes.set_ylim(0)
    axes.set_title(f"last {1 - EARLIER:.0%} of the log, settings from before")
    axes.legend(frameon=False, fontsize="small")
    return figure, axes


def save(found: Fit, file: Path) -> None:
    """Write the figure.

    Raises:
        FileExistsError: there is such a file.
    """
    if file.exists():
        raise FileExistsError(f"{file} exists; choose another --plot, or remove it")
    file.parent.mkdir(parents=True, exist_ok=True)
    draw(found)[0].savefig(file, dpi=120)
