"""What settings come to: harm held back, good lost, with intervals; in words and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from rapo.gate.fit import Fit, Interval

EARLIER = 0.6
"""Share of the ticks up to which settings are chosen; what comes later scores them."""
LOSSES = np.linspace(0.005, 0.25, 50)
"""Shares of the good at which a curve says what is held back."""
Reals = npt.NDArray[np.float64]


def held_at(score: Reals, good: Reals, bad: Reals, losses: Sequence[float]) -> Reals:
    """Share of the bad held back when so much of the good is lost, (losses,).

    What scores highest is held back first; what ties with the threshold is held back in part, good
    and bad alike. What scores 0 or less, because nobody ever reported it, is never held back: then
    less is lost than was allowed, and the share is that of everything with a score.

    Args:
        score: (n,).
        good: good exposures of each row, (n,).
        bad: reported ones, (n,).
        losses: shares of the good, in (0, 1).
    """
    order = np.argsort(-score, kind="stable")
    lost, held = np.cumsum(good[order]), np.cumsum(bad[order])
    if not order.size or not lost[-1] > 0 or not held[-1] > 0:
        return np.full(len(losses), np.nan)
    all_good, all_bad = lost[-1], held[-1]
    ends = np.flatnonzero(np.diff(score[order], append=-np.inf))
    ends = ends[score[order][ends] > 0]
    # where a group of ties holds no good, the curve rises straight up: take its upper end
    x, first = np.unique(np.append(0.0, lost[ends])[::-1], return_index=True)
    y = np.append(0.0, held[ends])[::-1][first]
    return np.asarray(np.interp(np.array(losses) * all_good, x, y) / all_bad)


def shares(weight: Reals, good: Reals, bad: Reals) -> tuple[float, float]:
    """Shares of the bad held back and of the good lost by down-weights (n,) in [0, 1]."""
    return (
        float((weight * bad).sum() / max(float(bad.sum()), 1e-300)),
        float((weight * good).sum() / max(float(good.sum()), 1e-300)),
    )


def resampled(region: npt.NDArray[np.int64], times: int, seed: int) -> Reals:
    """Weights of rows when regions are drawn with replacement, (times, n)."""
    names, number = np.unique(region, return_inverse=True)
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(names.size, np.full(names.size, 1 / names.size), times)
    return np.asarray(draws[:, number], np.float64)


def interval(values: npt.ArrayLike) -> tuple[float, float] | None:
    """95% percentile interval; None where it is not defined."""
    given = np.asarray(values, np.float64)
    known = given[np.isfinite(given)]
    if not known.size or known.size < 0.95 * given.size:
        return None
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)


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
