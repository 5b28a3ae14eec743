"""Erasure and retention: take a reporter's name, or old bodies, out of the log for good.

Both are one transaction that ends in an event of their own and leaves the fields as they are, or
nothing at all; then the files are written anew, so that what was replaced is not in them either.
No other process may have the gate open for writing meanwhile.

A name is replaced where it is the source of a report or a rollback, and as a word of a report's
key and of a person's reason. Regions and the people who act may be called alike and stay.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from rapo_core.checks import UserError
from rapo_gate.config import Clock
from rapo_gate.events import (
    Event,
    checked_word,
    decision_key,
    digest_of,
    drafted,
    exposure_key,
    packed,
    report_key,
)
from rapo_gate.fold.registry import Numbering
from rapo_gate.fold.snapshot import beginning, dump, folded, heads_of, load
from rapo_gate.fold.state import State
from rapo_gate.log.store import Rewriting, Store, StoreError, events_of, pieces

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


def erase(
    store: Store, source: str, *, reason: str, by: str = "program",
    clock: Clock = time.time,
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
        raise UserError("an erasure needs a reason, which must not have the reporter's name in it")
    pseudonym = f"erased-{secrets.token_hex(8)}"
    with store.rewriting() as log:
        before = folded(beginning(store), log).field_hash()
        count = rename_in_log(log, source, pseudonym)
        if not count:
            raise LookupError(f"no report in {store.address} is from {source!r}")
        start = beginning(store)
        rename_in_state(start, source, pseudonym)
        if start.position:
            log.keep(start.position, dump(start), start.ledger.rows, base=True)
        after = folded(start, log)
        if after.field_hash() != before:
            raise RuntimeError("the fields would not stay what they are; nothing was changed")
        body = {"pseudonym": pseudonym, "events": count, "fields": before, "reason": reason,
                "by": by, "heads": heads_of(events_of(log, 0, _base_position(log)))}  # fmt: skip
        event = _append(log, after, "Erasure", body, clock())
        log.keep(after.position, dump(after), after.ledger.rows)
    store.scrub()
    return Erased(pseudonym, count, before, event.position)


def compact(
    store: Store, before: float, *, reason: str, by: str = "program",
    clock: Clock = time.time,
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
        raise UserError("a compaction needs a reason")
    now = clock()
    with store.rewriting() as log:
        first = _base_position(log)
        until = _until(log, first, before)
        if until <= first:
            raise UserError(f"nothing is left to drop before {before:.0f}")
        at_point = folded(beginning(store), log, until)
        oldest = now - at_point.config.D_max * at_point.config.tick_seconds
        if before > oldest:
            raise UserError(
                f"{before:.0f} is too late: decisions since {oldest:.0f} may still be reported "
                f"(D_max is {at_point.config.D_max} ticks)"
            )
        fields, data = at_point.field_hash(), dump(at_point)
        rows = at_point.ledger.rows.copy()
        log.keep(until, data, rows, base=True)
        needed, end = _needed(load(data, rows), log)
        if end.field_hash() != folded(at_point, log).field_hash():
            raise RuntimeError("the snapshot does not lead to the same fields; nothing was changed")
        chain = _chain(log, first, until)
        gone = _drop(log, first, until, needed)
        body = {
            "until": until, "before": before, "dropped": gone, "kept": until - first - gone,
            "fields": fields, "config": end.config.digest(), "chain": chain,
            "heads": heads_of(events_of(log, 0, until)), "reason": reason, "by": by,
        }  # fmt: skip
        event = _append(log, end, "Compaction", body, now)
        log.keep(end.position, dump(end), end.ledger.rows)
    store.scrub()
    return Compacted(until, gone, until - first - gone, fields, event.position)


# --- the log, piece by piece


def _append(log: Rewriting, state: State, kind: str, body: dict[str, Any], now: float) -> Event:
    (event,) = log.append([drafted(kind, now, body)])
    state.apply(event, log)
    return event


def _chain(log: Rewriting, first: int, until: int) -> str:
    """Hash of whole events and of the chain before them: a copy of old can prove that it is one."""
    newest = _last_compaction(log)
    sums = sha256(b"" if newest is None else newest["chain"].encode())
    for event in events_of(log, first, until):
        sums.update(repr(event).encode())
    return sums.hexdigest()


def _last_compaction(log: Rewriting) -> dict[str, Any] | None:
    newest = log.read(0, 1, kinds=["Compaction"], newest=True)
    return newest[0].data() if newest else None


def _base_position(log: Rewriting) -> int:
    newest = _last_compaction(log)
    return 0 if newest is None else int(newest["until"])


# --- dropping


def _until(log: Rewriting, first: int, before: float) -> int:
    """Position of the last event before the first that is not older than `before`."""
    until = first
    for event in events_of(log, first):
        if event.at >= before:
            return until
        until = event.position
    return until


class _Noted:
    """A log that notes the keys that were looked up in it and are there."""

    def __init__(self, log: Rewriting) -> None:
        self._log, self.keys = log, set[str]()

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key."""
        events = self._log.find(keys)
        self.keys.update(events)
        return events


