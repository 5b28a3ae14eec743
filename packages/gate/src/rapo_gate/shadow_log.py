"""A log as arrays, its regions under any settings, and what holding them back comes to.

`ShadowLog` is what was shown and reported, from a gate's log or from an exported one. `History` is
that or any other stream as the fold wants it: `course` folds it under settings and stops where it
is asked to. For `fit`, which tries many settings on one log, and for studies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_gate.config import GateConfig
from rapo_gate.events import Event, event_of, packed
from rapo_gate.fold.exposure import Exposure, Piece
from rapo_gate.fold.fold import Fold
from rapo_gate.fold.formula import params_of
from rapo_gate.fold.ledger import NOTHING, ROW, UNIT, Ledger
from rapo_gate.fold.records import Stops
from rapo_gate.fold.snapshot import beginning
from rapo_gate.fold.state import State
from rapo_gate.log.store import events_of

if TYPE_CHECKING:
    from rapo_gate.gate import Gate

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
MOST_CAP = 1e6
"""No bound on a reporter's harm in a tick."""


@dataclass(frozen=True, slots=True)
class ShadowLog:
    """What was shown and what was reported; arrays, one element per row."""

    regions: list[Any]
    """Their names; rows have numbers into this list."""
    seen: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
    """Ticks, regions, exposures; a decision is one exposure, shared among what it showed."""
    said: tuple[npt.NDArray[Any], ...]
    """Ticks of exposure, regions, amounts of harm, reporters, signals, and whether the region's
    share of the report is too small to agree with anybody (all False if left out)."""
    delay: int = 1
    """Ticks after which reports count."""

    @classmethod
    def of_gate(cls, gate: Gate) -> ShadowLog:
        """From a gate, best opened with read_only=True.

        Of a log that was compacted the events after the compaction's point are used.
        """
        return cls.of_events(events_of(gate.store), beginning(gate.store))

    @classmethod
    def of_file(cls, path: Path) -> ShadowLog:
        """From a file that `rapo-gate export` wrote.

        Raises:
            UserError: the file does not have a whole log.
        """
        with open(path, encoding="utf-8") as lines:
            values = [json.loads(line) for line in lines]
        if not values or "created" not in values[0] or any("dropped" in v for v in values):
            raise UserError(
                f"{path} does not have a log from its first event on; fit the gate itself, or "
                "export the whole log of one that was not compacted"
            )
        return cls.of_events(map(event_of, values))

    @classmethod
    def of_events(cls, events: Iterable[Event], start: State | None = None) -> ShadowLog:
        """From the events of a log, which a state takes in as the state of a gate does.

        Reports that were rolled back, and those that wait for a reviewer, are left out.

        Args:
            events: of the log, from its first one on.
            start: what came before those events that `start` has not taken in yet.
        """
        state, log = start or State(), _Events()
        begun, seen = state.tick, list[tuple[int, Piece]]()
        exposed = {r.position: r.tick for r in (*state.due(), *state.review.values())}
        for event in events:
            log.keep(event)
            if event.position <= state.position:
                continue
            if event.kind == "Tick":
                seen += _counted_by(state, int(event.data()["tick"]))
            state.apply(event, log)
            if event.kind == "HarmReport":
                exposed[event.position] = int(event.data()["tick"])
        delay = state.config.D
        last = max([state.tick, *state.fold.exposure.ticks()]) + delay + 1
        seen += _counted_by(state, last)
        state.apply(Event(state.position + 1, "Tick", 0.0, None, b"", packed({"tick": last})), log)
        rows = state.ledger.rows
        rows = rows[~rows["rolled_back"] & (rows["tick"] > begun)]
        region, source, signal = (rows[n].astype(np.int64) for n in ("region", "source", "signal"))
        return cls(
            state.regions.names,
            (
                np.repeat([tick for tick, _ in seen], [len(r) for _, (r, _) in seen]),
                np.concatenate([np.zeros(0, np.int64), *(r for _, (r, _) in seen)]),
                np.concatenate([np.zeros(0), *(units / UNIT for _, (_, units) in seen)]),
            ),
            (
                np.array([exposed[report] for report in rows["report"].tolist()], np.int64),
                region, rows["amount"] / UNIT, source, signal, rows["bystander"].copy(),
            ),
            delay,
        )  # fmt: skip


def _counted_by(state: State, until: int) -> list[tuple[int, Piece]]:
    """Exposures that will count up to a tick and have not counted yet, by their own tick."""
    exposure, delay = state.fold.exposure, state.config.D
    return [(t, exposure.of_tick(t)) for t in exposure.ticks() if t + delay <= until]


