"""Fields folded in shards by region are those of one fold, bit for bit.

A reporter's cap is over all regions, so whoever routes its reports applies it: shards get amounts
that are capped already. Everything else about a region is in its own rows and exposures.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("rapo_gate.fold.exposure", reason="needs the fold region by region")

from rapo_core.params import FieldParams
from rapo_gate import GateConfig
from rapo_gate.fold.fold import Fold
from rapo_gate.fold.ledger import ROW, UNIT

REGIONS, SOURCES, TICKS = 60, 25, 120
CONFIG = GateConfig(
    D=2,
    cap_source=1.5,
    min_sources=2,
    half_life=10_080.0,
    z=1.0,
    params=FieldParams(alpha=2.0, eta=0.2, tau=0.05),
)
NO_CAP = replace(CONFIG, cap_source=1e6)
"""Of a shard: its rows are capped."""

Numbers = npt.NDArray[np.int64]
Tick = tuple[Numbers, Numbers, npt.NDArray[np.void]]
"""Regions that were exposed, how much, and the rows of the tick."""


def history(seed: int) -> list[Tick]:
    """A stream with busy regions and loud reporters, so that caps and agreement both bind."""
    rng, position, ticks = np.random.default_rng(seed), 0, []
    for tick in range(1, TICKS + 1):
        shown = rng.choice(REGIONS, 30, replace=False)
        units = rng.integers(1, 40, shown.size) * UNIT
        rows = np.zeros(rng.integers(0, 40), ROW)
        rows["tick"], rows["at"] = tick, 60.0 * tick
        rows["report"] = position + np.arange(rows.size)
        rows["amount"] = rng.integers(1, UNIT, rows.size)
        rows["region"] = rng.geometric(0.08, rows.size) % REGIONS
        rows["source"] = rng.geometric(0.2, rows.size) % SOURCES
        rows["signal"] = rng.integers(0, 3, rows.size)
        rows["bystander"] = rng.random(rows.size) < 0.1
        position += rows.size
        ticks.append((shown, units, rows))
    return ticks


def capped(rows: npt.NDArray[np.void], cap: float) -> npt.NDArray[np.void]:
    """What the router of the reporters sends on: rows of one tick, after the cap per reporter."""
    total = np.zeros(SOURCES, np.int64)
    np.add.at(total, rows["source"], rows["amount"])
    over = total[rows["source"]] > cap * UNIT
    sent = rows.copy()
    scaled = np.floor(rows["amount"] * (cap * UNIT) / np.maximum(total[rows["source"]], 1))
    sent["amount"] = np.where(over, scaled.astype(np.int64), rows["amount"])
    return sent


def folded(ticks: list[Tick], config: GateConfig, regions: Numbers) -> Any:
    """A fold that knows some regions alone, by numbers of its own."""
    own = np.full(REGIONS, -1, np.int64)
    own[regions] = np.arange(regions.size)
    fold = Fold(0, config)
    fold.grow(regions.size)
    for tick, (shown, units, rows) in enumerate(ticks, 1):
        mine = own[shown] >= 0
        fold.exposure.add(tick, own[shown[mine]].astype(np.int32), units[mine])
        fold.expose(tick, tick)
        kept = rows[own[rows["region"]] >= 0].copy()
        kept["region"] = own[kept["region"]]
        fold.count(kept)
        fold.run(tick)
    return fold


@pytest.mark.parametrize("shards", [1, 2, 8])
@pytest.mark.parametrize("seed", [0, 1])
def test_shards_give_the_fields_of_one_fold(shards: int, seed: int) -> None:
    ticks = history(seed)
    whole = folded(ticks, CONFIG, np.arange(REGIONS))
    assert (whole.G > 0).sum() > 20 and (whole.H > 0).sum() > 3
    sent = [(shown, units, capped(rows, CONFIG.cap_source)) for shown, units, rows in ticks]
    changed = sum(
        int((s[2]["amount"] != t[2]["amount"]).sum()) for s, t in zip(sent, ticks, strict=True)
    )
    assert changed > 100  # or the router had nothing to do
    order = np.random.default_rng(seed).permutation(REGIONS)
    for shard in range(shards):
        regions = order[shard::shards]
        part = folded(sent, NO_CAP, regions)
        for name in ("G", "H", "psi"):
            wanted, found = getattr(whole, name)[regions], getattr(part, name)[: regions.size]
            assert found.tobytes() == wanted.tobytes(), name


def test_without_the_router_the_cap_is_lost() -> None:
    ticks = history(0)
    whole = folded(ticks, CONFIG, np.arange(REGIONS))
    alone = folded(ticks, CONFIG, np.arange(0, REGIONS, 8))
    assert (alone.G[: alone.G.size] != whole.G[::8][: alone.G.size]).any()