def _needed(state: State, log: Rewriting) -> tuple[set[str], State]:
    """Keys of decisions and exposures that a fold from here on looks up, and where it ends."""
    noted = _Noted(log)
    needed, end = noted.keys, folded(state, log, lookup=noted)
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


# --- a pseudonym in the place of a reporter's name


_DERIVED = ("tick", "waits_for")
"""What the gate adds to a report's body; the digest is of the rest."""


def word(name: str) -> re.Pattern[str]:
    """Finds a name that is not part of a longer one."""
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def rename_in_log(log: Rewriting, source: str, pseudonym: str) -> int:
    """In every event; returns how many named the reporter as the source."""
    count, named = 0, packed(source)[1:-1]
    prefix = report_key(source, "")
    for events in pieces(log):
        changed = []
        for event in events:
            mine = event.kind == "HarmReport" and (event.key or "").startswith(prefix)
            if not mine and (event.kind == "Decision" or named not in event.body):
                continue
            new = _renamed(event, source, pseudonym)
            if new != event:
                changed.append(new)
                count += mine
        log.replace(changed)
    return count


def _renamed(event: Event, source: str, pseudonym: str) -> Event:
    if not event.body:  # dropped: a random digest, since the old one could be guessed from names
        own = (event.key or "").partition(report_key(source, ""))[2]
        own = word(source).sub(pseudonym, own)
        return event._replace(key=report_key(pseudonym, own), digest=secrets.token_bytes(16))
    data = event.data()
    if digest_of(packed(_sent(event.kind, data))) != event.digest:
        raise StoreError(f"event {event.position} does not have the digest of its body; verify it")
    new = _scrubbed(data, source, pseudonym)
    key = event.key
    if event.kind == "HarmReport":
        key = report_key(new["source"], new["key"])
    digest = digest_of(packed(_sent(event.kind, new)))
    return event._replace(key=key, digest=digest, body=packed(new))


def _sent(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """What the caller sent, of which the digest is."""
    left_out = _DERIVED if kind == "HarmReport" else ()
    return {name: value for name, value in data.items() if name not in left_out}


def _scrubbed(data: dict[str, Any], source: str, pseudonym: str) -> dict[str, Any]:
    """A body with the pseudonym as its source, and in words of its key and reason."""
    new = dict(data)
    if new.get("source") == source:
        new["source"] = pseudonym
    for name in ("key", "reason"):
        if isinstance(new.get(name), str):
            new[name] = word(source).sub(pseudonym, new[name])
    return new


def rename_in_state(state: State, source: str, pseudonym: str) -> None:
    """In a state that a snapshot holds; numbers stay, so no row of the ledger changes."""
    names = [pseudonym if name == source else name for name in state.sources.names]
    state.sources = Numbering(names)
    for report in (*state.due(), *state.review.values()):
        if report.source == source:
            report.source = pseudonym
    state.rollbacks = [_scrubbed(r, source, pseudonym) for r in state.rollbacks]
    for kept in (state.allowed, state.overrides):
        kept.update({k: _scrubbed(v, source, pseudonym) for k, v in kept.items()})
