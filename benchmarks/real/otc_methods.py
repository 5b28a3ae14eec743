"""Four scores of a target's record: the gate's psi, a shrunken rate, flap damping, trace only.

Each is a function from ratings and a setting to a score per rating, (n,), higher is worse. A rating
is scored by the days before its own, never by itself or by anything of the same day or later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.real.otc import Ratings
from rapo_core.jit import kernel
from rapo_core.params import FieldParams
from rapo_gate.config import GateConfig
from rapo_gate.shadow_log import History, course

Scores = npt.NDArray[np.float64]
Setting = dict[str, Any]

PSI_MIN = 1e-6
"""The least a gate may have: a score must not tie where it matters."""
FLAP = 1000.0
"""Penalty of a withdrawal, RFC 2439 and 7196."""


def harm_of(ratings: Ratings, setting: Setting) -> Scores:
    """Harm of every rating: 0 of a good one; of a bad one 1, or its size over 10."""
    size = np.abs(ratings.rating) / 10 if setting["harm"] == "size" else np.ones(len(ratings))
    return np.where(ratings.bad, size, 0.0)


def law_of(setting: Setting) -> GateConfig:
    """A gate in which one signal and one reporter are enough: each pair rates once, one way."""
    lam = setting["lam"]
    params = FieldParams(
        lam=lam, alpha=lam, tau=setting["tau"], eta=setting["eta"], delta=setting["delta"],
        w_G=setting["w_G"], w_H=setting["w_H"], psi_min=PSI_MIN,
    )  # fmt: skip
    return GateConfig(
        base_rate=setting["base_rate"], half_life=setting["half_life"],
        shrinkage=setting["shrinkage"], z=setting["z"], scale=setting["scale"], params=params,
        min_sources=1, min_signals=1, confirm_ticks=10**9,
    )  # fmt: skip


def history_of(ratings: Ratings, setting: Setting) -> tuple[History, npt.NDArray[np.int64]]:
    """What a gate would know, and the number of each rating's region."""
    names, region = np.unique(ratings.target, return_inverse=True)
    bad = ratings.bad
    harm = harm_of(ratings, setting)[bad]
    history = History.of(
        names.size,
        (ratings.day, region, np.ones(len(ratings))),
        (ratings.day[bad], region[bad], harm, ratings.rater[bad]),
        delay=1,
    )
    return history, region


def by_gate(ratings: Ratings, setting: Setting) -> Scores:
    """1 - psi, by the law of the gate with a tick of one day; reports count on the next."""
    history, region = history_of(ratings, setting)
    return 1 - course(history, law_of(setting), region, ratings.day).psi


def by_trace(ratings: Ratings, setting: Setting) -> Scores:
    """The gate without scars: a penalty that passes."""
    return by_gate(ratings, {**setting, "eta": 0.0})


def by_rate(ratings: Ratings, setting: Setting) -> Scores:
    """Harm per rating so far, both with one half-life, shrunk to the base rate."""
    harm = harm_of(ratings, setting)
    sums = decayed(ratings, np.stack([harm, np.ones(len(ratings))]), setting["half_life"])
    prior = setting["shrinkage"]
    rate: Scores = (sums[0] + prior * setting["base_rate"]) / (sums[1] + prior)
    return rate


def by_damping(ratings: Ratings, setting: Setting) -> Scores:
    """Penalty of route-flap damping, a bad rating being a withdrawal.

    The penalty itself is the score: where suppression begins follows from the loss allowed.
    """
    flaps = FLAP * harm_of(ratings, setting)[None]
    penalty: Scores = decayed(ratings, flaps, setting["half_life"])[0]
    return penalty


def decayed(ratings: Ratings, values: Scores, half_life: float) -> Scores:
    """Sums of values (m, n) per target over earlier days, each halved every `half_life` days."""
    _, region = np.unique(ratings.target, return_inverse=True)
    order = np.lexsort((ratings.day, region))
    out = np.zeros(values.shape)
    found = np.zeros(values.shape)
    _decay(region[order], ratings.day[order], values[:, order], 2.0 ** (-1 / half_life), found)
    out[:, order] = found
    return out


@kernel
def _decay(region: Any, day: Any, values: Any, g: float, out: Any) -> None:
    for j in range(values.shape[0]):
        total, waiting = 0.0, 0.0  # `waiting` is what the present day adds
        for i in range(region.size):
            if i == 0 or region[i] != region[i - 1]:
                total, waiting = 0.0, 0.0
            elif day[i] != day[i - 1]:
                total = (total + waiting) * g ** float(day[i] - day[i - 1])
                waiting = 0.0
            out[j, i] = total
            waiting += values[j, i]


METHODS: dict[str, Callable[[Ratings, Setting], Scores]] = {
    "gate": by_gate, "rate": by_rate, "flap damping": by_damping, "trace only": by_trace,
}  # fmt: skip
