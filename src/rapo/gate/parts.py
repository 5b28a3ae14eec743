"""How much of a region's trace and scar each report has caused; the parts sum to the whole.

In tick t the trace gets `alpha harm_t`, which falls to the reports in memory, `S_t`, by their
weight in it: `c_t = alpha harm_t / S_t` for each. A report's weight decays by `fade` a tick, what
it has added by `keep`; so going backwards from now, `W_t = c_t P_t + fade W_(t+1)` is what a report
of tick t has left in the trace per unit of harm, with `P_t` what is kept until now. The scar grows
by parts of the trace, each of which belongs to reports in the same way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo.core.jit import kernel
from rapo.gate.fold import Fold
from rapo.gate.ledger import NOTHING, UNIT

Real = npt.NDArray[np.float64]


@kernel
def _weights(course: Any, alpha: Any, added: Any, left: Any, scar: Any) -> None:
    """Per tick and unit of harm: trace added so far, trace left now, scar now."""
    kept, scar_kept, onward = 1.0, 1.0, 0.0  # onward: scar now per unit of trace after this tick
    for t in range(course.size - 1, -1, -1):
        at = course[t]
        each = alpha[t] * at.harm / at.S if at.S > 0 else 0.0
        later = t + 1 < course.size
        fade = course[t + 1].fade if later else 0.0
        added[t] = each + (fade * added[t + 1] if later else 0.0)
        left[t] = each * kept + (fade * left[t + 1] if later else 0.0)
        scar[t] = each * onward + (fade * scar[t + 1] if later else 0.0)
        if t > 0:
            before = course[t - 1].G
            grew = at.grew * scar_kept / before if before > 0 else 0.0
            onward = grew + at.keep * onward
        kept *= at.keep
        scar_kept *= at.held


@kernel
def _rows_of(item: int, following: Any, out: Any) -> int:
    """Rows of a region, given its first; returns how many."""
    count = 0
    while item > 0:
        if count < out.size:
            out[count] = item - 1
        count += 1
        item = following[item - 1]
    return count


class Parts(NamedTuple):
    """Reports on a region that counted by a tick, in the order of the ledger; one length."""

    rows: npt.NDArray[np.int64]
    """Their places in the ledger, also of those that were rolled back."""
    added: Real
    """Trace that each has added so far."""
    G: Real
    """Its part of the trace."""
    H: Real
    """Its part of the scar."""
    exposure: Real
    """Exposures that the region had in memory when it counted."""


def parts_of(fold: Fold, region: int, until: int) -> Parts:
    """What each report on a region has caused up to a tick."""
    places = rows_of(fold, region)
    places = places[fold.ledger.rows["tick"][places] <= until]
    first, course = fold.course(region, until)
    sums = np.zeros((3, course.size))
    alpha = np.zeros(course.size)
    for tick, config in fold.changes:
        alpha[max(0, tick + 1 - first) :] = config.params.alpha
    _weights(course, alpha, *sums)
    slot = fold.ledger.slot(region)
    if not places.size or fold.free[slot]:
        none = np.zeros(places.size)
        return Parts(places, none, none, none, none)
    at = fold.ledger.rows["tick"][places] - first
    taken = fold.ledger.taken[places]
    harm = np.where(taken == NOTHING, 0, taken) / UNIT
    added, G, H = (harm * each[at] for each in sums)
    return Parts(places, added, G, H, course["E"][at])


def rows_of(fold: Fold, region: int) -> npt.NDArray[np.int64]:
    """Places of a region's rows in the ledger, in order."""
    slot = fold.ledger.slot(region)
    if slot == NOTHING:
        return np.zeros(0, np.int64)
    links = fold.ledger.links
    out = np.zeros(_rows_of(links.first[slot], links.next, np.zeros(0, np.int64)), np.int64)
    _rows_of(links.first[slot], links.next, out)
    return out


def traces_by_source(fold: Fold, sources: int) -> Real:
    """Of all traces, what falls to each reporter by their share in memory, (sources,)."""
    at, pair = fold.ledger.first_rows(), fold.f.pairs[: fold.ledger.pairs[0]]
    source, slot = (
        fold.ledger.rows["source"][at],
        fold.ledger.slot_of[fold.ledger.rows["region"][at]],
    )
    tick, S, G = (fold.f.cells[name][slot] for name in ("tick", "S", "G"))
    fade = 2.0 ** (-1 / fold.config.half_life)
    mass = pair["mass"] * fade ** (tick - pair["tick"])
    share = np.divide(mass, S, out=np.zeros(mass.size), where=S > 0)
    return np.asarray(np.bincount(source, share * G, sources), np.float64)
