"""Settings from a log: what harm is above the usual, and what a gate with them would have done.

Everything is chosen on the earlier part of the log and scored on the later part, which the choice
does not see. The base rate is that of regions which are not clearly above it; half-life, shrinkage,
z and the threshold are those that hold back most harm for the good that they cost; `tau` follows
from the operating point: the steady trace `alpha / lam * harm` of a region at the rate from which
it is to scar.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import pdtrc

from rapo_core.checks import UserError
from rapo_core.params import FieldParams
from rapo_gate.config import GateConfig
from rapo_gate.fold.formula import Acting, can_act, net_rate, params_of
from rapo_gate.format import flat
from rapo_gate.shadow_log import Cells, ShadowLog, course, held_at, interval, resampled, shares

EARLIER = 0.6
"""Share of the ticks up to which settings are chosen; what comes later scores them."""
LOSSES = np.linspace(0.005, 0.25, 50)
"""Shares of the good at which a curve says what is held back."""
LEAST_REPORTS = 50
"""With fewer there is nothing to fit."""
INNER = 0.3
"""Share of the ticks from which on settings are compared, up to `EARLIER`."""
CLEARLY = 1e-3
"""A region is above the base rate if chance alone gives as many reports less often than this."""
WORTH = 2.0
"""Shares of harm that a share of the good must buy: less is not worth a scar."""
ABOUT = 0.05
"""Settings this close to the best, as a share of it, are as good: the most careful is taken."""
RESAMPLES = 200
_MOST_NAMES = 10
"""Regions named; of more only the number is given."""
DAY_SECONDS = 86400.0

Reals = npt.NDArray[np.float64]
Interval = tuple[float, float] | None


class NotEnoughError(UserError):
    """A log that nothing can be fitted to; says what is missing."""


@dataclass(frozen=True, slots=True)
class Score:
    """What the settings did on the later part; intervals over regions."""

    held: float
    """Share of the reported exposures held back."""
    lost: float
    """Share of the unreported ones lost."""
    lift: float
    """One over the other; 1 is chance, nan of nothing."""
    held_interval: Interval
    lost_interval: Interval
    lift_interval: Interval
    curve: Reals
    """Lift at each of `LOSSES`, with its interval, (3, losses)."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Settings, and what they are worth."""

    law: GateConfig
    base_interval: Interval
    score: Score
    scarred: list[Any]
    """Regions that had a scar at the end of the log."""
    acting: Acting
    reports: int
    exposures: float
    notes: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """What to pass to `gate.configure`."""
        names = ("base_rate", "half_life", "shrinkage", "z", "scale")
        values: dict[str, Any] = {name: _rounded(getattr(self.law, name)) for name in names}
        return {**values, "params": {"tau": _rounded(self.law.params.tau)}}

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        score = self.score
        return {
            "settings": self.settings, "base_rate_interval": self.base_interval,
            "held": score.held, "held_interval": score.held_interval,
            "lost": score.lost, "lost_interval": score.lost_interval,
            "lift": score.lift if score.lift > 0 else None, "lift_interval": score.lift_interval,
            "scarred": self.scarred, "can_scar": self.acting.able, "regions": self.acting.regions,
            "reports": self.reports, "exposures": self.exposures, "notes": list(self.notes),
        }  # fmt: skip

    def configure(self) -> str:
        """The call that puts the settings in force."""
        return f'gate.configure({self.settings!r}, reason="fitted to the log")'

    def command(self) -> str:
        """The same on the command line."""
        pairs = " ".join(f"{name}={value}" for name, value in flat(self.settings).items())
        return f'rapo-gate configure {pairs} --reason "fitted to the log"'


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def base_rate(exposures: Reals, amounts: Reals, size: float = 1.0) -> float:
    """Harm per exposure of the regions that are not clearly above it.

    Regions that chance cannot explain are left out, the rate is taken again, until nobody leaves.

    Args:
        exposures: of each region, (n,).
        amounts: of harm, (n,).
        size: harm of a typical report; chance works on reports, not on amounts.
    """
    known = exposures > 0
    usual, reports = known, np.floor(amounts / size + 1e-9)
    for _ in range(50):
        rate = amounts[usual].sum() / exposures[usual].sum()
        chance = np.where(reports > 0, pdtrc(reports - 1, exposures * (rate / size)), 1.0)
        still = known & (chance > CLEARLY)
        if not still.any() or (still == usual).all():
            break
        usual = still
    return float(amounts[usual].sum() / exposures[usual].sum())


