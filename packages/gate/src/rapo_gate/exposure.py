"""Exposures: what waits for its tick, and what of it regions have in memory.

A tick's exposures count when its reports do. A region's exposures in memory, `E`, decay by the same
factor as its reports. The fold sees the *held* course of `E`: it is set anew (a break) when `E` has
left it by 2%, and decays in between, so that a region can be folded again without the exposures of
every tick.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.jit import kernel
from rapo_gate.cells import Links, grown
from rapo_gate.law import Params
from rapo_gate.ledger import UNIT

TOLERANCE = 0.02
"""Share of `E + K` by which the held exposure may be wrong."""
COALESCE = 64
"""Pieces of a tick's exposure before they are added up."""

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
    held: Any, held_tick: Any, broken: Any,
) -> int:  # fmt: skip
    """Count exposures; returns how many of the regions had a break, which `broken` lists."""
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
            broken[count] = r
            count += 1
    return count


@kernel
def _breaks(
    regions: Any, ticks: Any, counts: Any, fade: float, shrinkage: float, broken: Any, E: Any
) -> int:
    """Which of the exposures of regions, sorted by region and tick, are breaks; E at each."""
    count, seen, held = 0, 0.0, 0.0
    for i in range(regions.size):
        if i > 0 and regions[i] == regions[i - 1]:
            passed = fade ** float(ticks[i] - ticks[i - 1])
            seen, held = seen * passed + counts[i], held * passed
        else:
            seen, held = counts[i], -1.0
        if held < 0 or abs(seen - held) > TOLERANCE * (held + shrinkage):
            held = seen
            broken[count], E[count] = i, seen
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
        self.links = Links()
        """Breaks of every slot, from its first row on."""
        self.breaks = 0
        self.break_tick = np.zeros(16, np.int64)
        self.break_E = np.zeros(16)

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
        made.breaks = _breaks(regions, ticks, counts, p.fade, p.shrinkage, place, E)
        place = place[: made.breaks]
        made.break_tick, made.break_E = ticks[place], E[: made.breaks]
        slots = slot_of[regions[place]]
        made.links.append(slots, int(slot_of.max(initial=-1)) + 1, 0)
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
        broken = np.zeros(regions.size, np.int32)
        count = _settle(
            regions, units, tick, p.fade, p.shrinkage, self.E, self.E_tick, self.held,
            self.held_tick, broken,
        )  # fmt: skip
        known = broken[:count]
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
        """Keep the breaks of regions from now on, which have just got their slots."""
        self._note(regions[self.held_tick[regions] != 0], slot_of)

    def _note(self, regions: npt.NDArray[Any], slot_of: npt.NDArray[np.int32]) -> None:
        """Add what is held for regions to their breaks."""
        start, self.breaks = self.breaks, self.breaks + regions.size
        self.break_tick = grown(self.break_tick, self.breaks, 0)
        self.break_E = grown(self.break_E, self.breaks, 0)
        self.break_tick[start : self.breaks] = self.held_tick[regions]
        self.break_E[start : self.breaks] = self.held[regions]
        slots = slot_of[regions]
        self.links.append(slots, int(slots.max()) + 1 if slots.size else 0, start)

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

    def dump(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Everything, as plain values and arrays."""
        arrays: dict[str, npt.NDArray[Any]] = {
            name: getattr(self, name) for name in ("E", "E_tick", "held", "held_tick")
        }
        arrays["break_tick"] = self.break_tick[: self.breaks]
        arrays["break_E"] = self.break_E[: self.breaks]
        arrays["break_slot"] = _owners(self.links, self.breaks)
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
        made.break_tick, made.break_E = arrays["break_tick"], arrays["break_E"]
        made.breaks = made.break_tick.size
        slots = arrays["break_slot"]
        made.links.append(slots, int(slots.max()) + 1 if slots.size else 0, 0)
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
    found, start = np.unique(regions[order], return_index=True)
    return found.astype(np.int32), np.add.reduceat(units, start) if found.size else units


@kernel
def _walk(first: Any, following: Any, owner: Any) -> None:
    for o in range(first.size):
        item = first[o]
        while item > 0:
            owner[item - 1] = o
            item = following[item - 1]


def _owners(links: Links, items: int) -> npt.NDArray[np.int64]:
    """Owner of each item."""
    owner = np.zeros(items, np.int64)
    _walk(links.first, links.next, owner)
    return owner
