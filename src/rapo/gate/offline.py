"""The law of harm offline: courses of `G`, `H` and `psi` from arrays, under any settings.

For studies and for `fit`, which try many settings on one log. It has no log, no rollback and no
reviewer: reports and exposures come as arrays, every region is stepped by itself, and the fields
are read at the ticks that are asked for. A test holds it against the gate's own fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo.core.fields import next_scar, next_trace
from rapo.core.jit import kernel
from rapo.core.params import FieldParams
from rapo.gate.law import enough, harm_of, params_of, psi_at

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

NEVER = -(2**62)
"""Tick of what has not happened."""

HELD = 0.02
"""The exposure that the fold uses follows the true one in steps of this share of (it + K)."""


@dataclass(frozen=True, slots=True)
class Law:
    """What turns reports and exposures into fields; names as in the gate's settings."""

    base_rate: float
    """Reports per exposure that are no harm, in (0, 1)."""
    half_life: float
    """Ticks in which reports and exposures in memory halve."""
    shrinkage: float
    """Exposures at the base rate that every region starts with."""
    z: float
    """Posterior standard deviations taken off a region's rate."""
    scale: float
    """Excess of the rate over the base rate at which harm is 1."""
    params: FieldParams = field(default_factory=FieldParams)
    min_sources: int = 1
    min_signals: int = 1
    confirm_ticks: int = 10**9
    unconfirmed_floor: float = 0.9
    scar_ticks: int | None = None
    base_rates: Mapping[str, float] = field(default_factory=dict)
    """None: regions have no topics here."""


@dataclass(frozen=True, slots=True)
class History:
    """Exposures and reports of n regions, each sorted by region and by the tick they count at."""

    regions: int
    seen: tuple[Ints, Ints, Reals]
    """First place of each region (n + 1,), ticks, exposures."""
    said: tuple[Ints, Ints, Reals, Ints, Ints]
    """First place of each region (n + 1,), ticks, amounts, reporters and signals; the last two
    numbered from 0 within a region."""

    @classmethod
    def of(
        cls,
        regions: int,
        seen: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
        said: tuple[npt.ArrayLike, ...],
        *,
        delay: int = 1,
        cap_source: float | None = None,
    ) -> History:
        """From arrays in any order.

        Args:
            regions: how many, n.
            seen: ticks, regions (0..n-1) and numbers of exposures.
            said: ticks of exposure, regions, amounts of harm, reporters, and signals or nothing.
            delay: ticks after which both count, `D` of a gate.
            cap_source: most harm of one reporter in one tick; more is scaled down to it.
        """
        tick, region, count = _sorted(seen[0], seen[1], np.asarray(seen[2], np.float64))
        at, where, amount, who = (np.asarray(x) for x in said[:4])
        kind = np.asarray(said[4]) if len(said) > 4 else np.zeros(at.size, np.int64)
        amount = amount.astype(np.float64)
        if cap_source is not None and at.size:
            _, turn = np.unique(np.stack([at, who]), axis=1, return_inverse=True)
            total = np.bincount(turn.ravel(), amount)[turn.ravel()]
            amount = amount * np.minimum(1.0, cap_source / np.maximum(total, cap_source))
        order = np.lexsort((at, where))
        at, where, amount, who, kind = (x[order] for x in (at, where, amount, who, kind))
        return cls(
            regions,
            (_places(region, regions), tick + delay, count),
            (
                _places(where, regions), at.astype(np.int64) + delay, amount,
                _numbered(where, who), _numbered(where, kind),
            ),
        )  # fmt: skip


def _sorted(tick: npt.ArrayLike, region: npt.ArrayLike, count: Reals) -> tuple[Ints, Ints, Reals]:
    """By region, then by tick; rows of one region and tick become one."""
    ticks, regions = np.asarray(tick, np.int64), np.asarray(region, np.int64)
    order = np.lexsort((ticks, regions))
    ticks, regions, count = ticks[order], regions[order], count[order]
    new = np.ones(ticks.size, np.bool_)
    new[1:] = (np.diff(ticks) != 0) | (np.diff(regions) != 0)
    total = np.bincount(np.cumsum(new) - 1, count) if ticks.size else count
    return ticks[new], regions[new], np.asarray(total, np.float64)


def _places(region: npt.NDArray[Any], regions: int) -> Ints:
    return np.searchsorted(region, np.arange(regions + 1)).astype(np.int64)


def _numbered(region: npt.NDArray[Any], name: npt.NDArray[Any]) -> Ints:
    """Names (n,) as numbers from 0 within each region; rows are sorted by region."""
    if not region.size:
        return np.zeros(0, np.int64)
    _, known = np.unique(name, return_inverse=True)
    _, first, pair = np.unique(
        region.astype(np.int64) * (known.max() + 1) + known, return_index=True, return_inverse=True
    )
    owner = region[first]  # pairs are sorted by region, so a region's numbers run on
    return np.asarray(pair - np.searchsorted(owner, owner)[pair], np.int64)


class Course(NamedTuple):
    """Fields of what was asked for, one element per question."""

    G: Reals
    H: Reals
    psi: Reals
    harm: Reals


