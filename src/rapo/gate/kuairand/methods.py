"""Three ways to turn past hates into down-weights: the gate, a hate rate, route-flap damping.

Each is a function from a stream and its settings to the down-weight `1 - psi` of every row, (n,),
in [0, 1 - FLOOR]. A row is weighted by what was reported at least `DELAY` hours before it: never by
itself, nor by anything later. A region that nobody reported is never held back: the likes of this
slice are of videos with many likes and the hates of any, so "not seen before" alone would tell most
hates, and would tell nothing about harm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.params import FieldParams
from rapo.gate.config import GateConfig
from rapo.gate.fold import ROW, UNIT, Fold, Rows
from rapo.gate.kuairand.data import DELAY, GRAINS, HOUR, Grain, Stream

FLOOR = 0.1
"""psi of what a method holds back fully; the same for all, the paper's psi_min."""
DAY = 86400.0

Weights = npt.NDArray[np.float64]
Setting = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Method:
    """A way to weight rows, and the settings it may be tuned over."""

    name: str
    weigh: Callable[[Stream, npt.NDArray[np.int64], Setting], Weights]
    """(stream, region of each row, setting) -> down-weights."""
    grid: tuple[Setting, ...]


# --- the gate


def gate_config(setting: Setting) -> GateConfig:
    """Settings of a gate; its guardrails stay as they come, a week for agreement."""
    params = FieldParams(
        lam=setting["lam"], tau=setting["tau"], eta=setting["eta"], w_G=setting["w_G"],
        psi_min=FLOOR,
    )  # fmt: skip
    hours = setting["hours"]
    week = 7 * 24 // hours
    return GateConfig(
        params=params, tick_seconds=hours * HOUR, D=delay_ticks(setting), D_max=week,
        confirm_ticks=week, half_life=float(week), shrinkage=setting["prior"],
    )  # fmt: skip


def delay_ticks(setting: Setting) -> int:
    """`DELAY` in ticks, rounded up so that the last row of a tick waits that long too."""
    return DELAY // int(setting["hours"]) + 1


def weigh_by_gate(stream: Stream, region: npt.NDArray[np.int64], setting: Setting) -> Weights:
    """The gate's own fold, without log and decisions; `live` has those and must agree."""
    config = gate_config(setting)
    names, number = np.unique(region, return_inverse=True)
    harm = (setting["harm"], setting["harm"] * setting["skip"])
    tick = stream.ticks(setting["hours"])
    rows = _rows(stream, tick, number, harm, delay_ticks(setting))
    fold = Fold(int(tick[0]) - 1, config)
    fold.grow(names.size)
    weight = np.zeros(len(stream))
    starts = np.flatnonzero(np.diff(tick, prepend=tick[0] - 1)).tolist()
    pieces = list(zip(starts, [*starts[1:], tick.size], strict=True))
    waiting = iter(pieces)
    counted = next(waiting)
    for start, end in pieces:
        now = int(tick[start])
        while int(tick[counted[0]]) + config.D <= now:
            then = int(tick[counted[0]])
            fold.expose(then, then + config.D)
            fold.count(rows[rows["tick"] == then + config.D])
            counted = next(waiting)
        fold.run(now)
        weight[start:end] = 1 - fold.psi[number[start:end]]
        regions = number[start:end].astype(np.int32)
        fold.exposure.add(now, regions, np.full(regions.size, UNIT))
    return weight


def _rows(
    stream: Stream,
    tick: npt.NDArray[np.int64],
    number: npt.NDArray[Any],
    harms: tuple[float, float],
    delay: int,
) -> Rows:
    """The reports of a stream as the gate would book them."""
    user = np.unique(stream.user, return_inverse=True)[1]
    parts = []
    for signal, marked in enumerate((stream.hated, stream.skipped)):
        rows = np.zeros(int(marked.sum()), ROW)
        rows["tick"] = tick[marked] + delay
        rows["amount"] = np.rint(harms[signal] * UNIT)
        rows["region"], rows["source"], rows["signal"] = number[marked], user[marked], signal
        parts.append(rows)
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows["tick"], kind="stable")]
    return rows[rows["amount"] > 0]


# --- hate rate


