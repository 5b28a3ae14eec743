"""Put a pseudonym in the place of a reporter's name: in the events of a log and in a state.

The name is replaced where it is the source of a report or a rollback, and as a word of a report's
key and of a person's reason. Regions and the people who act may be called alike and stay.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any

from rapo.gate.events import Event, digest_of, packed, report_key
from rapo.gate.registry import Registry
from rapo.gate.state import State
from rapo.gate.store import Rewriting, StoreError

_READ = 5000
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


def pieces(log: Rewriting) -> Iterator[list[Event]]:
    """The whole log, some thousand events at a time."""
    after = 0
    while events := log.read(after, _READ):
        yield events
        after = events[-1].position


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
    state.sources = Registry(names)
    for report in (*state.due(), *state.review.values()):
        if report.source == source:
            report.source = pseudonym
    state.rollbacks = [_scrubbed(r, source, pseudonym) for r in state.rollbacks]
    for kept in (state.allowed, state.overrides):
        kept.update({k: _scrubbed(v, source, pseudonym) for k, v in kept.items()})
