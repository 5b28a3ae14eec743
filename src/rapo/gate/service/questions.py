"""What reviewers ask a gate.

Questions are functions of a gate and plain values, so that another process may answer them (see
`audits`); methods of `Gate` that change nothing are questions too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.gate import audit
from rapo.gate.chains import region_views
from rapo.gate.declare import Action, Effect
from rapo.gate.events import Event, Region, unpack_decision
from rapo.gate.gate import Gate
from rapo.gate.memory import Replay, replayed
from rapo.gate.service.forms import Wanted
from rapo.gate.state import State
from rapo.gate.store import Store

Values = dict[str, Any]


def narrowed(
    items: Sequence[Values],
    asked: Wanted,
    *,
    text: Callable[[Values], str],
    at: str,
    only: Mapping[str, Callable[[Values], bool]],
) -> list[Values]:
    """The items that were asked for, in the order that was asked for."""
    words, fits = asked.words.casefold(), only.get(asked.only)
    found = [
        item
        for item in items
        if (not words or words in text(item).casefold())
        and (fits is None or fits(item))
        and asked.in_time(item[at])
    ]
    there = [i for i in found if i[asked.sort] is not None]
    missing = [i for i in found if i[asked.sort] is None]  # last, whichever way
    there.sort(key=lambda item: item[asked.sort], reverse=not asked.rising)
    return there + missing


EVENTS_SEARCHED = 50_000
"""Newest events in a time range that are searched for decisions."""
MOST_SEARCHED = 2000
"""Reports that wait, and reporters, that are searched."""
_WINDOW = 5000
"""Positions read at a time."""


def named(gate: Gate, word: str) -> list[Region]:
    """The regions that are written like a word: a string, then an integer, or none."""
    return gate.read(lambda state: _written_like(state.regions, word))  # type: ignore[no-any-return]


def _written_like(known: Any, word: str) -> list[Region]:
    found: list[Region] = [word] if word in known else []
    digits = word.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(word) in known:
        found.append(int(word))
    return found


def region_named(known: Any, word: str) -> Region:
    """The region that a word of a path names: a string first, then an integer.

    Raises:
        LookupError: no decision ever had either.
    """
    found = _written_like(known, word)
    if not found:
        raise LookupError(f"region {word!r:.80} is not known: no decision ever had it")
    return found[0]


def top(gate: Gate, most: int) -> Values:
    """The regions with the largest scars."""

    def look(state: State) -> Values:
        return {
            "regions": audit.top_regions(state, most),
            "known": len(state.regions),
            "revision": state.revision,
        }

    return gate.read(look)  # type: ignore[no-any-return]


def region(gate: Gate, word: str) -> Values:
    """One region, by the word of a path."""
    return gate.read(  # type: ignore[no-any-return]
        lambda state: audit.region_view(state, region_named(state.regions, word))
    )


def chain_by_word(gate: Gate, word: str, limit: int) -> Values:
    """What made a region what it is, by the word of a path."""
    return gate.chain(gate.read(lambda state: region_named(state.regions, word)), limit)


def overview(gate: Gate) -> Values:
    """The gate at a glance."""
    return gate.read(audit.overview)  # type: ignore[no-any-return]


def outcomes(gate: Gate) -> Values:
    """What came back."""
    return gate.read(audit.outcomes)  # type: ignore[no-any-return]


def dry_run(gate: Gate, action: Action) -> Effect:
    """What an action would do."""
    assert action.dry_run
    return gate.act(action)


def replay(gate: Gate, until: int) -> Replay:
    """The log folded afresh up to a position."""
    return replayed(gate.store, until)


def regions(gate: Gate, asked: Wanted) -> tuple[list[Values], int, int]:
    """Views of the regions that were asked for, with courses; how many there are; are known."""

    def look(state: State) -> tuple[list[Values], int, int]:
        count = len(state.regions)
        rows = state.ledger.rows
        last = np.full(count, np.nan)
        np.fmax.at(last, rows["region"], rows["at"])
        hit = _fitting(state, asked, last)
        order = np.flatnonzero(hit)
        keys = _keys(state, asked.sort, order, last)
        signed = keys if asked.rising else [-k for k in keys]
        order = order[np.lexsort((order, *reversed(signed)))]
        views = region_views(state, order[: asked.top].tolist())
        for view, at in zip(views, last[order[: asked.top]].tolist(), strict=True):
            view["course"] = audit.course(state, view["region"], 60)
            view["last_at"] = None if np.isnan(at) else at
        return views, int(hit.sum()), count

    return gate.read(look)  # type: ignore[no-any-return]


def _fitting(state: State, asked: Wanted, last: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which regions are asked for."""
    count = len(state.regions)
    hit = np.ones(count, np.bool_)
    if asked.only == "gated":
        hit &= state.psi() < 1
    elif asked.only == "scarred":
        hit &= state.fold.H[:count] > 0
    elif asked.only == "unconfirmed":
        hit &= ~state.fold.conductance(state.config)[1][:count] & (state.fold.G[:count] > 0)
    elif asked.only == "hand":
        hit[:] = False
        hit[[*state.overrides, *state.allowed]] = True
    if asked.since is not None:
        hit &= last >= asked.since
    if asked.until is not None:
        hit &= last < asked.until
    if asked.words:
        words = asked.words.casefold()
        for i in np.flatnonzero(hit).tolist():
            said = state.labels.get(i, {})
            hit[i] = words in "\n".join((str(state.regions.names[i]), *said.values())).casefold()
    return hit


