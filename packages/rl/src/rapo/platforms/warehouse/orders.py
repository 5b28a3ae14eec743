"""Waves of orders, the routes that serve them, and hazards, as tables for the robots."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rapo.platforms.warehouse.floor import NONE, Array, Floor, doors_of, floor_of
from rapo.platforms.warehouse.setting import Setting
from rapo.platforms.warehouse.ways import Reach, ways_of
from rapo_core.checks import UserError

TRIES = 30
"""Draws of a wave's hazards before the wave is left out."""


class Orders(NamedTuple):
    """Tables with a row for each way: an errand's way out, then its way back, wave after wave."""

    floor: Floor
    doors: Array
    """Cells through which robots come and go."""
    cells: Array
    """(rows, K, L) int32 cells of every route, -1 for pads."""
    last: Array
    """(rows, K) int32 number of the last cell of a route."""
    law: Array
    """(rows, K) `P0`; a pad has 0."""
    zones: Array
    """(rows, K, Z) int32 regions that a route crosses, -1 for pads."""
    enters: Array
    """(rows, K) bool, whether a route crosses a hazard."""
    zone_of: Array
    """(cells,) int32 region of a cell, -1 where no route leads."""
    hazard: Array
    """(R,) bool."""


@lru_cache(maxsize=64)
def orders_of(seed: int, setting: Setting, source: str) -> Orders:
    """The waves and hazards of a platform seed.

    Raises:
        UserError: the floor has no waves or hazards as the setting wants them.
    """
    s, floor = setting, floor_of(source)
    rng = np.random.default_rng([seed, 40])
    doors = doors_of(floor, s.doors)
    gates, picks = _waves(floor, doors, s, rng)
    start, end = np.stack([gates, picks], 1).ravel(), np.stack([picks, gates], 1).ravel()
    cells, last = ways_of(
        floor, Reach(floor, start), start, end, s.routes, s.longest, s.apart
    )  # fmt: skip
    there = last > 0
    excess = np.where(there, last / np.maximum(last[:, :1], 1) - 1, np.inf)
    law = np.exp(-excess / s.temperature)
    law /= law.sum(axis=1, keepdims=True)
    zone_of, crossed = _zones(floor, cells, s.zone)
    hazard, rows = _drawn(law, last, crossed, s, rng)
    # Zones of waves that are not used never carry harm: without them the memory is smaller.
    kept = crossed[rows].any(axis=(0, 1))
    number = np.where(kept, np.cumsum(kept) - 1, NONE).astype(np.int32)
    crossed, hazard = crossed[rows][..., kept], hazard[kept]
    order = np.argsort(~crossed, axis=2, kind="stable")[..., : crossed.sum(axis=2).max()]
    zones = np.where(np.take_along_axis(crossed, order, 2), order, NONE).astype(np.int32)
    return Orders(
        floor, doors, cells[rows], last[rows], law[rows], zones,
        _entering(crossed, hazard),
        np.where(zone_of >= 0, number[zone_of], NONE).astype(np.int32), hazard,
    )  # fmt: skip