def fit(
    log: ShadowLog, guards: GateConfig | None = None, *, loss: float = 0.1,
    cap_source: float | None = 5.0, seed: int = 0,
) -> Fit:  # fmt: skip
    """Choose settings on the earlier part of a log, score them on the later part.

    Args:
        log: exposures and reports, served as if there were no gate (shadow mode).
        guards: everything that is not fitted: constants of the fields, agreement, floor.
        loss: most of the good exposures that may be lost, in (0, 1).
        cap_source: as in the gate's settings.
        seed: of the bootstrap.

    Raises:
        NotEnoughError: no exposures, or too few reports.
    """
    if not 0 < loss < 1:
        raise UserError(f"loss must be in (0, 1), got {loss}")
    if not np.asarray(log.seen[2]).sum() > 0:
        raise NotEnoughError(
            "the log has no exposures: log decisions (and gate.expose what was shown), else a rate "
            "of reports cannot be known"
        )
    if len(log.said[0]) < LEAST_REPORTS:
        raise NotEnoughError(
            f"the log has {len(log.said[0])} reports; at least {LEAST_REPORTS} are needed"
        )
    plain = GateConfig(params=FieldParams(), confirm_ticks=10**9)
    guards = replace(guards or plain, base_rates={})  # regions have no topics here
    cells = Cells(log, cap_source)
    until = cells.cut(EARLIER)
    totals = cells.totals(until)
    if not totals[1].sum() > 0:
        raise NotEnoughError(f"no report is about the first {EARLIER:.0%} of the log")
    amounts = np.asarray(log.said[2], np.float64)
    size = float((amounts**2).sum() / amounts.sum())
    base = min(max(base_rate(*totals, size), 1e-6), 0.5)
    spread = _base_interval(totals, size, seed)
    law = _search(cells, guards, base, totals, loss)
    score = _score(cells, law, seed)
    end = np.full(len(log.regions), cells.tick.max() + log.delay)
    scars = course(cells.history, law, np.arange(len(log.regions)), end).H > 0
    everything = cells.totals(int(cells.tick.max()) + 1)
    exposures, harm = (total[everything[0] > 0] for total in everything)
    rates = net_rate(harm, exposures, law.base_rate, params_of(law))
    return Fit(
        law, spread, score, [log.regions[r] for r in np.flatnonzero(scars)],
        can_act(law, rates), len(log.said[0]), float(exposures.sum()),
        _notes(log, law, score, loss),
    )  # fmt: skip


def _base_interval(totals: tuple[Reals, Reals], size: float, seed: int) -> Interval:
    """Interval of the base rate when other regions had been there."""
    rng, n = np.random.default_rng(seed), totals[0].size
    picks = (rng.integers(0, n, n) for _ in range(RESAMPLES))
    return interval([
        base_rate(totals[0][pick], totals[1][pick], size)
        for pick in picks if totals[0][pick].sum() > 0
    ])  # fmt: skip


def _search(
    cells: Cells, guards: GateConfig, base: float, totals: tuple[Reals, Reals], loss: float
) -> GateConfig:
    """The most careful law among those that hold back about the most for what it costs."""
    length = max(int(cells.tick.max() - cells.tick.min()), 1)
    lowest, highest = cells.cut(INNER), cells.cut(EARLIER)
    mask = (cells.tick >= lowest) & (cells.tick < highest)
    good, bad = cells.good[mask], cells.bad[mask]
    rate = (totals[1] + 0.5) / (totals[0] + 0.5 / base)
    scale = float(np.clip(rate.max() - base, 2 * base, 1.0))
    steady = guards.params.alpha / guards.params.lam

    def law_of(times: float, z: float, prior: float, share: float) -> GateConfig:
        harm = min((times - 1) * base / scale, 0.9)  # of a region at `times` the base rate
        return replace(
            guards, base_rate=base, half_life=max(length * share, 1.0), z=z, scale=scale,
            shrinkage=prior / base, params=replace(guards.params, tau=steady * harm),
        )  # fmt: skip

    def worth(law: GateConfig) -> float:
        held, lost = shares(cells.weights(law, mask), good, bad)
        return held - WORTH * lost if lost <= loss else -lost

    grid = product((5.0, 3.0, 2.0), (2.0, 1.0), (2.0, 0.5), (0.5, 0.15, 0.05))
    laws = [law_of(*values) for values in grid]
    worths = [worth(law) for law in laws]
    best = max(worths)
    return next(x for x, w in zip(laws, worths, strict=True) if w >= best - ABOUT * abs(best))


