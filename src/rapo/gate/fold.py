"""The fold: what attributed reports make of `G` and `H`, tick by tick, for every region.

Harm is a whole number of `UNIT`s: sums are exact, so they do not depend on the order of arrival.
Only live regions are stepped, with the core's own functions; a region that nothing can change any
more costs nothing. No closed form is used: every tick is the paper's step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.fields import next_scar, next_trace, psi_of
from rapo.core.jit import kernel
from rapo.gate.config import GateConfig

UNIT = 2**32
"""Fixed-point one: harm 1, or the whole of one decision's exposure."""

MOST = 2**61
"""Sums of harm stop here, 500 million: one more report cannot overflow them."""

ROUNDS = 1000
"""Most times that reporters are weighed against each other. With k needed a round takes at least
1/(k - 1) of what fewer of them claim beyond their limit, so this is enough for k up to about 50;
where it is not, each counts as if it were alone."""

SETTLED = 20
"""They are settled once a round takes less than 2**-20 of what each says."""

NEVER = -1
"""Tick of what has not happened."""

ROW = np.dtype(
    [
        ("tick", np.int64),  # at which it counts
        ("report", np.int64),  # position in the log
        ("amount", np.int64),  # harm x attribution weight, in UNITs
        ("exposure", np.int64),  # of the region in the tick of exposure, in UNITs
        ("at", np.float64),  # Unix seconds, as reported
        ("region", np.int32),
        ("source", np.int32),
        ("signal", np.int32),
        ("by_source", np.int32),  # number of the pair (region, source)
        ("by_signal", np.int32),  # number of the pair (region, signal)
        ("bystander", np.bool_),  # its share is too small to agree with anybody
        ("rolled_back", np.bool_),
        ("use", np.bool_),  # neither rolled back nor of a region on the allow-list
        ("dG", np.float64),  # what it added to the trace
    ],
    align=True,
)
"""One report's share in one region."""

Rows = npt.NDArray[np.void]