def weigh_by_rate(stream: Stream, region: npt.NDArray[np.int64], setting: Setting) -> Weights:
    """Hates per exposure so far, shrunk to the rate of all; held back above a multiple of that.

    `at` is the multiple; None weighs by how far the rate is above that of all.
    """
    names, number = np.unique(region, return_inverse=True)
    tick = stream.ticks() - stream.ticks()[0]
    bad = stream.hated + setting["skip"] * stream.skipped
    reported, seen = np.zeros(names.size), np.zeros(names.size)
    starts = np.flatnonzero(np.diff(tick, prepend=-1))
    ends = [*starts[1:].tolist(), tick.size]
    known = 0  # rows whose reports have arrived
    weight = np.zeros(len(stream))
    for start, end in zip(starts.tolist(), ends, strict=True):
        upto = int(np.searchsorted(tick, tick[start] - DELAY, side="left"))
        np.add.at(reported, number[known:upto], bad[known:upto])
        np.add.at(seen, number[known:upto], 1.0)
        known = upto
        if not reported.any():
            continue
        overall = reported.sum() / seen.sum()
        prior = setting["prior"]
        ratio = (reported + prior * overall) / (seen + prior) / overall
        mine = ratio[number[start:end]]
        at = setting["at"]
        held = 1 - 1 / np.maximum(mine, 1) if at is None else mine >= at
        weight[start:end] = (1 - FLOOR) * held * (reported[number[start:end]] > 0)
    return weight


# --- route-flap damping

FLAP, SUPPRESS, REUSE = 1000.0, 6000.0, 750.0
"""Penalty of a withdrawal, and where suppression begins (RFC 7196 asks for at least 6000) and
ends."""
HALVINGS = 4
"""Longest suppression in half-lives: 60 of 15 minutes; so a penalty is at most 750 * 2^4."""


def weigh_by_damping(stream: Stream, region: npt.NDArray[np.int64], setting: Setting) -> Weights:
    """A hate is a withdrawal of its region; a region that flaps is held back until it is quiet.

    `half_life` in seconds is 900 in RFC 7196, for routes that flap within minutes; the thresholds
    stay as they are, whatever it is.
    """
    half_life, most = setting["half_life"], REUSE * 2**HALVINGS
    marked = np.flatnonzero(stream.hated | ((setting["skip"] > 0) & stream.skipped))
    flaps = FLAP * (stream.hated + setting["skip"] * stream.skipped)[marked]
    arrivals = stream.time[marked] + DELAY * HOUR
    state: dict[int, tuple[float, float, bool]] = {}  # region: when, penalty, suppressed

    def look(name: int, now: float) -> tuple[float, bool]:
        then, penalty, suppressed = state.get(name, (now, 0.0, False))
        penalty *= 2.0 ** (-(now - then) / half_life)
        return penalty, suppressed and penalty >= REUSE

    weight = np.zeros(len(stream))
    names, times = region.tolist(), stream.time.tolist()
    at = 0
    for i, now in enumerate(times):
        while at < marked.size and arrivals[at] <= now:
            name, when = names[marked[at]], float(arrivals[at])
            penalty, suppressed = look(name, when)
            penalty = min(penalty + float(flaps[at]), most)
            state[name] = (when, penalty, suppressed or penalty > SUPPRESS)
            at += 1
        if names[i] in state and look(names[i], now)[1]:
            weight[i] = 1 - FLOOR
    return weight


def _grid(**choices: tuple[Any, ...]) -> tuple[Setting, ...]:
    return tuple(dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


METHODS = (
    Method("gate", weigh_by_gate, _grid(
        grain=GRAINS, hours=(1, 6), harm=(0.1, 0.3), skip=(0.1, 0.5), lam=(0.1,),
        tau=(0.15, 0.3, 0.6), eta=(0.05, 0.5), w_G=(0.1, 1.0), prior=(10.0,),
    )),
    Method("hate rate", weigh_by_rate, _grid(
        grain=GRAINS, at=(1.0, 1.25, 1.5, 2.0, 3.0, 5.0, None), prior=(2.0, 10.0, 50.0),
        skip=(0.0, 0.1, 0.5),
    )),
    Method("flap damping", weigh_by_damping, _grid(
        grain=GRAINS, half_life=(900.0, 3600.0, 6 * 3600.0, DAY, 4 * DAY), skip=(0.0, 0.5),
    )),
    Method("flap damping, 15 min", weigh_by_damping, _grid(
        grain=GRAINS, half_life=(900.0,), skip=(0.0, 0.5),
    )),
)  # fmt: skip
"""The gate first, then its rivals; the last one with the RFC's own half-life."""


def weigh(method: Method, stream: Stream, setting: Setting, tuning: Stream) -> Weights:
    """Down-weights of every row under one setting."""
    return method.weigh(stream, Grain(setting["grain"], tuning).regions(stream), setting)
