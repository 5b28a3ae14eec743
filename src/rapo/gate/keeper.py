"""`Keeper`: the state in memory, kept in step with the log by one writer thread."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from math import floor
from types import TracebackType
from typing import Any, Self

from rapo.gate.config import GateConfig
from rapo.gate.events import Draft, digest_of, packed
from rapo.gate.retention import beginning, dropped
from rapo.gate.snapshot import dump, load
from rapo.gate.state import State
from rapo.gate.store import Appending, BusyError, Store, StoreError
from rapo.gate.view import View
from rapo.gate.writer import PATIENCE, Job, Work, Writer

POLL = 0.2
"""Seconds between looks at a shared log, and at the clock."""
SNAPSHOT_EVERY = 100_000
"""Events between snapshots."""
_READ = 5000
"""Events read at a time."""

_OWN_FAULTS = (
    ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError
)  # fmt: skip
"""What a job may raise before it appends; anything else is the store's and ends the transaction."""

Clock = Callable[[], float]


class Keeper:
    """Holds the state at the end of the log and the view that decisions are made from.

    Work is put into the writer's queue; the writer does it inside a transaction, takes its events
    into the state, commits, publishes a new view, and only then answers.

    Args:
        store: the log.
        clock: Unix seconds.
        read_only: follow the log only.
    """

    def __init__(self, store: Store, *, clock: Clock = time.time, read_only: bool = False) -> None:
        self.store, self.read_only = store, read_only
        self._clock = clock
        self._lock = threading.RLock()
        self._broken: str | None = None
        """Why nothing can be logged until the gate is opened again."""
        self._outage: str | None = None
        """Why the log is out of reach for the time being."""
        self._seen = self._outage_since = time.monotonic()
        self._unsure = False
        """Whether the state holds more, or less, than the log: it must be read again."""
        self._asked: dict[str, Draft] = {}
        """Decisions with a request id that are not in the log yet."""
        self._state = self._read_log()
        self._snapshot_at = self._state.position
        self._view = View(self._state)
        self._writer = Writer(self._commit, self._idle, POLL)
        self._writer.start()

    def close(self) -> None:
        """Make everything durable, keep a snapshot, let go; may be called twice."""
        if self._writer.is_alive():
            left = self._writer.end()
            if left:
                warnings.warn(
                    f"{len(left)} decisions could not be logged: {self._outage}", stacklevel=2
                )
            if not (self.read_only or self._broken or self._outage or self._unsure):
                try:
                    self.snapshot()
                except (StoreError, OSError) as error:
                    warnings.warn(f"no snapshot was kept: {error}", stacklevel=2)
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def config(self) -> GateConfig:
        """Settings in force."""
        return self._state.config

    def read(self, look: Callable[[State], Any]) -> Any:
        """Look at the state while nothing changes it; `look` must not change it either."""
        with self._lock:
            self._check_sure()
            return look(self._state)

    def verify(self) -> dict[str, Any]:
        """Fold the whole log afresh and compare.

        Returns:
            `ok`; the `position` compared at; `fields`, the hash of the live state, `replay`, that
            of the fresh one, `config`, that of the settings; `integrity` of the database;
            `dropped`, what a compaction left of the log's beginning, or None.
        """
        self.flush()
        with self._lock:
            self._check_sure()
            until, config = self._state.position, self.config.digest()
            live = self._state.field_hash()
        fresh = beginning(self.store)
        _catch_up(fresh, self.store, until)  # without the lock: the gate goes on meanwhile
        found: dict[str, Any] = {
            "position": fresh.position,
            "revision": fresh.revision,
            "tick": fresh.tick,
            "fields": live,
            "replay": fresh.field_hash(),
            "config": config,
            "integrity": self.store.integrity(),
        }
        found["dropped"] = gone = dropped(self.store)
        whole = found["integrity"] == "ok" and (gone is None or gone["intact"])
        same = whole and found["fields"] == found["replay"]
        return {"ok": same, **found}

    def health(self) -> dict[str, Any]:
        """Whether answers are fresh: `ok`, `stale` (the log is out of reach) or `broken`."""
        behind, why = 0, self._broken or self._outage
        if why is None:
            try:
                behind = self.store.last() - self._state.position
            except OSError as error:
                why = str(error)
        age = time.monotonic() - self._seen
        overdue = self._tick_now() - self._state.tick if self._needs_tick() else 0
        stale = why or age > 25 * POLL or overdue > 2 or not self._writer.is_alive()
        status = "broken" if self._broken else "stale" if stale else "ok"
        return {
            "status": status,
            "why": why,
            "revision": self._view.revision,
            "position": self._state.position,
            "behind": max(0, behind),
            "seconds_since_contact": round(age, 3),
            "tick": self._state.tick,
            "mode": self._view.mode,
            "waiting": self._writer.waiting(),
        }

    def flush(self) -> None:
        """Wait until everything so far is durable and in the state."""
        if not self.read_only:
            self._soon(lambda state, log: (None, [])).result()

    def tick(self) -> int:
        """Fold up to the current tick now, and return it."""
        return int(self._soon(lambda state, log: (state.tick, [])).result())

    def snapshot(self) -> None:
        """Keep the state beside the log, so that opening reads only what comes after."""
        with self._lock:
            self._check_sure()
            ledger, position = self._state.ledger, self._state.position
            new = ledger.rows[ledger.kept :]
            self.store.save_snapshot(position, dump(self._state), new, ledger.kept)
            ledger.kept = len(ledger)
            self._snapshot_at = position

    # --- the writer's side

    def _soon(self, work: Work, keys: Sequence[str] = ()) -> Future[Any]:
        if self._broken:
            raise StoreError(self._broken)
        if self.read_only:
            raise StoreError(f"{self.store.address} is open for reading only")
        outage, now = self._outage, time.monotonic()
        if outage and now - self._outage_since > PATIENCE:
            raise StoreError(outage)  # others wait in vain already
        future: Future[Any] = Future()
        self._writer.put(Job(work, future=future, since=now, keys=keys))
        return future

    def _commit(self, jobs: list[Job]) -> StoreError | None:
        """Do jobs in one transaction; answer them once it is durable.

        Returns:
            None once they are answered; why not, if they may be tried again. The transaction may
            have been committed all the same: every job looks for what it appended before.
        """
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        with self._lock:
            try:
                if self._broken:
                    raise StoreError(self._broken)
                self._make_sure()
                keys = [key for job in jobs for key in job.keys]
                with self.store.appending(self._state.position, keys) as log:
                    self._unsure = True
                    self._state.fetch = log.find  # it sees what is not committed yet
                    for event in log.tail(self._state.position):
                        self._state.apply(event)
                    self._tick_if_due(log)
                    self._do(jobs, log, answers)
                self._unsure = False
                self._reached()
                self._publish()
            except Exception as error:
                self._failed(error)
                if isinstance(error, StoreError) and not self._broken:
                    return error
                answers = [(j.future, None, error) for j in jobs if j.future is not None]
                unanswered = [j for j in jobs if j.future is None]
                if unanswered and not self._broken:
                    if answers:  # one of those is the cause
                        self._writer.again(unanswered)
                    else:
                        self._broken = f"decisions cannot be logged: {error!r}"
            finally:
                self._state.fetch = self.store.find
        for future, value, problem in answers:
            if not future.set_running_or_notify_cancel():
                continue
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(value)
        for job in jobs:  # the log knows them by now, or never will
            if job.draft is not None:
                self._asked.pop(str(job.draft.key), None)
        try:
            self._snapshot_if_due()
        except Exception as error:
            self._failed(error)
        return None

    def _do(self, jobs: list[Job], log: Appending, answers: list[Any]) -> None:
        decisions: list[Draft] = []
        for job in jobs:
            if job.draft is not None:
                decisions.append(job.draft)
                continue
            self._log_decisions(decisions, log)
            decisions = []
            assert job.work is not None and job.future is not None
            try:
                value, events = job.work(self._state, log)
            except _OWN_FAULTS as error:
                answers.append((job.future, None, error))  # it appended nothing
                continue
            for event in events:
                self._state.apply(event)
            answers.append((job.future, value, None))
        self._log_decisions(decisions, log)

    def _log_decisions(self, drafts: list[Draft], log: Appending) -> None:
        """Log decisions that nobody waits for; one that is there already is left as it is."""
        if not drafts:
            return
        unique = {str(draft.key): draft for draft in reversed(drafts)}
        there = log.find(list(unique))
        new = [d for k, d in reversed(unique.items()) if k not in there]
        for event in log.append(new):
            self._state.apply(event)

    def _tick_if_due(self, log: Appending) -> None:
        now = self._tick_now()
        if now <= self._state.tick:
            return  # or another replica was faster
        left_before = set(self._state.bands_left)
        body = packed({"tick": now})
        draft = Draft("Tick", self._clock(), None, digest_of(body), body)
        for event in log.append([draft]):
            self._state.apply(event)
        left = self._state.bands_left
        for band in sorted(set(left) - left_before):
            told = packed({"band": band, "seen": left[band], "tick": now})
            for event in log.append([Draft("Escalation", draft.at, None, digest_of(told), told)]):
                self._state.apply(event)

    def _tick_now(self) -> int:
        return floor(self._clock() / self._state.config.tick_seconds)

    def _needs_tick(self) -> bool:
        """Whether time alone would change something."""
        state = self._state
        overrides = list(state.overrides.values())  # at once: the writer may be adding to them
        ends = any(o["expires_at"] is not None for o in overrides)
        return bool(ends or state.pending or state.fold.alive or state.traffic.now.decisions)

    def _idle(self) -> None:
        """Nothing came for a while: follow the log and the clock."""
        if self._broken:
            return
        try:
            with self._lock:
                self._make_sure()
                if self.store.shared or self.read_only:
                    self._follow()
            self._reached()
            if self.read_only:
                return
            if self._tick_now() > self._state.tick and self._needs_tick():
                self._commit([])
        except Exception as error:
            self._failed(error)

    def _snapshot_if_due(self) -> None:
        if self._state.position - self._snapshot_at >= SNAPSHOT_EVERY and not self._unsure:
            self._snapshot_at = self._state.position  # if it fails, not at every look
            self.snapshot()

    def _follow(self) -> None:
        """Take in what other replicas appended."""
        while True:
            events = self.store.read(self._state.position, _READ)
            self._unsure = True  # an event is half taken in if the log goes away now
            for event in events:
                self._state.apply(event)
            self._unsure = False
            if len(events) < _READ:
                break
        self._publish()

    def _reached(self) -> None:
        self._seen = time.monotonic()
        self._outage = None

    def _publish(self) -> None:
        if self._state.revision != self._view.revision:
            self._view = View(self._state)

    def _failed(self, error: Exception) -> None:
        """The transaction is gone, or nobody knows; the state may hold what was in it."""
        if self.store.shared or self.read_only or isinstance(error, BusyError):
            if self._outage is None:
                self._outage_since = time.monotonic()
            self._outage = f"the log is out of reach: {error}"
        else:
            # After a failed write or sync nobody knows what the disk holds until it is read anew.
            self._broken = f"the log could not be written: {error}; open the gate again"

    def _make_sure(self) -> None:
        """Read the state again if it may not be what the log says."""
        if self._unsure:
            self._state = self._read_log()
            self._unsure = False
            self._publish()

    def _check_sure(self) -> None:
        if self._unsure:
            raise StoreError(self._broken or self._outage or "the log must be read again first")

    def _read_log(self) -> State:
        """The state at the end of the log, from the newest snapshot that is sound."""
        state, kept = None, self.store.load_snapshot()
        if kept is not None:
            try:
                state = load(*kept, self.store.find)
            except ValueError as error:
                warnings.warn(f"{error}; the whole log is read instead", stacklevel=3)
        state = state or beginning(self.store)
        _catch_up(state, self.store)
        return state


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