@kernel
def _fold(
    rows: Any, at: int, trail: int, tick: int, until: int, G: Any, H: Any, grown: Any, live: Any,
    is_live: Any, alive: int, sources: Any, signals: Any, last_source: Any, last_signal: Any,
    confirmed_until: Any, said: Any, exposure: Any, per_source: Any, part: Any, part_tick: Any,
    voice: Any, heard: Any, allowed: Any, speakers: Any, keep: float, alpha: float,
    delta: float, eta: float, tau: float, cap_source: float, cap_region: float, prior: float,
    normalise: bool, min_sources: int, min_signals: int, window: int, lifetime: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Step `tick + 1 .. until`; returns the next row, the next row to expire, regions alive."""
    n = rows.shape[0]
    while tick < until:
        if alive == 0:  # nothing to decay: go on where the next report counts
            following = rows[at].tick if at < n else until
            tick = min(max(tick, following - 1), until)
            if tick == until:
                break
        tick += 1
        trail = _expire(rows, trail, tick - window, sources, signals, last_source, last_signal)
        first = at
        while at < n and rows[at].tick == tick:
            if rows[at].use:
                by = rows[at].source
                per_source[by] = min(per_source[by] + rows[at].amount, MOST)
            at += 1
        for i in range(first, at):
            row = rows[i]
            rows[i].dG = 0.0
            if not row.use or row.amount == 0:
                continue
            taken, total = float(row.amount), float(per_source[row.source])
            if total > cap_source:
                taken = np.floor(taken * cap_source / total)
            rows[i].dG = taken  # completed below, once the region's sum is known
            voice[row.by_source] = min(voice[row.by_source] + np.int64(taken), MOST)
            heard[row.by_source] = NEVER
            said[row.region] = min(said[row.region] + np.int64(taken), MOST)
            exposure[row.region] = max(exposure[row.region], row.exposure)
            if not row.bystander:
                if last_source[row.by_source] == NEVER:
                    sources[row.region] += 1
                last_source[row.by_source] = tick
                if last_signal[row.by_signal] == NEVER:
                    signals[row.region] += 1
                last_signal[row.by_signal] = tick
            if not is_live[row.region]:
                is_live[row.region] = True
                live[alive] = row.region
                alive += 1
        count = 0
        for i in range(first, at):
            by = rows[i].by_source
            if rows[i].dG > 0 and heard[by] == NEVER:
                heard[by] = voice[by]
                if part_tick[by] != NEVER:
                    part[by] *= keep ** float(tick - part_tick[by])
                part_tick[by] = tick
                speakers[count] = i
                count += 1
        for turn in range(ROUNDS + 1):
            for j in range(count):
                by, r = rows[speakers[j]].by_source, rows[speakers[j]].region
                unit = alpha / (UNIT * _per(exposure[r], prior, normalise))
                needed = 1 if tick <= confirmed_until[r] else min_sources
                others = max(keep * G[r] - part[by], 0.0) + unit * float(said[r] - heard[by])
                allowed[by] = _allowed(voice[by], others, part[by], unit, tau, needed)
            settled = True
            for j in range(count):
                by, r = rows[speakers[j]].by_source, rows[speakers[j]].region
                if heard[by] - allowed[by] > heard[by] >> SETTLED:
                    said[r] = NEVER  # weighed again, with all who speak of it
                    settled = False
            if settled:
                break
            for j in range(count):
                by, r = rows[speakers[j]].by_source, rows[speakers[j]].region
                if said[r] == NEVER:
                    heard[by] = allowed[by]
                    if turn == ROUNDS:
                        unit = alpha / (UNIT * _per(exposure[r], prior, normalise))
                        heard[by] = _allowed(voice[by], 0.0, part[by], unit, tau, min_sources)
            for j in range(count):
                said[rows[speakers[j]].region] = 0
            for j in range(count):
                by, r = rows[speakers[j]].by_source, rows[speakers[j]].region
                said[r] = min(said[r] + heard[by], MOST)
        for i in range(first, at):
            row = rows[i]
            by, r = row.by_source, row.region
            if row.dG > 0:
                added = _added(heard[by], said[r], exposure[r], alpha, cap_region, prior, normalise)
                rows[i].dG = added * (row.dG / float(voice[by]))
            per_source[row.source] = 0
        for i in range(first, at):
            by, r = rows[i].by_source, rows[i].region
            if voice[by] > 0:  # once for each pair
                part[by] += _added(
                    heard[by], said[r], exposure[r], alpha, cap_region, prior, normalise
                )
                voice[by] = 0
        kept = 0
        for j in range(alive):
            r = live[j]
            trace, scar = G[r], H[r]
            sure = sources[r] >= min_sources and signals[r] >= min_signals
            sure = sure or tick <= confirmed_until[r]
            H[r] = next_scar(scar, trace, delta, eta if sure else 0.0, tau)
            if sure and eta > 0 and trace > tau:
                grown[r] = tick
            if lifetime > 0 and H[r] > 0 and tick - grown[r] >= lifetime:
                H[r] = 0.0
            harm = _harm(float(said[r]), exposure[r], cap_region, prior, normalise)
            G[r] = next_trace(trace, alpha * harm, keep)
            said[r] = 0
            exposure[r] = 0
            if G[r] > 0 or (H[r] > 0 and (delta < 1 or lifetime > 0)):
                live[kept] = r
                kept += 1
            else:
                is_live[r] = False
        alive = kept
    # what expires while nothing lives: a later tick must not find it counted
    trail = _expire(rows, trail, until - window, sources, signals, last_source, last_signal)
    return at, trail, alive


@kernel
def _expire(
    rows: Any, trail: int, until: int, sources: Any, signals: Any, last_source: Any,
    last_signal: Any,
) -> int:  # fmt: skip
    """Forget agreement of reports up to the tick `until`; returns the next row to expire."""
    while trail < rows.shape[0] and rows[trail].tick <= until:
        row = rows[trail]
        if row.use and not row.bystander:
            if last_source[row.by_source] == row.tick:
                last_source[row.by_source] = NEVER
                sources[row.region] -= 1
            if last_signal[row.by_signal] == row.tick:
                last_signal[row.by_signal] = NEVER
                signals[row.region] -= 1
        trail += 1
    return trail


@kernel
def _settle(part: Any, part_tick: Any, tick: int, keep: float) -> None:
    """Bring reporters' parts of traces up to a tick."""
    for by in range(part.size):
        if part_tick[by] != NEVER:
            part[by] *= keep ** float(tick - part_tick[by])
            part_tick[by] = tick


@kernel
def _per(exposed: int, prior: float, normalise: bool) -> float:
    """What harm is divided by: the exposures of a region, with the prior; or nothing."""
    return exposed / UNIT + prior if normalise else 1.0


@kernel
def _harm(total: float, exposed: int, cap: float, prior: float, normalise: bool) -> float:
    """Harm of a region in a tick from its sum in UNITs: a rate per exposure, or the sum."""
    return float(min(total / UNIT / _per(exposed, prior, normalise), cap))


@kernel
def _added(
    heard: int, total: int, exposed: int, alpha: float, cap: float, prior: float, normalise: bool
) -> float:
    """Trace that one reporter adds to a region in a tick in which `total` UNITs count."""
    if total == 0:
        return 0.0
    harm: float = _harm(float(total), exposed, cap, prior, normalise)
    return alpha * harm * (heard / total)


@kernel
def _allowed(
    voice: int, others: float, part: float, unit: float, tau: float, reporters: int
) -> int:
    """How much of a reporter's harm in a region and tick may count, in UNITs.

    With k reporters needed, one reporter's part of the trace is at most 1/k of it, or tau / k:
    what carries a region over the threshold must come from k of them, however long ago and
    however faintly others agreed. A reviewer's word lifts the limit.

    Args:
        voice: what the reporter said, in UNITs.
        others: the trace without this reporter.
        part: the reporter's part of the trace so far.
        unit: trace that one UNIT adds.
        tau: threshold of scarring.
        reporters: k; with 1 there is no limit.
    """
    if reporters < 2 or unit <= 0:
        return voice
    most = max(tau / reporters, others / (reporters - 1))
    if part + unit * float(voice) <= most:
        return voice
    return int(np.floor(max(most - part, 0.0) / unit))


@kernel
def _psi(
    tick: int, G: Any, H: Any, sources: Any, signals: Any, confirmed_until: Any, min_sources: int,
    min_signals: int, w_G: float, w_H: float, psi_min: float, floor: float, out: Any, sure_out: Any,
) -> None:  # fmt: skip
    """Psi of every region; the trace of an unconfirmed one takes it down by `floor` at most."""
    for r in range(G.size):
        sure = sources[r] >= min_sources and signals[r] >= min_signals
        sure = sure or tick <= confirmed_until[r]
        value = psi_of(G[r], H[r], w_G, w_H, psi_min)
        if not sure:
            value = max(value, floor * psi_of(0.0, H[r], w_G, w_H, psi_min), psi_min)
        out[r] = value
        sure_out[r] = sure


class Fold:
    """The fields of all regions at a tick, and what is needed to go on from there.

    Arrays have one element per region unless said otherwise and grow with the registry.
    """

    def __init__(self, tick: int) -> None:
        self.start = tick
        self.tick = tick
        self.at = 0
        """Rows that have counted."""
        self.trail = 0
        """Rows whose agreement has expired."""
        self.alive = 0
        self.G = np.zeros(0)
        self.H = np.zeros(0)
        self.grown = np.zeros(0, np.int64)
        """Tick in which the scar last grew."""
        self.confirmed_until = np.zeros(0, np.int64)
        """Tick until which a reviewer's confirmation holds."""
        self.sources = np.zeros(0, np.int32)
        """Different reporters within the window."""
        self.signals = np.zeros(0, np.int32)
        self._live = np.zeros(0, np.int32)
        self._is_live = np.zeros(0, np.bool_)
        self._said = np.zeros(0, np.int64)
        self._exposure = np.zeros(0, np.int64)
        self._per_source = np.zeros(0, np.int64)  # (sources,)
        self._last_source = np.zeros(0, np.int64)  # (pairs,)
        self._last_signal = np.zeros(0, np.int64)  # (pairs,)
        self._part = np.zeros(0)  # (pairs,), a reporter's part of a region's trace
        self._part_tick = np.zeros(0, np.int64)  # (pairs,), when it was that
        self._voice = np.zeros(0, np.int64)  # (pairs,), within a tick
        self._heard = np.zeros(0, np.int64)  # (pairs,), within a tick
        self._allowed = np.zeros(0, np.int64)  # (pairs,), within a tick
        self._speakers = np.zeros(0, np.int64)  # (pairs,), within a tick

    def grow(self, regions: int, sources: int, by_source: int, by_signal: int) -> None:
        """Make room; new elements are those of a region that nobody reported."""
        if regions > self.G.size:
            size = max(regions, 2 * self.G.size)
            for name in ("G", "H", "sources", "signals", "_live", "_is_live", "_said",
                         "_exposure"):  # fmt: skip
                setattr(self, name, _grown(getattr(self, name), size, 0))
            for name in ("grown", "confirmed_until"):
                setattr(self, name, _grown(getattr(self, name), size, NEVER))
        for name, count, fill in (
            ("_per_source", sources, 0),
            ("_last_source", by_source, NEVER),
            ("_part", by_source, 0),
            ("_part_tick", by_source, NEVER),
            ("_voice", by_source, 0),
            ("_heard", by_source, 0),
            ("_allowed", by_source, 0),
            ("_speakers", by_source, 0),
            ("_last_signal", by_signal, NEVER),
        ):
            array = getattr(self, name)
            if count > array.size:
                setattr(self, name, _grown(array, max(count, 2 * array.size), fill))

    def confirm(self, regions: Iterable[int], until: int) -> None:
        """A reviewer's word for regions, up to a tick."""
        for region in regions:
            self.confirmed_until[region] = max(self.confirmed_until[region], until)

    def wake(self, keep: float) -> None:
        """Get ready for new settings.

        Every region that has a field is stepped again, since a resting scar may now decay; and
        reporters' parts decay with `keep`, the old 1 - lambda, up to here.
        """
        _settle(self._part, self._part_tick, self.tick, keep)
        awake = np.flatnonzero((self.G > 0) | (self.H > 0))
        self._is_live[:] = False
        self._is_live[awake] = True
        self._live[: awake.size] = awake
        self.alive = awake.size

    def run(self, rows: Rows, until: int, config: GateConfig) -> None:
        """Go on to the tick `until`; `rows` are sorted by tick and hold everything due by then."""
        p = config.params
        self.at, self.trail, self.alive = _fold(
            rows, self.at, self.trail, self.tick, until, self.G, self.H, self.grown, self._live,
            self._is_live, self.alive, self.sources, self.signals, self._last_source,
            self._last_signal, self.confirmed_until, self._said, self._exposure,
            self._per_source, self._part, self._part_tick, self._voice, self._heard, self._allowed,
            self._speakers, 1 - p.lam, p.alpha, p.delta, p.eta, p.tau,
            config.cap_source * UNIT, config.cap_region, config.prior_exposures, config.normalise,
            config.min_sources, config.min_signals, config.confirm_ticks, config.scar_ticks or 0,
        )  # fmt: skip
        self.tick = max(self.tick, until)

    def conductance(self, config: GateConfig) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
        """Psi of every region, and whether it is confirmed."""
        p = config.params
        psi, sure = np.ones(self.G.size), np.zeros(self.G.size, np.bool_)
        _psi(
            self.tick, self.G, self.H, self.sources, self.signals, self.confirmed_until,
            config.min_sources, config.min_signals, p.w_G, p.w_H, p.psi_min,
            config.unconfirmed_floor, psi, sure,
        )  # fmt: skip
        return psi, sure


def _grown(array: npt.NDArray[Any], size: int, fill: int) -> npt.NDArray[Any]:
    """A longer copy; arrays handed out before stay as they were."""
    longer = np.full(size, fill, array.dtype)
    longer[: array.size] = array
    return longer