def _score(cells: Cells, law: GateConfig, seed: int) -> Score:
    """What a law does on the later part, with a bootstrap over regions."""
    mask = cells.tick >= cells.cut(EARLIER)
    good, bad, region = cells.good[mask], cells.bad[mask], cells.region[mask]
    weight = cells.weights(law, mask)

    def figures(times: Reals | float) -> tuple[float, float, float, Reals]:
        held, lost = shares(weight, good * times, bad * times)
        reach = shares(np.where(weight > 0, 1.0, 0.0), good * times, bad * times)[1]
        at = np.minimum(LOSSES, reach)
        held_there = held_at(weight, good * times, bad * times, LOSSES.tolist())
        curve = np.divide(held_there, at, out=np.full(at.size, np.nan), where=at > 0)
        return held, lost, held / lost if lost > 0 else float("nan"), curve

    held, lost, ratio, curve = figures(1.0)
    drawn = [figures(times) for times in resampled(region, RESAMPLES, seed)]
    bands = [interval([d[3][i] for d in drawn]) or (np.nan, np.nan) for i in range(curve.size)]
    return Score(
        held, lost, ratio,
        held_interval=interval([d[0] for d in drawn]),
        lost_interval=interval([d[1] for d in drawn]),
        lift_interval=interval([d[2] for d in drawn]),
        curve=np.vstack([curve, np.array(bands).T]),
    )  # fmt: skip


def _notes(log: ShadowLog, law: GateConfig, score: Score, loss: float) -> tuple[str, ...]:
    """What an operator should know before using the settings."""
    notes = []
    for what, column, needed in (
        ("reporters", 3, law.min_sources),
        ("signals", 4, law.min_signals),
    ):
        count = len(np.unique(log.said[column]))
        if count < needed:
            notes.append(f"no region can scar: the log has {count} {what}, {needed} must agree")
    if score.lost > loss:
        notes.append(f"the later part loses {score.lost:.1%} of the good, more than {loss:.0%}")
    if not score.lift > 1:
        notes.append("on the later part the settings hold back no more harm than chance would")
    return tuple(notes)


# --- in words, and as a figure


def lines(fitted: Fit, ticks_per_day: float) -> list[str]:
    """A fit in plain sentences, the call to make last, also as a command."""
    law, score = fitted.law, fitted.score
    sentences = [
        f"{fitted.reports:,} reports on {fitted.exposures:,.0f} exposures of "
        f"{fitted.acting.regions:,} regions.",
        f"Base rate {law.base_rate:.3g} reports per exposure{_ends(fitted.base_interval)}; "
        f"half-life {law.half_life / ticks_per_day:.2g} days, "
        f"shrinkage {law.shrinkage:.3g} exposures, z {law.z:g}, scale {law.scale:.3g}, "
        f"tau {law.params.tau:.3g}.",
        f"On the last {1 - EARLIER:.0%} of the log, which the choice did not see: "
        f"{score.held:.1%} of the harm held back{_ends(score.held_interval, percent=True)}, "
        f"{score.lost:.1%} of the good lost{_ends(score.lost_interval, percent=True)}, "
        + (f"lift {score.lift:.2f}{_ends(score.lift_interval)}." if score.lift > 0 else "no lift."),
        f"{_scarred(fitted)} {fitted.acting}.",
    ]
    notes = [f"Note: {note}." for note in fitted.notes]
    return [*sentences, *notes, fitted.configure(), fitted.command()]


def _scarred(fitted: Fit) -> str:
    names = ", ".join(map(str, fitted.scarred[:_MOST_NAMES]))
    rest = len(fitted.scarred) - _MOST_NAMES
    if not fitted.scarred:
        return "No region would have a scar."
    more = f" and {rest} more" if rest > 0 else ""
    count = "1 region" if len(fitted.scarred) == 1 else f"{len(fitted.scarred)} regions"
    return f"{count} would have a scar ({names}{more})."


def _ends(ends: Interval, percent: bool = False) -> str:
    if ends is None:
        return ""
    low, high = (f"{v:.1%}" if percent else f"{v:.3g}" for v in ends)
    return f" [{low}, {high}]"


def draw(fitted: Fit) -> tuple[Any, Any]:
    """Lift against good exposures lost, on the later part; returns (figure, axes)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    curve, low, high = fitted.score.curve
    if np.isfinite(low).any():
        axes.fill_between(
            100 * LOSSES, low, high, color="C0", alpha=0.2, lw=0, label="95%, regions"
        )
    axes.plot(100 * LOSSES, curve, color="C0", label="holding back the lowest psi first")
    if fitted.score.lift > 0:
        axes.plot(
            100 * fitted.score.lost, fitted.score.lift, "o", color="C3", label="these settings"
        )
    axes.axhline(1, color="0.6", lw=1, ls=":", label="chance")
    axes.set(xlabel="good exposures lost, %", ylabel="harm held back per good lost (lift)")
    axes.set_ylim(0)
    axes.set_title(f"last {1 - EARLIER:.0%} of the log, settings from before")
    axes.legend(frameon=False, fontsize="small")
    return figure, axes


def save(fitted: Fit, file: Path) -> None:
    """Write the figure.

    Raises:
        FileExistsError: there is such a file.
    """
    if file.exists():
        raise FileExistsError(f"{file} exists; choose another --plot, or remove it")
    file.parent.mkdir(parents=True, exist_ok=True)
    draw(fitted)[0].savefig(file, dpi=120)
