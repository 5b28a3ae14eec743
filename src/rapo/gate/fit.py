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
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import pdtrc

from rapo.core.params import FieldParams
from rapo.gate.config import GateConfig
from rapo.gate.fit_report import EARLIER, LOSSES, held_at, interval, resampled, shares
from rapo.gate.law import Acting, can_act, net_rate, params_of
from rapo.gate.shadow_log import History, ShadowLog, course

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
DAY_SECONDS = 86400.0

Reals = npt.NDArray[np.float64]
Interval = tuple[float, float] | None


class NotEnoughError(ValueError):
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


class _Problem:
    """A log as the search sees it: a history, and cells of (tick, region) with good and bad."""

    def __init__(self, log: ShadowLog, cap_source: float | None) -> None:
        self.log = log
        self.history = History.of(
            len(log.regions), log.seen, log.said, delay=log.delay, cap_source=cap_source
        )
        self.region, tick, count = self.history.seen
        self.tick = tick - log.delay
        place = self.tick - self.tick.min()
        width = int(place.max()) + 1
        cell = self.region * width + place  # sorted, as the history is
        mark = np.asarray(log.said[1]) * width + np.asarray(log.said[0]) - self.tick.min()
        found = np.minimum(np.searchsorted(cell, mark), cell.size - 1)
        known = cell[found] == mark
        amount = np.asarray(log.said[2], np.float64)[known]
        self.bad = np.asarray(np.bincount(found[known], amount, cell.size), np.float64)
        self.good = np.maximum(count - self.bad, 0.0)
        self.count = count

    def cut(self, share: float) -> int:
        """Tick at which this share of the log has passed."""
        return int(self.tick.min() + share * (self.tick.max() - self.tick.min()))

    def totals(self, until: int) -> tuple[Reals, Reals]:
        """Exposures and harm of every region before a tick."""
        n = len(self.log.regions)
        tick, region, amount = (np.asarray(x) for x in self.log.said[:3])
        early, seen = tick < until, self.tick < until
        return (
            np.bincount(self.region[seen], self.count[seen], n).astype(np.float64),
            np.bincount(region[early], amount[early], n).astype(np.float64),
        )

    def weights(self, law: GateConfig, mask: npt.NDArray[np.bool_]) -> Reals:
        """Down-weights `1 - psi` of some cells."""
        return 1 - course(self.history, law, self.region[mask], self.tick[mask]).psi


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
        raise ValueError(f"loss must be in (0, 1), got {loss}")
    if not np.asarray(log.seen[2]).sum() > 0:
        raise NotEnoughError(
            "the log has no exposures: log decisions (and gate.expose what was shown), else a rate "
            "of reports cannot be told"
        )
    if len(log.said[0]) < LEAST_REPORTS:
        raise NotEnoughError(
            f"the log has {len(log.said[0])} reports; at least {LEAST_REPORTS} are needed"
        )
    plain = GateConfig(params=FieldParams(), confirm_ticks=10**9)
    guards = replace(guards or plain, base_rates={})  # regions have no topics here
    problem = _Problem(log, cap_source)
    until = problem.cut(EARLIER)
    totals = problem.totals(until)
    if not totals[1].sum() > 0:
        raise NotEnoughError(f"no report is about the first {EARLIER:.0%} of the log")
    amounts = np.asarray(log.said[2], np.float64)
    size = float((amounts**2).sum() / amounts.sum())
    base = min(max(base_rate(*totals, size), 1e-6), 0.5)
    spread = _base_interval(totals, size, seed)
    law = _search(problem, guards, base, totals, loss)
    score = _score(problem, law, seed)
    end = np.full(len(log.regions), problem.tick.max() + log.delay)
    scars = course(problem.history, law, np.arange(len(log.regions)), end).H > 0
    everything = problem.totals(int(problem.tick.max()) + 1)
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
    problem: _Problem, guards: GateConfig, base: float, totals: tuple[Reals, Reals], loss: float
) -> GateConfig:
    """The most careful law among those that hold back about the most for what it costs."""
    length = max(int(problem.tick.max() - problem.tick.min()), 1)
    lowest, highest = problem.cut(INNER), problem.cut(EARLIER)
    mask = (problem.tick >= lowest) & (problem.tick < highest)
    good, bad = problem.good[mask], problem.bad[mask]
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
        held, lost = shares(problem.weights(law, mask), good, bad)
        return held - WORTH * lost if lost <= loss else -lost

    grid = product((5.0, 3.0, 2.0), (2.0, 1.0), (2.0, 0.5), (0.5, 0.15, 0.05))
    laws = [law_of(*values) for values in grid]
    worths = [worth(law) for law in laws]
    best = max(worths)
    return next(x for x, w in zip(laws, worths, strict=True) if w >= best - ABOUT * abs(best))


def _score(problem: _Problem, law: GateConfig, seed: int) -> Score:
    """What a law does on the later part, with a bootstrap over regions."""
    mask = problem.tick >= problem.cut(EARLIER)
    good, bad, region = problem.good[mask], problem.bad[mask], problem.region[mask]
    weight = problem.weights(law, mask)

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
        found = len(np.unique(log.said[column]))
        if found < needed:
            notes.append(f"no region can scar: the log has {found} {what}, {needed} must agree")
    if score.lost > loss:
        notes.append(f"the later part loses {score.lost:.1%} of the good, more than {loss:.0%}")
    if not score.lift > 1:
        notes.append("on the later part the settings hold back no more harm than chance would")
    return tuple(notes)
