"""Erasure and retention: take a reporter's name, or old bodies, out of the log for good.

Both are one transaction that ends in an event of their own and leaves the fields as they are, or
nothing at all; then the files are written anew, so that what was replaced is not in them either.
No other process may have the gate open for writing meanwhile.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from rapo.gate.events import (
    Draft,
    Event,
    checked_word,
    decision_key,
    digest_of,
    exposure_key,
    packed,
)
from rapo.gate.rename import pieces, rename_in_log, rename_in_state, word
from rapo.gate.snapshot import dump, load
from rapo.gate.state import Fetch, State
from rapo.gate.store import Rewriting, Store, StoreError

_READ = 5000
_DROPPED = ("Decision", "Exposure", "HarmReport", "Tick")
"""Kinds whose bodies a compaction drops. What people did, and why, stays."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure did."""

    pseudonym: str
    """Stands for the reporter everywhere from now on."""
    events: int
    """Events that named the reporter."""
    fields: str
    """Hash of the fields, before as after."""
    event: int
    """Position of the Erasure."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did."""

    until: int
    """Bodies up to this position are gone."""
    dropped: int
    kept: int
    """Bodies up to there that stay: what people did, and decisions that are still needed."""
    fields: str
    """Hash of the fields at `until`."""
    event: int
    """Position of the Compaction."""


def beginning(store: Store, fetch: Fetch | None = None) -> State:
    """What a fold of the log begins with: nothing, or the snapshot that a compaction kept.

    Raises:
        StoreError: that snapshot cannot be read.
    """
    base = store.load_base()
    if base is None:
        return State(fetch or store.find)
    try:
        return load(*base, fetch or store.find)
    except ValueError as error:
        told = _told(dropped(store))
        raise StoreError(
            f"{store.address}: {told}, and {error}; open it with the version of rapo that dropped "
            "them, or restore a copy from before"
        ) from error


def replay(store: Store) -> State:
    """Fold the log from its first event on.

    Raises:
        StoreError: its beginning was dropped; the message says up to where.
    """
    gone = dropped(store)
    if gone is not None:
        raise StoreError(
            f"{store.address} cannot be replayed from its first event: {_told(gone)}; it can from "
            f"there on, or from a copy of before"
        )
    return _fold(State(store.find), store)


def dropped(store: Store) -> dict[str, Any] | None:
    """What the last compaction said, and whether the log still agrees; None if there was none.

    Returns:
        `until`, `on` (Unix seconds), `fields` at `until`, `chain` of all that was dropped, and
        `intact`: whether what is left of those events is what it was then.
    """
    newest = store.read(0, 1, kinds=["Compaction"], newest=True)
    if not newest:
        return None
    data = newest[0].data()
    for event in store.read(newest[0].position, 1, kinds=["Erasure"], newest=True):
        data["heads"] = event.data()["heads"]  # it renamed a reporter in them
    intact = _heads(_events(store, 0, data["until"])) == data["heads"]
    told = {name: data[name] for name in ("until", "fields", "chain")}
    return {**told, "on": newest[0].at, "intact": intact}


def erase(
    store: Store, source: str, *, reason: str, by: str = "program",
    clock: Callable[[], float] = time.time,
) -> Erased:  # fmt: skip
    """Put a random pseudonym in the place of a reporter's name, in every event and snapshot.

    The fields stay what they are, which is checked by a fold of the whole log. From then on the
    name is a stranger's: a report that it sent before and sends again is a new one. Under the
    pseudonym keys and bodies are what they were.

    Raises:
        LookupError: no report is from there; nothing was changed.
        ValueError: the reason names the reporter.
    """
    checked_word("source", source), checked_word("by", by)
    name = word(source)
    if not reason.strip() or name.search(reason) or name.search(by):
        raise ValueError("an erasure needs a reason, which must not have the reporter's name in it")
    pseudonym = f"erased-{secrets.token_hex(8)}"
    with store.rewriting() as log:
        before = _fold(beginning(store, log.find), log).field_hash()
        count = rename_in_log(log, source, pseudonym)
        if not count:
            raise LookupError(f"no report in {store.address} is from {source!r}")
        start = beginning(store, log.find)
        rename_in_state(start, source, pseudonym)
        if start.position:
            log.keep(start.position, dump(start), start.ledger.rows, base=True)
        after = _fold(start, log)
        if after.field_hash() != before:
            raise RuntimeError("the fields would not stay what they are; nothing was changed")
        told = {"pseudonym": pseudonym, "events": count, "fields": before, "reason": reason,
                "by": by, "heads": _heads(_events(log, 0, _base_position(log)))}  # fmt: skip
        event = _append(log, after, "Erasure", told, clock())
        log.keep(after.position, dump(after), after.ledger.rows)
    store.scrub()
    return Erased(pseudonym, count, before, event.position)


