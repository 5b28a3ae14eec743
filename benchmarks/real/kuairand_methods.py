"""Three scores of a region's record on likes and hates: the gate's psi, a hate rate, flap damping.

Each is a function from a stream, the region of its rows and a setting to a score per row, (n,),
higher is worse. A row is scored by what was reported at least `DELAY` hours before it: never by
itself, nor by anything later. A region that nobody reported scores 0 and is never held back: the
likes of this slice are of videos with many likes and the hates of any, so "not seen before" alone
would tell most hates, and would tell nothing about harm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.real.kuairand import DELAY, GRAINS, HOUR, Grain, Stream
from benchmarks.real.otc_methods import FLAP, PSI_MIN
from rapo_core.params import FieldParams
from rapo_gate.config import GateConfig
from rapo_gate.shadow_log import History, course

WEEK = 7 * 24
"""Hours during which reports count towards agreement."""
DAY = 24.0

Scores = npt.NDArray[np.float64]
Regions = npt.NDArray[np.int64]
Setting = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Method:
    """A way to score rows, and the settings it may be tuned over."""

    name: str
    score: Callable[[Stream, Regions, Setting], Scores]
    grid: tuple[Setting, ...]


def marks(stream: Stream, setting: Setting) -> Scores:
    """Harm of every row: a hate is 1, a skipped video a setting."""
    return stream.hated + setting["skip"] * stream.skipped


def law_of(setting: Setting) -> GateConfig:
    """A gate with its guardrails as they come, and a week for agreement."""
    lam = setting["lam"]
    params = FieldParams(
        lam=lam, alpha=lam, tau=setting["tau"], eta=setting["eta"], delta=setting["delta"],
        w_G=1.0, w_H=setting["w_H"], psi_min=PSI_MIN,
    )  # fmt: skip
    return GateConfig(
        base_rate=setting["base_rate"], half_life=setting["half_life"],
        shrinkage=setting["shrinkage"], z=setting["z"], scale=setting["scale"], params=params,
        min_sources=3, min_signals=2, confirm_ticks=WEEK,
    )  # fmt: skip


def by_gate(stream: Stream, region: Regions, setting: Setting) -> Scores:
    """1 - psi, by the law of the gate with a tick of one hour."""
    names, number = np.unique(region, return_inverse=True)
    tick = stream.ticks()
    hour, place, amount, who, signal = [], [], [], [], []
    for kind, (marked, harm) in enumerate(((stream.hated, 1.0), (stream.skipped, setting["skip"]))):
        if harm > 0:
            hour.append(tick[marked])
            place.append(number[marked])
            amount.append(np.full(int(marked.sum()), harm))
            who.append(stream.user[marked])
            signal.append(np.full(int(marked.sum()), kind))
    said = tuple(np.concatenate(x) for x in (hour, place, amount, who, signal))
    seen = (tick, number, np.ones(len(stream)))
    # one hour more, so that the last row of an hour waits `DELAY` hours too
    history = History.of(names.size, seen, said, delay=DELAY + 1, cap_source=5.0)
    return 1 - course(history, law_of(setting), number, tick).psi


def by_rate(stream: Stream, region: Regions, setting: Setting) -> Scores:
    """Harm per exposure so far, shrunk to the base rate; 0 of what nobody reported."""
    names, number = np.unique(region, return_inverse=True)
    tick = stream.ticks() - stream.ticks()[0]
    harm = marks(stream, setting)
    reported, seen = np.zeros(names.size), np.zeros(names.size)
    starts = np.flatnonzero(np.diff(tick, prepend=-1))
    known = 0  # rows whose reports have arrived
    score = np.zeros(len(stream))
    prior = setting["shrinkage"]
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), tick.size], strict=True):
        upto = int(np.searchsorted(tick, tick[start] - DELAY, side="left"))
        np.add.at(reported, number[known:upto], harm[known:upto])
        np.add.at(seen, number[known:upto], 1.0)
        known = upto
        mine = number[start:end]
        rate = (reported[mine] + prior * setting["base_rate"]) / (seen[mine] + prior)
        score[start:end] = np.where(reported[mine] > 0, rate, 0.0)
    return score


def by_damping(stream: Stream, region: Regions, setting: Setting) -> Scores:
    """Penalty of route-flap damping, a hate being a withdrawal of its region.

    The penalty itself is the score: where suppression begins follows from the loss allowed.
    `half_life` is in hours; RFC 2439 has 15 minutes.
    """
    flaps = FLAP * marks(stream, setting)
    marked = np.flatnonzero(flaps)
    arrivals = stream.time[marked] + DELAY * HOUR
    state: dict[int, tuple[float, float]] = {}  # region: when, penalty
    score = np.zeros(len(stream))
    names, half_life = region.tolist(), setting["half_life"] * HOUR
    at = 0
    for i, now in enumerate(stream.time.tolist()):
        while at < marked.size and arrivals[at] <= now:
            name, when = names[marked[at]], float(arrivals[at])
            then, penalty = state.get(name, (when, 0.0))
            penalty *= 2.0 ** (-(when - then) / half_life)
            state[name] = (when, penalty + float(flaps[marked[at]]))
            at += 1
        if names[i] in state:
            then, penalty = state[names[i]]
            score[i] = penalty * 2.0 ** (-(now - then) / half_life)
    return score


def _grid(**choices: tuple[Any, ...]) -> tuple[Setting, ...]:
    return tuple(dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


METHODS = (
    Method("gate", by_gate, _grid(
        grain=GRAINS, half_life=(2 * DAY, 7 * DAY, 28 * DAY), shrinkage=(2.0, 10.0, 50.0),
        skip=(0.1, 0.5), z=(0.0, 1.0), scale=(0.5,), lam=(0.1,), tau=(0.05,), eta=(0.0, 0.01),
        delta=(0.997,), w_H=(1.0,),
    )),
    Method("hate rate", by_rate, _grid(
        grain=GRAINS, shrinkage=(2.0, 10.0, 50.0), skip=(0.0, 0.1, 0.5),
    )),
    Method("flap damping", by_damping, _grid(
        grain=GRAINS, half_life=(0.25, 1.0, 6.0, DAY, 4 * DAY, 14 * DAY), skip=(0.0, 0.5),
    )),
)  # fmt: skip
"""The gate first, then its rivals."""


def score(method: Method, stream: Stream, setting: Setting, tuning: Stream) -> Scores:
    """Scores of every row under one setting; the base rate is that of the tuning part."""
    known = {**setting, "base_rate": float(marks(tuning, setting).mean())}
    return method.score(stream, Grain(setting["grain"], tuning).regions(stream), known)
