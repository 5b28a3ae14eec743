"""The fold: what attributed reports and exposures make of `G` and `H`, region by region.

No closed form is used: every tick in which something can change is the paper's step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_gate.cells import (
    CELL,
    COURSE,
    PAIR,
    Book,
    Cells,
    Change,
    Fields,
    Links,
    Stops,
    Vouch,
    grown,
    window_at,
)
from rapo_gate.config import GateConfig
from rapo_gate.exposure import Exposure
from rapo_gate.law import numbered, params_of, rates_of
from rapo_gate.ledger import MOST, NOTHING, ROW, UNIT, Ledger, Rows, Whole
from rapo_gate.steps import advance, forgets, serve, wake

__all__ = ["MOST", "ROW", "UNIT", "Change", "Fields", "Fold", "Rows", "Vouch"]

FAR = 2**62
"""A tick that does not come."""
Slots = npt.NDArray[np.int32]
Shown = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]


class Fold:
    """The fields of all regions at a tick, and what is needed to go on from there, or again.

    Arrays have one element per region unless said otherwise; there may be more than regions.

    Args:
        tick: at which nothing has been reported.
        config: settings from there on.
        ledger: rows that are all there already, to be asked for with `stopped`.
    """

    def __init__(self, tick: int, config: GateConfig, ledger: Ledger | None = None) -> None:
        self.start = self.tick = tick
        self.changes = [Change(tick, config)]
        self.vouches: list[Vouch] = []
        self.ledger = Ledger() if ledger is None else ledger
        self.exposure = Exposure()
        self.G = np.zeros(0)
        self.H = np.zeros(0)
        self.psi = np.ones(0)
        """Conductance by the fields alone."""
        self.topic = np.zeros(0, np.int32)
        """Counts from 1; 0 for none."""
        self.topics: dict[str, int] = {}
        """Number of each topic that a region ever had."""
        self.f = Cells(np.zeros(0, CELL), np.zeros(0, PAIR), np.zeros(0, np.int64))
        self.free = np.zeros(0, np.bool_)
        """Per slot, whether it is on the allow-list."""
        self.live: Slots = np.zeros(0, np.int32)
        """Slots that time alone changes."""
        self._new: list[Slots] = []
        """Slots with rows that have not counted."""
        self._forget: dict[int, list[Slots]] = {}
        """By tick, slots whose agreement expires then; they may be there in vain."""
        self._vouched = Links(), np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._room()

    @property
    def config(self) -> GateConfig:
        """Settings in force."""
        return self.changes[-1].config

    def cell(self, region: int) -> Any:
        """Everything about a region; zeros if it was never reported."""
        slot = self.ledger.slot(region)
        return self.f.cells[slot] if slot != NOTHING else np.zeros((), CELL)

    def grow(self, regions: int) -> None:
        """Make room for regions; new ones were never reported."""
        self.G, self.H = grown(self.G, regions, 0), grown(self.H, regions, 0)
        self.psi, self.topic = grown(self.psi, regions, 1), grown(self.topic, regions, 0)
        self.exposure.grow(regions)

    # --- what happens

    def expose(self, of: int, tick: int) -> None:
        """Count the exposure of the tick `of` in `tick`."""
        self.exposure.settle(of, tick, params_of(self.config), self.ledger.slot_of)

    def count(self, rows: Rows) -> None:
        """Take in rows, none of a tick that has been folded; `run` then counts them."""
        if rows.size:
            self._seat(rows["region"])
            self.ledger.append(rows, self.config.cap_source)
            self._room()
            self._new.append(self.ledger.slots_of(rows["region"]))

    def run(self, until: int) -> None:
        """Go on to the tick `until`; everything due by then has been taken in."""
        if until > self.tick:
            over = [s for t in list(self._forget) if t <= until for s in self._forget.pop(t)]
            slots = np.unique(np.concatenate([self.live, *self._new, *over]))
            self._new = []
            self.tick = until
            self._go_on(slots)

    def configure(self, config: GateConfig) -> None:
        """New settings from the next tick on."""
        before, after = params_of(self.config), params_of(config)
        if (before.fade, before.shrinkage) != (after.fade, after.shrinkage):
            regions = self.ledger.regions
            self.exposure.change(self.tick, before, after, regions, self.ledger.slot_of)
        everyone = np.arange(self.ledger.slots, dtype=np.int32)
        wake(everyone, self.tick, self.f, self._book(), before)
        self.changes.append(Change(self.tick, config))
        self._publish(everyone)

    def vouch(self, vouches: Iterable[Vouch]) -> None:
        """A reviewer's word, given in the present tick."""
        new = list(vouches)
        regions = np.array([v.region for v in new], np.int32)
        self._seat(regions)
        self.vouches += new
        self._vouched = self._linked(self.vouches)
        self._go_on(self.ledger.slots_of(regions))

    def set_free(self, region: int, free: bool) -> None:
        """Put a region on the allow-list, or take it off; `again` then folds it."""
        self._seat(np.array([region], np.int32))
        self.free[self.ledger.slot(region)] = free

    def label(self, topics: dict[int, str | None]) -> npt.NDArray[np.int32]:
        """Give regions topics; returns those that must be folded `again` for that."""
        numbers = numbered(self.topics, topics)
        rates = [rates_of(change.config, self.topics) for change in self.changes]
        moved = []
        for region, now in numbers.items():
            before, slot = int(self.topic[region]), self.ledger.slot(region)
            self.topic[region] = now
            if slot != NOTHING:
                self.f.cells["topic"][slot] = now
                moved += [region] if any(r[before] != r[now] for r in rates) else []
        return np.array(moved, np.int32)

    # --- the same again

    def again(self, regions: npt.NDArray[Any]) -> None:
        """Fold regions again from their first report: what no longer counts never did."""
        slots = self.ledger.slots_of(regions)
        self._replay(slots, self.f, self._book(), self.free, self.tick)
        self._publish(slots)

    def restore(self, ledger: Ledger, regions: npt.NDArray[Any], vouches: list[Vouch]) -> None:
        """Take over a ledger that was kept, the regions of its slots, and whose word holds."""
        self.ledger = ledger
        ledger.seat(regions)
        ledger.link(0)
        start = 0
        for until, cap in self.caps():
            end = int(np.searchsorted(ledger.rows["tick"], until, "right"))
            ledger.capped(ledger.rows["rolled_back"], ledger.taken, start, end, cap)
            start = end
        self.vouches, self._vouched = vouches, self._linked(vouches)
        self._room()
        self._remind(np.arange(ledger.slots, dtype=np.int32))

    def caps(self) -> list[tuple[int, float]]:
        """Up to which tick which cap per reporter holds."""
        ends = [*(change.tick for change in self.changes[1:]), FAR]
        return [(e, c.config.cap_source) for e, c in zip(ends, self.changes, strict=True)]

    def drop(self, gone: set[int]) -> npt.NDArray[np.int32]:
        """Forget the word given for reports that are gone; returns the regions to fold `again`."""
        stays = [v.report not in gone for v in self.vouches]
        dropped = [v.region for v in self.vouches if v.report in gone]
        if dropped:
            # cells know by its number what they have heeded, and the numbers after a gap move up
            self.f.cells["vouch"] = np.cumsum([0, *stays])[self.f.cells["vouch"]]
            self.vouches = list(compress(self.vouches, stays))
            self._vouched = self._linked(self.vouches)
        return np.array(dropped, np.int32)

    def would_be(
        self,
        regions: npt.NDArray[Any],
        *,
        taken: Whole | None = None,
        vouches: Sequence[Vouch] | None = None,
        free: bool | None = None,
        topics: dict[int, str | None] | None = None,
    ) -> Fields:
        """Fields of regions as they would be; nothing is changed.

        Args:
            regions: which; those that were never reported are left out.
            taken: what would count of each row.
            vouches: whose word would hold.
            free: whether they would be on the allow-list.
            topics: their topics by region.
        """
        slots, names = self.ledger.slots_of(regions), dict(self.topics)
        f = self._fresh(slots)
        for region, topic in numbered(names, topics or {}).items():
            if self.ledger.slot(region) != NOTHING:
                f.cells["topic"][self.ledger.slot(region)] = topic
        kept = self.free if free is None else np.full(self.free.size, free)
        self._replay(slots, f, self._book(taken, vouches), kept, self.tick, names=names)
        return self._fields(slots, f, self.config)

    def under(self, config: GateConfig) -> Fields:
        """Fields of every reported region as other settings would show them now."""
        return self._fields(np.arange(self.ledger.slots, dtype=np.int32), self.f, config)

    def now(self, regions: npt.NDArray[Any]) -> Fields:
        """Fields of regions."""
        given = regions.astype(np.int32)
        return Fields(given, self.G[given], self.H[given], self.psi[given])

    def course(self, region: int, until: int | None = None) -> tuple[int, npt.NDArray[np.void]]:
        """A region from the tick of its first report on: that tick, and `COURSE` per tick."""
        end, slot = self.tick if until is None else until, self.ledger.slot(region)
        item = 0 if slot == NOTHING else int(self.ledger.links.first[slot])
        first = int(self.ledger.rows["tick"][item - 1]) if item else FAR
        if first > end:
            return end, np.zeros(0, COURSE)
        stops = Stops.at([0, end - first + 1], np.arange(first, end + 1))
        self.stopped(np.array([slot], np.int32), stops)
        return first, stops.course

    def stopped(self, slots: Slots, stops: Stops) -> None:
        """Fold cells afresh and write them down at their stops; nothing else is changed."""
        until = int(stops.ticks.max(initial=0))
        self._replay(slots, self._fresh(slots), self._book(), self.free, until, stops)

    # --- what is served

    def conductance(self, config: GateConfig | None = None) -> Shown:
        """Psi of every region, and whether it is confirmed, by the settings in force or others."""
        psi, sure = np.ones(self.G.size), np.zeros(self.G.size, np.bool_)
        everyone = np.arange(self.ledger.slots, dtype=np.int32)
        found = np.ones(everyone.size), np.zeros(everyone.size, np.bool_)
        serve(everyone, self.tick, self.f, params_of(config or self.config), *found)
        psi[self.ledger.regions], sure[self.ledger.regions] = found
        return psi, sure

    # --- how

    def _seat(self, regions: npt.NDArray[Any]) -> None:
        """Give regions a slot, from where on their exposures are kept."""
        new = self.ledger.seat(regions)
        self.exposure.follow(self.ledger.regions[new], self.ledger.slot_of)
        if new.size:
            self._room()
            self.f.cells["topic"][new] = self.topic[self.ledger.regions[new]]

    def _room(self) -> None:
        """Make room for slots and pairs."""
        slots, f = self.ledger.slots, self.f
        sizes = (slots, *self.ledger.pairs)
        self.f = Cells(*(grown(array, n, 0) for array, n in zip(f, sizes, strict=True)))
        self.free = grown(self.free, slots, 0)
        self.ledger.links.room(slots, 0)
        self.ledger.pair_links.room(slots, 0)
        self.exposure.links.room(slots, 0)
        self._vouched[0].room(slots, 0)

    def _fresh(self, slots: Slots) -> Cells:
        """Cells to try things on; only those of `slots` are ready."""
        cells, pairs, says = self.f
        f = Cells(np.zeros(cells.size, CELL), np.zeros(pairs.size, PAIR), np.zeros_like(says))
        f.cells["topic"][slots] = self.f.cells["topic"][slots]
        return f

    def _linked(self, vouches: Sequence[Vouch]) -> tuple[Links, Whole, Whole]:
        """Confirmations of regions that have a slot, linked."""
        links, seated = Links(), [v for v in vouches if self.ledger.slot(v.region) != NOTHING]
        slots = np.array([self.ledger.slot(v.region) for v in seated], np.int64)
        links.append(slots, self.ledger.slots, 0)
        tick = np.array([v.tick for v in seated], np.int64)
        return links, tick, np.array([v.until for v in seated], np.int64)

    def _book(self, taken: Whole | None = None, vouches: Sequence[Vouch] | None = None) -> Book:
        rows, breaks = self.ledger, self.exposure
        links, tick, until = self._vouched if vouches is None else self._linked(vouches)
        return Book(
            rows.rows, rows.taken if taken is None else taken, rows.links.first, rows.links.next,
            rows.pair_links.first, rows.pair_links.next, breaks.break_tick, breaks.break_E,
            breaks.links.first, breaks.links.next, tick, until, links.first, links.next,
        )  # fmt: skip

    def _go_on(self, slots: Slots) -> None:
        self._advance(slots, self.tick, self.f, self._book(), self.free, len(self.changes) - 1)
        self._publish(slots)

    def _advance(
        self, slots: Slots, until: int, f: Cells, book: Book, free: npt.NDArray[np.bool_],
        change: int, stops: Stops | None = None, names: dict[str, int] | None = None,
        anew: bool = False,
    ) -> None:  # fmt: skip
        """Step cells under the settings of a change."""
        config = self.changes[change].config
        stops = stops or Stops.at(np.zeros(slots.size + 1), np.zeros(0, np.int64))
        rates = rates_of(config, self.topics if names is None else names)
        p = params_of(config)._replace(window=window_at(self.changes, until))
        advance(slots, until, f, book, free, rates, p, stops, anew)

    def _replay(
        self, slots: Slots, f: Cells, book: Book, free: npt.NDArray[np.bool_], until: int,
        stops: Stops | None = None, names: dict[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Step cells from the beginning through all changes of settings."""
        for i, (_, config) in enumerate(self.changes):
            last = i + 1 == len(self.changes)
            end = until if last else min(until, self.changes[i + 1].tick)
            self._advance(slots, end, f, book, free, i, stops, names, anew=i == 0)
            if last or self.changes[i + 1].tick > until:
                return
            wake(slots, end, f, book, params_of(config))

    def _fields(self, slots: Slots, f: Cells, config: GateConfig) -> Fields:
        psi, sure = np.ones(slots.size), np.zeros(slots.size, np.bool_)
        serve(slots, self.tick, f, params_of(config), psi, sure)
        return Fields(self.ledger.regions[slots], f.cells["G"][slots], f.cells["H"][slots], psi)

    def _publish(self, slots: Slots) -> None:
        """Show what became of cells."""
        regions, G, H, psi = self._fields(slots, self.f, self.config)
        self.G[regions], self.H[regions], self.psi[regions] = G, H, psi
        self.live = np.flatnonzero(self.f.cells["live"][: self.ledger.slots]).astype(np.int32)
        self._remind(slots)

    def _remind(self, slots: Slots) -> None:
        """Note when agreement on cells expires."""
        ticks = np.zeros(slots.size, np.int64)
        forgets(slots, self.f, self._book(), self.config.confirm_ticks, ticks)
        for tick in np.unique(ticks[ticks > 0]).tolist():
            self._forget.setdefault(tick, []).append(slots[ticks == tick])
