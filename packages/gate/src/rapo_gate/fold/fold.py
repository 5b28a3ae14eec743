"""The fold: what attributed reports and exposures make of `G` and `H`, region by region.

No closed form is used: every tick in which something can change is the paper's step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_gate.config import GateConfig
from rapo_gate.fold.exposure import Exposure
from rapo_gate.fold.formula import numbered, params_of, rates_of
from rapo_gate.fold.kernels import Work, advance, apply_settings, serve
from rapo_gate.fold.ledger import MOST, NOTHING, ROW, UNIT, Ledger, Rows, Whole
from rapo_gate.fold.records import (
    CELL,
    COURSE,
    Change,
    Confirmation,
    Fields,
    Inputs,
    Plan,
    Records,
    Spans,
    Stops,
    grown,
)

__all__ = ["MOST", "ROW", "UNIT", "Change", "Confirmation", "Fields", "Fold", "Plan", "Rows"]

FAR = 2**62
"""A tick that does not come."""
Slots = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Shown = tuple[npt.NDArray[np.float64], Flags]


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
        self.confirmations: list[Confirmation] = []
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
        self.f = Records.empty()
        self.free = np.zeros(0, np.bool_)
        """Per slot, whether it is on the allow-list."""
        self.live: Slots = np.zeros(0, np.int32)
        """Slots that time alone changes."""
        self._counted = len(self.ledger)
        """Rows that have counted."""
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
        """Count the exposure of the tick `of` in `tick`, after everything of earlier ticks.

        `run` to `tick` must come next: it heeds the newest point of each region alone.
        """
        self.run(tick - 1)
        self.exposure.settle(of, tick, params_of(self.config), self.ledger.slot_of)

    def count(self, rows: Rows) -> None:
        """Take in rows, none of a tick that has been folded; `run` then counts them."""
        if rows.size:
            self._seat(rows["region"])
            self.ledger.append(rows, self.config.cap_source)
            self._room()

    def run(self, until: int) -> None:
        """Go on to the tick `until`; everything due by then has been taken in."""
        if until > self.tick:
            self.tick = until
            new = self.ledger.rows["region"][self._counted :]
            slots = np.union1d(self.live, self.ledger.slots_of(new)).astype(np.int32)
            work = self._work(len(self.changes) - 1, self.f, self._newest(slots))
            advance(slots, until, False, work)
            self._counted = len(self.ledger)
            self._publish(slots)

    def configure(self, config: GateConfig) -> None:
        """New settings from the next tick on."""
        everyone = np.arange(self.ledger.slots, dtype=np.int32)
        self._apply_settings(everyone, self.f, self._newest(everyone), config)
        before, after = params_of(self.config), params_of(config)
        if (before.fade, before.shrinkage) != (after.fade, after.shrinkage):
            regions = self.ledger.regions
            self.exposure.change(self.tick, before, after, regions, self.ledger.slot_of)
        self.changes.append(Change(self.tick, config))
        self._publish(everyone)

    def confirm(self, confirmations: Iterable[Confirmation]) -> None:
        """A reviewer's confirmations, given in the present tick."""
        new = list(confirmations)
        regions = np.array([c.region for c in new], np.int32)
        self._seat(regions)
        self.confirmations += new
        until = np.array([c.until for c in new], np.int64)
        held = self.f.cells["confirmed_until"]
        np.maximum.at(held, self.ledger.slot_of[regions], until)
        self._publish(self.ledger.slots_of(regions))

    def label(self, topics: Mapping[int, str | None]) -> npt.NDArray[np.int32]:
        """Give regions topics; returns those that must be folded `refold` for that."""
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

    def refold(self, regions: npt.NDArray[Any]) -> None:
        """Fold regions again from their first report: what no longer counts never did."""
        slots = self.ledger.slots_of(regions)
        self._replay(slots, self._work(0, self.f, self._inputs(slots)), self.tick)
        self._publish(slots)

    def restore(
        self, ledger: Ledger, regions: npt.NDArray[Any], confirmations: list[Confirmation]
    ) -> None:
        """Take over a ledger that was kept, the regions of its slots, and who was confirmed."""
        self.ledger, self._counted = ledger, len(ledger)
        ledger.seat(regions)
        ledger.place_pairs(0)
        start = 0
        for until, cap in self.caps():
            end = int(np.searchsorted(ledger.rows["tick"], until, "right"))
            ledger.capped(ledger.rows["rolled_back"], ledger.taken, start, end, cap)
            start = end
        self.confirmations = confirmations
        self._room()

    def caps(self) -> list[tuple[int, float]]:
        """Up to which tick which cap per reporter holds."""
        ends = [*(change.tick for change in self.changes[1:]), FAR]
        return [(e, c.config.cap_source) for e, c in zip(ends, self.changes, strict=True)]

    def without(self, rows: Flags, reports: set[int]) -> Plan:
        """The plan to roll back some reports: their rows, and those that are out already."""
        taken, regions = self.ledger.without(rows, self.caps())
        lost = [c.region for c in self.confirmations if c.report in reports]
        concerned = np.concatenate((regions, np.array(lost, np.int32)))
        return Plan(concerned, rolled_back=rows, taken=taken, reports=frozenset(reports))

    def preview(self, plan: Plan) -> Fields:
        """Fields of the regions of a plan as they would be; nothing is changed.

        Regions that were never reported are left out.
        """
        if plan.config is not None:
            everyone, f = np.arange(self.ledger.slots, dtype=np.int32), self.f.copy()
            self._apply_settings(everyone, f, self._newest(everyone), plan.config)
            return self._fields(everyone, f, plan.config)
        slots, names = self.ledger.slots_of(plan.regions), dict(self.topics)
        f = self._fresh(slots)
        for region, topic in numbered(names, plan.topics or {}).items():
            if self.ledger.slot(region) != NOTHING:
                f.cells["topic"][self.ledger.slot(region)] = topic
        work = self._work(0, f, self._inputs(slots, plan.taken, self._confirmed_by(plan)))
        if plan.free is not None:
            work = work._replace(free=np.full(self.free.size, plan.free))
        self._replay(slots, work, self.tick, names)
        return self._fields(slots, f, self.config)

    def carry_out(self, plan: Plan) -> None:
        """Change what a plan says, and fold again what that concerns."""
        if plan.config is not None:
            self.configure(plan.config)
        elif plan.confirmed:
            self.confirm(plan.confirmed)
        elif plan.topics is not None:
            self.refold(self.label(plan.topics))
        elif plan.free is not None:
            self._seat(plan.regions)
            self.free[self.ledger.slot_of[plan.regions]] = plan.free
            self.refold(plan.regions)
        elif plan.rolled_back is not None and plan.taken is not None:
            self.ledger.roll_back(plan.rolled_back, plan.taken)
            self.confirmations = self._confirmed_by(plan)
            self.refold(plan.regions)

    def _confirmed_by(self, plan: Plan) -> list[Confirmation]:
        """The confirmations that hold after a plan."""
        kept = [c for c in self.confirmations if c.report not in plan.reports]
        return [*kept, *plan.confirmed]

    def now(self, regions: npt.NDArray[Any]) -> Fields:
        """Fields of regions."""
        numbers = regions.astype(np.int32)
        return Fields(numbers, self.G[numbers], self.H[numbers], self.psi[numbers])

    def course(self, region: int, until: int | None = None) -> tuple[int, npt.NDArray[np.void]]:
        """A region from the tick of its first report on: that tick, and `COURSE` per tick."""
        end, rows = self.tick if until is None else until, self.ledger.rows_of(region)
        first = int(self.ledger.rows["tick"][rows[0]]) if rows.size else FAR
        if first > end:
            return end, np.zeros(0, COURSE)
        stops = Stops.at([0, end - first + 1], np.arange(first, end + 1))
        self.stopped(np.array([self.ledger.slot(region)], np.int32), stops)
        return first, stops.course

    def stopped(self, slots: Slots, stops: Stops) -> None:
        """Fold regions afresh and write them down at their stops; nothing else is changed."""
        work = self._work(0, self._fresh(slots), self._inputs(slots))._replace(stops=stops)
        self._replay(slots, work, int(stops.ticks.max(initial=0)))

    # --- what is served

    def conductance(self) -> Shown:
        """Psi of every region, and whether it is confirmed."""
        psi, sure = np.ones(self.G.size), np.zeros(self.G.size, np.bool_)
        everyone = np.arange(self.ledger.slots, dtype=np.int32)
        shown = np.ones(everyone.size), np.zeros(everyone.size, np.bool_)
        serve(everyone, self.tick, self.f, params_of(self.config), *shown)
        psi[self.ledger.regions], sure[self.ledger.regions] = shown
        return psi, sure

    def agreement(self, region: int) -> tuple[int, int]:
        """How many reporters, and how many kinds of signal, agree on a region now."""
        rows = self.ledger.rows[self.ledger.rows_of(region)]
        recent = rows["tick"] > self.tick - self.config.confirm_ticks
        rows = rows[recent & ~rows["bystander"] & ~rows["rolled_back"]]
        return np.unique(rows["source"]).size, np.unique(rows["signal"]).size

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
        self.f = self.f.grown(self.ledger.slots, self.ledger.pairs)
        self.free = grown(self.free, self.ledger.slots, 0)

    def _fresh(self, slots: Slots) -> Records:
        """Records to try things on; only those of `slots` are ready."""
        f = Records.empty(self.f.cells.size, self.f.pairs.size)
        f.cells["topic"][slots] = self.f.cells["topic"][slots]
        return f

    def _newest(self, slots: Slots) -> Inputs:
        """What has come for regions since they were stepped last."""
        regions = self.ledger.regions[slots]
        point_tick, point_E = self.exposure.held_tick[regions], self.exposure.held[regions]
        cells, at = self.f.cells, np.arange(slots.size)
        new = point_tick != cells["point_tick"][slots]
        new |= point_E != cells["point_E"][slots]
        nothing = np.zeros(0, np.int64)
        return Inputs(
            self.ledger.rows, self.ledger.taken, *self._rows(slots, self._counted),
            point_tick, point_E, Spans(at, at + (new & (point_tick != 0))),
            nothing, nothing, Spans(np.zeros_like(at), np.zeros_like(at)), *self._pairs(slots),
        )  # fmt: skip

    def _inputs(
        self, slots: Slots, taken: Whole | None = None,
        confirmations: Sequence[Confirmation] | None = None,
    ) -> Inputs:  # fmt: skip
        """Everything that ever came for regions."""
        rows, (owners, ticks, E) = self.ledger, self.exposure.points
        points, point_span = Spans.of(owners, slots)
        all_given = self.confirmations if confirmations is None else confirmations
        seated = [c for c in all_given if rows.slot(c.region) != NOTHING]
        confirmed, confirmed_span = Spans.of(
            np.array([rows.slot(c.region) for c in seated], np.int64), slots
        )
        when = np.array([(c.tick, c.until) for c in seated], np.int64).reshape(-1, 2)[confirmed]
        return Inputs(
            rows.rows, rows.taken if taken is None else taken, *self._rows(slots, 0),
            ticks[points], E[points], point_span, when[:, 0], when[:, 1], confirmed_span,
            *self._pairs(slots),
        )  # fmt: skip

    def _rows(self, slots: Slots, start: int) -> tuple[Whole, Spans]:
        """Rows from `start` on, by region."""
        owners = self.ledger.slot_of[self.ledger.rows["region"][start:]]
        return Spans.of(owners, slots, start)

    def _pairs(self, slots: Slots) -> tuple[Slots, Spans]:
        """Pairs with reporters, by region."""
        order, owners = self.ledger.pairs_by_slot()
        return order, Spans.within(owners, slots)

    def _work(
        self, change: int, f: Records, inputs: Inputs, names: dict[str, int] | None = None
    ) -> Work:
        """What regions are stepped with under the settings of a change; no stops."""
        config, count = self.changes[change].config, inputs.row_span.next.size
        stops = Stops.at(np.zeros(count + 1), np.zeros(0, np.int64))
        rates = rates_of(config, self.topics if names is None else names)
        return Work(f, inputs, self.free, rates, params_of(config), stops)

    def _replay(
        self, slots: Slots, work: Work, until: int, names: dict[str, int] | None = None
    ) -> None:
        """Step regions from the beginning through all changes of settings."""
        for i, (_, config) in enumerate(self.changes):
            last = i + 1 == len(self.changes)
            end = until if last else min(until, self.changes[i + 1].tick)
            rates = rates_of(config, self.topics if names is None else names)
            work = work._replace(rates=rates, p=params_of(config))
            advance(slots, end, i == 0, work)
            if last or self.changes[i + 1].tick > until:
                return
            after = params_of(self.changes[i + 1].config)
            apply_settings(slots, end, self._forgotten(i, end), after, work)

    def _apply_settings(self, slots: Slots, f: Records, inputs: Inputs, config: GateConfig) -> None:
        """Get regions ready for settings that come into force after the present tick."""
        last = len(self.changes) - 1
        work = self._work(last, f, inputs)
        apply_settings(slots, self.tick, self._forgotten(last, self.tick), params_of(config), work)

    def _forgotten(self, change: int, tick: int) -> int:
        """Up to which tick agreement has expired in `tick`, when settings after a change end."""
        begun, config = self.changes[change]
        return tick - config.confirm_ticks if begun < tick else 0

    def _fields(self, slots: Slots, f: Records, config: GateConfig) -> Fields:
        psi, sure = np.ones(slots.size), np.zeros(slots.size, np.bool_)
        serve(slots, self.tick, f, params_of(config), psi, sure)
        return Fields(self.ledger.regions[slots], f.cells["G"][slots], f.cells["H"][slots], psi)

    def _publish(self, slots: Slots) -> None:
        """Show what became of regions."""
        regions, G, H, psi = self._fields(slots, self.f, self.config)
        self.G[regions], self.H[regions], self.psi[regions] = G, H, psi
        self.live = np.flatnonzero(self.f.cells["live"][: self.ledger.slots]).astype(np.int32)