def course(
    history: History, law: Law, regions: npt.ArrayLike, ticks: npt.ArrayLike, held: float = HELD
) -> Course:
    """Fields of regions at ticks, as a decision in that tick would see them.

    Args:
        history: exposures and reports.
        law: the settings.
        regions: region of each question, (m,).
        ticks: tick of each question, (m,).
        held: see `HELD`; 0 for the true exposure at every tick.
    """
    where, when = np.asarray(regions, np.int64), np.asarray(ticks, np.int64)
    order = np.lexsort((when, where))
    found = np.zeros((4, order.size))
    found[2] = 1.0
    out = np.zeros((4, order.size))
    out[2] = 1.0
    busiest = int(np.diff(history.said[0]).max()) if history.regions else 0
    _walk(
        *history.seen, *history.said, _places(where[order], history.regions), when[order],
        params_of(law), held, np.zeros(busiest), np.zeros((3, busiest), np.int64), out,
    )  # fmt: skip
    found[:, order] = out
    return Course(*found)


@kernel
def _walk(
    seen_at: Any, seen_tick: Any, seen_count: Any, said_at: Any, said_tick: Any, said_amount: Any,
    said_who: Any, said_kind: Any, ask_at: Any, ask_tick: Any, p: Any, hold: float, mass: Any,
    last: Any, out: Any,
) -> None:  # fmt: skip
    """Step every region that was reported from its first report to its last question."""
    for r in range(ask_at.size - 1):
        row, rows, ask, asks = said_at[r], said_at[r + 1], ask_at[r], ask_at[r + 1]
        if row == rows:
            continue
        while ask < asks and ask_tick[ask] < said_tick[row]:
            ask += 1  # nobody had reported it: the fields are 0
        most = rows - row
        mass[:most] = 0.0
        last[:, :most] = NEVER
        x, trail, sources, kinds = seen_at[r], row, 0, 0
        seen, held, seen_last = 0.0, 0.0, said_tick[row]
        G, H, S, largest, harm, grown = 0.0, 0.0, 0.0, 0.0, 0.0, 0
        tick = said_tick[row] - 1
        while ask < asks:
            if harm == 0.0 and G == 0.0 and (H == 0.0 or (p.delta == 1.0 and p.lifetime == 0)):
                until = ask_tick[ask] if row == rows else min(ask_tick[ask], said_tick[row])
                fade = p.fade ** float(until - 1 - tick)
                S, largest, tick = S * fade, largest * fade, until - 1
            tick += 1
            S *= p.fade
            largest *= p.fade
            while x < seen_at[r + 1] and seen_tick[x] <= tick:
                fade = p.fade ** float(seen_tick[x] - seen_last)
                seen, held, seen_last = seen * fade + seen_count[x], held * fade, seen_tick[x]
                if held == 0.0 or abs(seen - held) > hold * (held + p.shrinkage):
                    held = seen
                x += 1
            while trail < row and said_tick[trail] <= tick - p.window:
                sources -= _forget(last[1], said_who[trail], said_tick[trail])
                kinds -= _forget(last[2], said_kind[trail], said_tick[trail])
                trail += 1
            while row < rows and said_tick[row] == tick:
                S += said_amount[row]
                largest = max(largest, _heard(mass, last[0], said_who[row], said_amount[row],
                                              tick, p.fade))  # fmt: skip
                sources += _note(last[1], said_who[row], tick)
                kinds += _note(last[2], said_kind[row], tick)
                row += 1
            E = held * p.fade ** float(tick - seen_last)
            A = _bounded(S, E, largest, tick, mass[:most], last[0], p)
            harm = harm_of(A, E, p.base, p)
            sure = sources >= p.min_sources and kinds >= p.min_signals
            H = next_scar(H, G, p.delta, p.eta if sure else 0.0, p.tau)
            if sure and p.eta > 0 and p.tau < G:
                grown = tick
            if p.lifetime > 0 and H > 0 and tick - grown >= p.lifetime:
                H = 0.0
            G = next_trace(G, p.alpha * harm, p.keep)
            while ask < asks and ask_tick[ask] == tick:
                out[0, ask], out[1, ask], out[3, ask] = G, H, harm
                out[2, ask] = psi_at(G, H, sure, p)
                ask += 1


@kernel
def _note(last: Any, name: int, tick: int) -> int:
    """Note that a reporter or signal spoke; 1 if it was not counted before."""
    new = 1 if last[name] == NEVER else 0
    last[name] = tick
    return new


@kernel
def _forget(last: Any, name: int, tick: int) -> int:
    """Let a report of `tick` go; 1 if its reporter or signal did not speak later."""
    if last[name] != tick:
        return 0
    last[name] = NEVER
    return 1


@kernel
def _heard(mass: Any, when: Any, who: int, amount: float, tick: int, g: float) -> float:
    """Add to what a reporter has in memory; what it is then."""
    if mass[who] > 0:
        mass[who] *= g ** float(tick - when[who])
    mass[who] += amount
    when[who] = tick
    return float(mass[who])


@kernel
def _bounded(S: float, E: float, largest: float, tick: int, mass: Any, when: Any, p: Any) -> float:
    """Reports in memory, each reporter bounded: fewer than k do not bring harm to the threshold."""
    if p.min_sources < 2:
        return S
    most = enough(E + p.shrinkage, p.base, p.shrinkage, p.z, p.goal) * p.part
    if largest <= most:
        return S
    total = 0.0
    for who in range(mass.size):
        if mass[who] > 0:
            total += min(mass[who] * p.fade ** float(tick - when[who]), most)
    return total