def compact(
    store: Store, before: float, *, reason: str, by: str = "program",
    clock: Callable[[], float] = time.time,
) -> Compacted:  # fmt: skip
    """Keep the fields as they were at a moment, and drop the bodies of what led to them.

    Positions, kinds, times, keys and digests stay: a key that was used is still refused.

    Args:
        store: the log, which nobody else writes.
        before: Unix seconds, at least D_max ticks ago: until then a decision may be reported.
        reason: why.
        by: who.
        clock: Unix seconds.

    Raises:
        ValueError: `before` is too late, or there is nothing before it.
    """
    checked_word("by", by)
    if not reason.strip():
        raise ValueError("a compaction needs a reason")
    now = clock()
    with store.rewriting() as log:
        first = _base_position(log)
        until = _until(log, first, before)
        if until <= first:
            raise ValueError(f"nothing is left to drop before {before:.0f}")
        at_point = _fold(beginning(store, log.find), log, until)
        oldest = now - at_point.config.D_max * at_point.config.tick_seconds
        if before > oldest:
            raise ValueError(
                f"{before:.0f} is too late: decisions since {oldest:.0f} may still be reported "
                f"(D_max is {at_point.config.D_max} ticks)"
            )
        fields, data = at_point.field_hash(), dump(at_point)
        rows = at_point.ledger.rows.copy()
        log.keep(until, data, rows, base=True)
        needed, end = _needed(load(data, rows, log.find), log)
        if end.field_hash() != _fold(at_point, log).field_hash():
            raise RuntimeError("the snapshot does not lead to the same fields; nothing was changed")
        chain = _chain(log, first, until)
        gone = _drop(log, first, until, needed)
        told = {
            "until": until, "before": before, "dropped": gone, "kept": until - first - gone,
            "fields": fields, "config": end.config.digest(), "chain": chain,
            "heads": _heads(_events(log, 0, until)), "reason": reason, "by": by,
        }  # fmt: skip
        event = _append(log, end, "Compaction", told, now)
        log.keep(end.position, dump(end), end.ledger.rows)
    store.scrub()
    return Compacted(until, gone, until - first - gone, fields, event.position)


# --- the log, piece by piece


def _events(log: Store | Rewriting, after: int, until: int | None = None) -> Iterator[Event]:
    while events := log.read(after, _READ):
        for event in events:
            if until is not None and event.position > until:
                return
            yield event
        after = events[-1].position


def _fold(state: State, log: Store | Rewriting, until: int | None = None) -> State:
    for event in _events(log, state.position, until):
        state.apply(event)
    return state


def _append(log: Rewriting, state: State, kind: str, told: dict[str, Any], now: float) -> Event:
    body = packed(told)
    (event,) = log.append([Draft(kind, now, None, digest_of(body), body)])
    state.apply(event)
    return event


def _heads(events: Iterator[Event]) -> str:
    """Hash of everything but the bodies: it can be checked also when those are gone."""
    sums = sha256()
    for event in events:
        sums.update(repr(event[:5]).encode())
    return sums.hexdigest()


def _chain(log: Rewriting, first: int, until: int) -> str:
    """Hash of whole events and of the chain before them: a copy of old can prove that it is one."""
    newest = _last_compaction(log)
    sums = sha256(b"" if newest is None else newest["chain"].encode())
    for event in _events(log, first, until):
        sums.update(repr(event).encode())
    return sums.hexdigest()


def _last_compaction(log: Rewriting) -> dict[str, Any] | None:
    found = log.read(0, 1, kinds=["Compaction"], newest=True)
    return found[0].data() if found else None


def _base_position(log: Rewriting) -> int:
    newest = _last_compaction(log)
    return 0 if newest is None else int(newest["until"])


# --- dropping


def _until(log: Rewriting, first: int, before: float) -> int:
    """Position of the last event before the first that is not older than `before`."""
    until = first
    for event in _events(log, first):
        if event.at >= before:
            return until
        until = event.position
    return until


def _needed(state: State, log: Rewriting) -> tuple[set[str], State]:
    """Keys of decisions and exposures that a fold from here on looks up, and where it ends."""
    needed: set[str] = set()

    def noted(keys: Any) -> dict[str, Event]:
        found = log.find(keys)
        needed.update(found)
        return found

    state.fetch = noted
    end = _fold(state, log)
    end.fetch = log.find
    for report in (*end.due(), *end.review.values()):
        if report.decision_id is not None:
            needed |= {decision_key(report.decision_id), exposure_key(report.decision_id)}
    return needed, end


def _drop(log: Rewriting, first: int, until: int, needed: set[str]) -> int:
    """Empty the bodies; returns how many."""
    count = 0
    for events in pieces(log):
        emptied = [
            e._replace(body=b"")
            for e in events
            if first < e.position <= until and e.kind in _DROPPED and e.key not in needed and e.body
        ]
        log.replace(emptied)
        count += len(emptied)
        if events[-1].position >= until:
            break
    return count


def _told(gone: dict[str, Any] | None) -> str:
    if gone is None:
        return "its beginning was dropped"
    day = time.strftime("%Y-%m-%d", time.gmtime(gone["on"]))
    return (
        f"events up to {gone['until']} were dropped on {day}, where the fields had the hash "
        f"{gone['fields'][:16]}…"
    )
