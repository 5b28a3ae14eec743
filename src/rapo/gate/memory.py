"""`Memory`: the state at the end of the log, and the view that decisions are made from."""

from __future__ import annotations

import threading
import warnings
from typing import NamedTuple

from rapo.gate.retention import beginning
from rapo.gate.snapshot import dump, load
from rapo.gate.state import State
from rapo.gate.store import Store, StoreError
from rapo.gate.view import View

_READ = 5000
"""Events read at a time."""


class Replay(NamedTuple):
    """What a fresh fold of the log came to."""

    position: int
    revision: int
    tick: int
    fields: str
    """Hash of its fields."""
    integrity: str
    """Of the database."""


class Memory:
    """What the log amounts to so far, read from its newest snapshot and the events after it.

    Whoever changes `state` holds `lock`, says `unsure` before and takes it back after: a state
    that took in half of something is read again from the log before anybody looks at it.

    Args:
        store: the log.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lock = threading.RLock()
        self.unsure = False
        """Whether the state holds more, or less, than the log."""
        self.state = self._read_log()
        self.view = View(self.state)
        self.snapshot_at = self.state.position

    def follow(self) -> None:
        """Take in what others appended."""
        while True:
            events = self.store.read(self.state.position, _READ)
            self.unsure = True  # an event is half taken in if the log goes away now
            for event in events:
                self.state.apply(event)
            self.unsure = False
            if len(events) < _READ:
                break
        self.publish()

    def publish(self) -> None:
        """Let decisions see the state."""
        if self.state.revision != self.view.revision:
            self.view = View(self.state)

    def make_sure(self) -> None:
        """Read the state again if it may not be what the log says."""
        if self.unsure:
            self.state = self._read_log()
            self.unsure = False
            self.publish()

    def snapshot(self) -> None:
        """Keep the state beside the log, so that opening reads only what comes after."""
        with self.lock:
            if self.unsure:
                raise StoreError("no snapshot: the state may not be what the log says")
            ledger, position = self.state.ledger, self.state.position
            new = ledger.rows[ledger.kept :]
            self.store.save_snapshot(position, dump(self.state), new, ledger.kept)
            ledger.kept = len(ledger)
            self.snapshot_at = position

    def _read_log(self) -> State:
        """The state at the end of the log, from the newest snapshot that is sound."""
        state, kept = None, self.store.load_snapshot()
        if kept is not None:
            try:
                state = load(*kept, self.store.find)
            except ValueError as error:
                warnings.warn(f"{error}; the whole log is read instead", stacklevel=4)
        state = state or beginning(self.store)
        _catch_up(state, self.store)
        return state


def replayed(store: Store, until: int) -> Replay:
    """The log folded from its first event up to a position."""
    fresh = beginning(store)
    _catch_up(fresh, store, until)
    return Replay(fresh.position, fresh.revision, fresh.tick, fresh.field_hash(), store.integrity())


def _catch_up(state: State, store: Store, until: int | None = None) -> None:
    """Take in what the log has beyond a state, up to a position."""
    while True:
        events = store.read(state.position, _READ)
        if until is not None:
            events = [e for e in events if e.position <= until]
        for event in events:
            state.apply(event)
        if len(events) < _READ:
            return