def _keys(
    state: State, column: str, chosen: npt.NDArray[np.intp], last: npt.NDArray[np.float64]
) -> list[npt.NDArray[Any]]:
    """What regions are sorted by; the first key matters most."""
    count = len(state.regions)
    G, H = state.fold.G[:count][chosen], state.fold.H[:count][chosen]
    match column:
        case "G":
            return [G]
        case "psi":
            return [state.psi()[chosen]]
        case "proposed":
            return [state.traffic.proposed[:count][chosen]]
        case "last_at":
            return [np.nan_to_num(last[chosen], nan=-1.0)]
        case "region":
            names = np.array([str(state.regions.names[i]).casefold() for i in chosen.tolist()])
            return [np.unique(names, return_inverse=True)[1] if names.size else names]
    return [H, G]


def decisions(gate: Gate, asked: Wanted) -> tuple[list[Values], bool]:
    """Decisions that were asked for, of the newest in their time range; whether all were seen."""
    store, found = gate.store, []
    end = store.last() if asked.until is None else _position_at(store, asked.until)
    begin = 0 if asked.since is None else _position_at(store, asked.since)
    least = max(begin, end - EVENTS_SEARCHED)
    while end > least:
        start = max(least, end - _WINDOW)
        events = store.read(start, _WINDOW, ("Decision",))
        found += [_decision(event) for event in events if event.position <= end]
        end = start
        newest = asked.sort == "at" and not (asked.rising or asked.words or asked.only)
        if newest and len(found) >= asked.top:
            break
    chosen = narrowed(
        found,
        asked,
        text=lambda d: f"{d['id']}\n{d['stimulus'] or ''}",
        at="at",
        only={"changed": lambda d: d["moved"] > 0, "applied": lambda d: bool(d["applied"])},
    )
    return chosen[: asked.top], end <= begin


def _decision(event: Event) -> Values:
    body = unpack_decision(event.body)
    return {
        "id": (event.key or "").partition("\x1f")[2],
        "at": event.at,
        "candidates": body.p.size,
        "moved": float(np.abs(body.p / body.p.sum() - body.gated).sum() / 2),
        "applied": body.enforced,
        "stimulus": body.stimulus,
    }


def _position_at(store: Store, moment: float) -> int:
    """Position of the last event before a moment; the log is in the order of time."""
    low, high = 0, store.last()
    while low < high:
        middle = (low + high + 1) // 2
        event = store.read(middle - 1, 1)
        if event and event[0].at < moment:
            low = middle
        else:
            high = middle - 1
    return low


def waiting(gate: Gate, asked: Wanted) -> tuple[list[Values], int]:
    """Reports that wait and were asked for, and how many wait in all."""
    every = gate.queue(MOST_SEARCHED)
    found = narrowed(
        every,
        asked,
        text=lambda r: "\n".join(
            (str(r["report_id"]), r["source"], r["signal"], *map(str, r["regions"]))
        ),
        at="at",
        only={
            why: lambda r, why=why: r["waits_for"] == why  # type: ignore[misc]
            for why in ("late", "unknown region", "agreement")
        },
    )
    return found[: asked.top], len(every)


def who_reported(gate: Gate, asked: Wanted) -> tuple[list[Values], int]:
    """Reporters that were asked for, and how many there are in all."""
    every = gate.reporters(MOST_SEARCHED)
    found = narrowed(
        every,
        asked,
        text=lambda r: "\n".join((r["source"], *r["signals"])),
        at="last_at",
        only={
            "waiting": lambda r: r["waiting"] > 0,
            "out": lambda r: r["rolled_back"] > 0,
            "alone": lambda r: not r["agreed"],
        },
    )
    return found[: asked.top], len(every)
