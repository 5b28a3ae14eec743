"""Exposures: what waits for its tick, and what of it regions have in memory.

A tick's exposures count when its reports do. A region's exposures in memory, `E`, decay by the same
factor as its reports. A refold needs past values too, and one per tick would fill gigabytes. So a
point (tick, exposures) is recorded only when the exact value is 2% away from the last point, faded
to now. The fold reads recorded points alone, live and in a refold: both give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.jit import kernel
from rapo_gate.fold.formula import Params
from rapo_gate.fold.ledger import UNIT
from rapo_gate.fold.records import grown

TOLERANCE = 0.02
"""Share of `E + K` by which the held exposure may be wrong."""
COALESCE = 64
"""Pieces of a tick's exposure before they are added up."""

Reals = npt.NDArray[np.float64]
Piece = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""Regions and their exposure in UNITs."""


@kernel
def _add(regions: Any, units: Any, open_units: Any, touched: Any, list_: Any, count: int) -> int:
    """Add to the open tick; returns how many regions it has."""
    for i in range(regions.size):
        r = regions[i]
        open_units[r] += units[i]
        if not touched[r]:
            touched[r] = True
            list_[count] = r
            count += 1
    return count


@kernel
def _settle(
    regions: Any, units: Any, tick: int, fade: float, shrinkage: float, E: Any, E_tick: Any,
    held: Any, held_tick: Any, new_points: Any,
) -> int:  # fmt: skip
    """Count exposures; returns how many of the regions get a point, which `new_points` lists."""
    count = 0
    for i in range(regions.size):
        r = regions[i]
        if units[i] == 0:
            continue
        E[r] = E[r] * fade ** float(tick - E_tick[r]) + units[i] / UNIT
        E_tick[r] = tick
        now = held[r] * fade ** float(tick - held_tick[r])
        if held_tick[r] == 0 or abs(E[r] - now) > TOLERANCE * (now + shrinkage):
            held[r] = E[r]
            held_tick[r] = tick
            new_points[count] = r
            count += 1
    return count


@kernel
def _points(
    regions: Any, ticks: Any, counts: Any, fade: float, shrinkage: float, new_points: Any, E: Any
) -> int:
    """Which of the exposures of regions, sorted by region and tick, are points; E at each."""
    count, seen, held = 0, 0.0, 0.0
    for i in range(regions.size):
        if i > 0 and regions[i] == regions[i - 1]:
            passed = fade ** float(ticks[i] - ticks[i - 1])
            seen, held = seen * passed + counts[i], held * passed
        else:
            seen, held = counts[i], -1.0
        if held < 0 or abs(seen - held) > TOLERANCE * (held + shrinkage):
            held = seen
            new_points[count], E[count] = i, seen
            count += 1
    return count


@kernel
def _change(tick: int, before: float, after: float, E: Any, E_tick: Any, held: Any,
            held_tick: Any) -> None:  # fmt: skip
    """New settings hold from the next tick on: every held course begins anew there."""
    for r in range(E.size):
        if E_tick[r] != 0:
            E[r] *= before ** float(tick - E_tick[r])
            E_tick[r] = tick
            held[r] = E[r] * after
            held_tick[r] = tick + 1


class Exposure:
    """What regions were exposed. Arrays have an element per region unless said otherwise."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[Piece]] = {}
        """By tick, what has not counted; the open tick is not among them."""
        self.open_tick = 0
        """The newest tick of any decision: its exposure is held for all regions at once."""
        self._units = np.zeros(0, np.int64)
        self._touched = np.zeros(0, np.bool_)
        self._list = np.zeros(0, np.int32)
        self._count = 0
        self.E = np.zeros(0)
        self.E_tick = np.zeros(0, np.int64)
        """When E was that; 0 for a region without any."""
        self.held = np.zeros(0)
        self.held_tick = np.zeros(0, np.int64)
        self._count_points = 0
        self._slot = np.zeros(16, np.int32)
        self._tick = np.zeros(16, np.int64)
        self._E = np.zeros(16)

    @property
    def points(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], Reals]:
        """Slot, tick and exposures of every point, in the order of time; views."""
        n = self._count_points
        return self._slot[:n], self._tick[:n], self._E[:n]

    @classmethod
    def of(cls, regions: npt.NDArray[Any], ticks: npt.NDArray[Any], counts: npt.NDArray[Any],
           p: Params, slot_of: npt.NDArray[np.int32]) -> Exposure:  # fmt: skip
        """What regions with a slot have in memory, of exposures that have all counted.

        Args:
            regions: of each, in ascending order, (n,).
            ticks: when it counts, in ascending order within a region, (n,).
            counts: how many, (n,).
            p: settings.
            slot_of: slot of each region.
        """
        made, place, E = cls(), np.zeros(regions.size, np.int64), np.zeros(regions.size)
        count = _points(regions, ticks, counts, p.fade, p.shrinkage, place, E)
        place = place[:count]
        made._record(slot_of[regions[place]], ticks[place], E[:count])
        return made

    def grow(self, regions: int) -> None:
        """Make room for regions."""
        for name in ("_units", "_touched", "_list", "E", "E_tick", "held", "held_tick"):
            setattr(self, name, grown(getattr(self, name), regions, 0))

    def add(self, tick: int, regions: npt.NDArray[Any], units: npt.NDArray[np.int64]) -> None:
        """Add to (or, with negative units, take from) the exposure of a tick."""
        if tick > self.open_tick:
            self._close()
            self.open_tick = tick
        if tick == self.open_tick:
            self._count = _add(regions, units, self._units, self._touched, self._list, self._count)
        else:
            pieces = self.waiting.setdefault(tick, [])
            pieces.append((regions.astype(np.int32), units))
            if len(pieces) > COALESCE:
                self.waiting[tick] = [_sum(pieces)]

    def of_tick(self, tick: int) -> Piece:
        """What a tick exposed that has not counted yet: regions in ascending order."""
        pieces = list(self.waiting.get(tick, []))
        if tick == self.open_tick:
            pieces.append(self._opened())
        return _sum(pieces)

    def ticks(self) -> list[int]:
        """Ticks whose exposure has not counted."""
        return sorted({*self.waiting, *([self.open_tick] if self._count else [])})

    def settle(self, of: int, tick: int, p: Params, slot_of: npt.NDArray[np.int32]) -> None:
        """Count the exposure of the tick `of` in `tick`.

        Args:
            of: when it was.
            tick: when it counts.
            p: settings.
            slot_of: slot of each region, negative where it has none.
        """
        regions, units = self.of_tick(of)
        self.waiting.pop(of, None)
        if of == self.open_tick:
            self._clear()
        new_points = np.zeros(regions.size, np.int32)
        count = _settle(
            regions, units, tick, p.fade, p.shrinkage, self.E, self.E_tick, self.held,
            self.held_tick, new_points,
        )  # fmt: skip
        known = new_points[:count]
        known = known[known < slot_of.size]
        self._note(known[slot_of[known] >= 0], slot_of)

    def change(self, tick: int, before: Params, after: Params, regions: npt.NDArray[Any],
               slot_of: npt.NDArray[np.int32]) -> None:  # fmt: skip
        """Heed a new half-life or shrinkage from the tick after `tick` on.

        `regions` are those of all slots.
        """
        _change(tick, before.fade, after.fade, self.E, self.E_tick, self.held, self.held_tick)
        self._note(regions[self.held_tick[regions] != 0], slot_of)

    def follow(self, regions: npt.NDArray[Any], slot_of: npt.NDArray[np.int32]) -> None:
        """Record points of regions from now on, which have just got their slots."""
        self._note(regions[self.held_tick[regions] != 0], slot_of)

    def _note(self, regions: npt.NDArray[Any], slot_of: npt.NDArray[np.int32]) -> None:
        """Record what is held for regions as their newest points."""
        self._record(slot_of[regions], self.held_tick[regions], self.held[regions])

    def _record(self, slots: npt.NDArray[np.int32], ticks: npt.NDArray[np.int64], E: Reals) -> None:
        start, self._count_points = self._count_points, self._count_points + slots.size
        end = self._count_points
        self._slot, self._tick = grown(self._slot, end, 0), grown(self._tick, end, 0)
        self._E = grown(self._E, end, 0)
        self._slot[start:end], self._tick[start:end], self._E[start:end] = slots, ticks, E

    def _opened(self) -> Piece:
        regions = self._list[: self._count].copy()
        return regions, self._units[regions]

    def _clear(self) -> None:
        used = self._list[: self._count]
        self._units[used] = 0
        self._touched[used] = False
        self._count = 0

    def _close(self) -> None:
        """Put the open tick among those that wait."""
        if self._count:
            self.waiting.setdefault(self.open_tick, []).append(self._opened())
            self._clear()

    def dump(self, regions: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything that is known of so many regions, as plain values and arrays."""
        arrays: dict[str, npt.NDArray[Any]] = {
            name: getattr(self, name)[:regions] for name in ("E", "E_tick", "held", "held_tick")
        }
        arrays["point_slot"], arrays["point_tick"], arrays["point_E"] = self.points
        ticks = self.ticks()
        for tick in ticks:
            arrays[f"regions {tick}"], arrays[f"units {tick}"] = self.of_tick(tick)
        return {"ticks": ticks}, arrays

    @classmethod
    def load(cls, values: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Exposure:
        """What `dump` gave."""
        made = cls()
        made.grow(arrays["E"].size)
        for name in ("E", "E_tick", "held", "held_tick"):
            setattr(made, name, arrays[name])
        made._record(arrays["point_slot"], arrays["point_tick"], arrays["point_E"])
        for tick in values["ticks"]:
            made.waiting[tick] = [(arrays[f"regions {tick}"], arrays[f"units {tick}"])]
        return made


def _sum(pieces: list[Piece]) -> Piece:
    """One piece, each region once, in ascending order."""
    if not pieces:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    regions = np.concatenate([r for r, _ in pieces])
    order = np.argsort(regions, kind="stable")
    units = np.concatenate([u for _, u in pieces])[order]
    distinct, start = np.unique(regions[order], return_index=True)
    return distinct.astype(np.int32), np.add.reduceat(units, start) if distinct.size else units