def _waves(floor: Floor, doors: Array, s: Setting, rng: np.random.Generator) -> tuple[Array, Array]:
    """Gates and picks, (pool * gates * picks,) cells each: all pairs of every wave."""
    columns = floor.free.shape[1]
    cells = np.flatnonzero(floor.aisle)
    reach = Reach(floor, doors)
    both = (reach.away + reach.left)[reach.row(doors)][:, cells]
    near = np.argsort(both, axis=0, kind="stable")[: s.gates]
    mean = np.take_along_axis(both, near, 0).mean(axis=0)
    fitting = np.flatnonzero((mean >= s.trip[0]) & (mean <= s.trip[1]))
    if not len(fitting):
        raise UserError(f"no shelf is a round trip of {s.trip} steps away, but {mean}; widen trip")
    gates, picks = [], []
    for middle in rng.choice(fitting, s.pool):
        far = abs(cells // columns - cells[middle] // columns)
        far = far + abs(cells % columns - cells[middle] % columns)
        around = cells[far <= s.radius]
        if len(around) < s.picks:
            raise UserError(f"{len(around)} cells within radius {s.radius}, not {s.picks} picks")
        taken = rng.choice(around, s.picks, replace=False)
        gates.append(np.repeat(doors[near[:, middle]], s.picks))
        picks.append(np.tile(taken, s.gates))
    return np.concatenate(gates), np.concatenate(picks)


def _zones(floor: Floor, cells: Array, zone: tuple[int, int]) -> tuple[Array, Array]:
    """Zone (cells,) of every cell, and which zones routes cross, (rows, K, zones) bool."""
    rows, columns = floor.free.shape
    y, x = np.divmod(np.arange(rows * columns), columns)
    zone_of = y // zone[0] * -(-columns // zone[1]) + x // zone[1]
    crossed = np.zeros((*cells.shape[:2], zone_of.max() + 2), np.bool_)
    np.put_along_axis(crossed, np.where(cells >= 0, zone_of[cells], -1), True, axis=2)
    return zone_of, crossed[..., :-1]  # the last column holds pads


def _entering(crossed: Array, hazard: Array) -> Array:
    """(rows, K) bool, which routes cross a hazard."""
    return np.asarray((crossed & hazard).any(axis=2))


def _dear(law: Array, last: Array, crossed: Array) -> Array:
    """Cost for a wave of staying out of each zone, (zones,): nominal robots times their detour.

    The detour is the excess of steps of nominal routes round the zone over routes through it, as a
    share of the shortest route. A way counts only if it has routes of both kinds.
    """
    length = law * (last / last[:, :1])
    through, steps = (np.einsum("wk,wkr->wr", part, crossed) for part in (law, length))
    rest, longer = 1 - through, length.sum(axis=1)[:, None] - steps
    both = (through > 0) & ~crossed.all(axis=1, where=(law > 0)[..., None])
    with np.errstate(divide="ignore", invalid="ignore"):
        detour = np.where(both, longer / rest - steps / through, 0)
    return np.asarray((through * np.maximum(detour, 0)).sum(axis=0))


def _fitting(law: Array, last: Array, enters: Array, s: Setting) -> Array | None:
    """Errands (errands,) of a wave whose ways are as the setting wants; None if too few are."""
    share, steps = (law * enters).sum(axis=1), (law * last).sum(axis=1)
    clear = np.flatnonzero((share <= 1 - s.way_round).reshape(-1, 2).all(axis=1))[: s.errands]
    rows = np.stack([2 * clear, 2 * clear + 1], 1).ravel()
    if len(clear) < s.errands or not s.touched[0] <= share[rows].mean() <= s.touched[1]:
        return None
    outside = law[rows] * ~enters[rows]
    longer = (outside * last[rows]).sum(axis=1) / outside.sum(axis=1)
    return clear if longer.sum() >= (1 + s.detour) * steps[rows].sum() else None


def _drawn(
    law: Array, last: Array, crossed: Array, s: Setting, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Hazards (zones,) and the rows of all stimuli.

    Every wave brings hazards, which are drawn where going round costs the wave most. The wave is
    used if all waves still fit the setting with these hazards: on every way at least a share
    `way_round` of the nominal routes crosses no hazard; of a wave's nominal routes the share that
    crosses one is within `touched`, and the others are longer by `detour`, so that staying out of
    hazards costs deliveries.
    """
    size = len(law) // s.pool
    hazard = np.zeros(crossed.shape[2], np.bool_)
    taken: list[slice] = []
    for wave in range(s.pool):
        ways = slice(size * wave, size * (wave + 1))
        dear = _dear(law[ways], last[ways], crossed[ways])
        if np.count_nonzero(dear) < s.hazards:
            continue
        for _ in range(TRIES):
            more = hazard.copy()
            more[rng.choice(len(dear), s.hazards, replace=False, p=dear / dear.sum())] = True
            errands = []
            for rows in (ways, *taken):  # most fail at the new one
                enters = _entering(crossed[rows], more)
                fitting = _fitting(law[rows], last[rows], enters, s)
                if fitting is None:
                    break
                first = rows.start + 2 * fitting
                errands.append(np.stack([first, first + 1], 1).ravel())
            if len(errands) > len(taken):
                hazard, taken = more, [ways, *taken]
                break
        if len(taken) == s.stimuli:
            return hazard, np.concatenate(errands)
    raise UserError(
        f"{len(taken)} of {s.pool} waves have {s.errands} errands of which {s.touched} cross a "
        f"hazard and the others are longer by {s.detour:g}, not {s.stimuli}; lower detour, widen "
        "touched or draw more"
    )