class _Events:
    """Decisions and exposures by their keys: what a state looks up."""

    def __init__(self) -> None:
        self._by_key: dict[str, Event] = {}

    def keep(self, event: Event) -> None:
        """Remember an event that may be looked up."""
        if event.key is not None and event.kind in ("Decision", "Exposure"):
            self._by_key[event.key] = event

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key; those that are not there are left out."""
        return {key: self._by_key[key] for key in keys if key in self._by_key}


# --- under any settings


class Course(NamedTuple):
    """Fields of what was asked for, one element per question."""

    G: Reals
    H: Reals
    psi: Reals
    harm: Reals


@dataclass(frozen=True, slots=True)
class History:
    """Exposures and reports of n regions, to be folded under any settings."""

    regions: int
    seen: tuple[Ints, Ints, Reals]
    """Regions, ticks at which they count, exposures; sorted by region and tick, each pair once."""
    ledger: Ledger
    """Reports, in ticks after `zero`."""
    zero: int

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
            said: ticks of exposure, regions, amounts of harm, reporters, and, unless left out,
                signals, and whether the row agrees with nobody.
            delay: ticks after which both count, `D` of a gate.
            cap_source: most harm of one reporter in one tick; more is scaled down to it.
        """
        tick, region, count = _sorted(seen[0], seen[1], np.asarray(seen[2], np.float64))
        at, where, amount, who, *kinds = (np.asarray(x) for x in said)
        zero = int(min(tick.min(initial=2**62), at.min(initial=2**62))) + delay - 1
        order = np.argsort(at, kind="stable")
        rows = np.zeros(at.size, ROW)
        rows["tick"], rows["report"] = (at + delay - zero)[order], np.arange(1, at.size + 1)
        rows["region"], rows["amount"] = where[order], np.rint(amount[order] * float(UNIT))
        rows["source"] = np.unique(who, return_inverse=True)[1][order]
        if kinds:
            rows["signal"] = np.unique(kinds[0], return_inverse=True)[1][order]
        if kinds[1:]:
            rows["bystander"] = kinds[1][order]
        ledger = Ledger()
        ledger.seat(rows["region"])
        ledger.append(rows, MOST_CAP if cap_source is None else cap_source)
        return cls(regions, (region, tick + delay, count), ledger, zero)


def course(
    history: History, config: GateConfig, regions: npt.ArrayLike, ticks: npt.ArrayLike
) -> Course:
    """Fields of regions at ticks, as a decision in that tick would see them.

    Args:
        history: exposures and reports.
        config: settings; topics play no part.
        regions: region of each question, (m,).
        ticks: tick of each question, (m,).
    """
    ledger, when = history.ledger, np.asarray(ticks, np.int64) - history.zero
    slot = _slots(ledger, np.asarray(regions, np.int64))
    order = np.lexsort((when, slot))
    order = order[slot[order] != NOTHING]
    slots, first = np.unique(slot[order], return_index=True)
    region, tick, count = history.seen
    reported = _slots(ledger, region) != NOTHING  # of the others nothing was ever reported
    fold = Fold(0, config, ledger)
    fold.exposure = Exposure.of(
        region[reported],
        tick[reported] - history.zero,
        count[reported],
        params_of(config),
        ledger.slot_of,
    )
    stops = Stops.at(np.append(first, order.size), when[order])
    fold.stopped(slots.astype(np.int32), stops)
    result = Course(*np.zeros((4, slot.size)))
    result.psi[:] = 1.0
    for name, values in result._asdict().items():
        values[order] = stops.course[name]
    return result


def _slots(ledger: Ledger, regions: Ints) -> Ints:
    """Slot of each region, NOTHING where it has none."""
    slots = np.full(regions.size, NOTHING, np.int64)
    known = regions < ledger.slot_of.size
    slots[known] = ledger.slot_of[regions[known]]
    return slots


def _sorted(tick: npt.ArrayLike, region: npt.ArrayLike, count: Reals) -> tuple[Ints, Ints, Reals]:
    """By region, then by tick; rows of one region and tick become one."""
    ticks, regions = np.asarray(tick, np.int64), np.asarray(region, np.int64)
    order = np.lexsort((ticks, regions))
    ticks, regions, count = ticks[order], regions[order], count[order]
    new = np.ones(ticks.size, np.bool_)
    new[1:] = (np.diff(ticks) != 0) | (np.diff(regions) != 0)
    total = np.bincount(np.cumsum(new) - 1, count) if ticks.size else count
    return ticks[new], regions[new], np.asarray(total, np.float64)


# --- harm held back, good lost


class Cells:
    """Exposures of a log by region and tick, good and bad; and its history."""

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
        place = np.minimum(np.searchsorted(cell, mark), cell.size - 1)
        known = cell[place] == mark
        amount = np.asarray(log.said[2], np.float64)[known]
        self.bad = np.asarray(np.bincount(place[known], amount, cell.size), np.float64)
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
    array = np.asarray(values, np.float64)
    known = array[np.isfinite(array)]
    if not known.size or known.size < 0.95 * array.size:
        return None
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)
