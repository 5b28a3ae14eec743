"""`Engine`: the state in memory, kept in step with the log by one writer thread."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from math import floor
from typing import Any, TypeVar

from rapo_gate.config import Clock, GateConfig
from rapo_gate.decide import View
from rapo_gate.events import Draft, drafted
from rapo_gate.memory import Memory, Replay, dropped, replayed
from rapo_gate.state import State
from rapo_gate.store import Appending, BusyError, Store, StoreError
from rapo_gate.writer import PATIENCE, Job, Work, Writer

T = TypeVar("T")

POLL = 0.2
"""Seconds between looks at a shared log, and at the clock."""
SNAPSHOT_EVERY = 100_000
"""Events between snapshots."""
AHEAD = 60.0
"""Seconds that the last tick may be ahead of the clock before health says so."""

_OWN_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a job may raise before it appends; anything else is the store's and ends the transaction."""


class Engine:
    """Holds the state at the end of the log and the view that decisions are made from.

    Work is put into the writer's queue; the writer does it inside a transaction, takes its events
    into the state, commits, publishes a new view, and only then answers.

    Args:
        store: the log.
        clock: Unix seconds.
        read_only: follow the log only.
    """

    def __init__(self, store: Store, *, clock: Clock = time.time, read_only: bool = False) -> None:
        self.store, self.read_only, self.clock = store, read_only, clock
        self.broken: str | None = None
        """Why nothing can be logged until the gate is opened again."""
        self.outage: str | None = None
        """Why the log is out of reach for the time being."""
        self._seen = self._out_since = time.monotonic()
        self.asked: dict[str, Draft] = {}
        """Decisions with a request id that are not in the log yet."""
        self._memory = Memory(store)
        self._writer = Writer(self._commit, self._idle, POLL)
        self._writer.start()

    def close(self) -> None:
        """Make everything durable, keep a snapshot, let go; may be called twice."""
        if self._writer.is_alive():
            left = self._writer.end()
            if left:
                warnings.warn(
                    f"{len(left)} decisions could not be logged: {self.outage}", stacklevel=2
                )
            if not (self.read_only or self.broken or self.outage or self._memory.unsure):
                try:
                    self.snapshot()
                except (StoreError, OSError) as error:
                    warnings.warn(f"no snapshot was kept: {error}", stacklevel=2)
        self.store.close()

    @property
    def state(self) -> State:
        """The state itself; only the writer changes it, under the lock."""
        return self._memory.state

    @property
    def view(self) -> View:
        """What decisions are made from."""
        return self._memory.view

    @property
    def config(self) -> GateConfig:
        """Settings in force."""
        return self.state.config

    def read(self, look: Callable[[State], T]) -> T:
        """Look at the state while nothing changes it; `look` must not change it either."""
        with self._memory.lock:
            if self._memory.unsure:
                raise StoreError(self.broken or self.outage or "the log must be read again first")
            return look(self.state)

    def verify(self, replay: Callable[[int], Replay] | None = None) -> dict[str, Any]:
        """Fold the whole log afresh and compare.

        Args:
            replay: folds the log up to a position, in another process if it can; by default here.

        Returns:
            `ok`; the `position` compared at; `fields`, the hash of the live state, `replay`, that
            of the fresh one, `config`, that of the settings; `integrity` of the database;
            `dropped`, what a compaction left of the log's beginning, or None.
        """
        self.flush()
        until, config, live = self.read(lambda s: (s.position, s.config.digest(), s.field_hash()))
        fresh = replay(until) if replay else replayed(self.store, until)  # the gate goes on
        gone = dropped(self.store)
        whole = fresh.integrity == "ok" and (gone is None or gone["intact"])
        return {
            "ok": whole and live == fresh.fields,
            "position": fresh.position,
            "revision": fresh.revision,
            "tick": fresh.tick,
            "fields": live,
            "replay": fresh.fields,
            "config": config,
            "integrity": fresh.integrity,
            "dropped": gone,
        }

    def health(self) -> dict[str, Any]:
        """Whether answers are fresh.

        Returns:
            `status`: `ok`, `ahead` (fresh, but ticks of the future were folded: the clock ran
            ahead once, and nothing is folded until it gets there), `stale` (the log is out of
            reach) or `broken`; and `why`.
        """
        behind, why = 0, self.broken or self.outage
        if why is None:
            try:
                behind = self.store.last() - self.state.position
            except OSError as error:
                why = str(error)
        age = time.monotonic() - self._seen
        overdue = self._tick_now() - self.state.tick if self.needs_tick() else 0
        stale = why or age > 25 * POLL or overdue > 2 or not self._writer.is_alive()
        ahead = max(0.0, self.state.tick * self.config.tick_seconds - self.clock())
        status = "broken" if self.broken else "stale" if stale else "ok"
        if status == "ok" and ahead > AHEAD:
            status, why = "ahead", f"the last tick is {ahead:.0f} s ahead of the clock"
        return {
            "status": status,
            "why": why,
            "revision": self.view.revision,
            "position": self.state.position,
            "behind": max(0, behind),
            "seconds_since_contact": round(age, 3),
            "seconds_ahead": round(ahead, 3),
            "tick": self.state.tick,
            "mode": self.view.mode,
            "waiting": self._writer.waiting(),
        }

    def follow(self, position: int, seconds: float = PATIENCE) -> None:
        """Wait until the state has taken the log in up to a position.

        Raises:
            StoreError: it did not come within `seconds`.
        """
        last = time.monotonic() + seconds
        while self.state.position < position:
            with self._memory.lock:
                self._memory.make_sure()
                self._memory.follow()
            if self.state.position < position:
                if time.monotonic() > last:
                    raise StoreError(f"the log has no event {position} after {seconds:g} s")
                time.sleep(POLL / 10)

    def flush(self) -> None:
        """Wait until everything so far is durable and in the state."""
        if not self.read_only:
            self.submit(lambda state, log: (None, [])).result()

    def tick(self) -> int:
        """Fold up to the current tick now, and return it."""
        return int(self.submit(lambda state, log: (state.tick, [])).result())

    def snapshot(self) -> None:
        """Keep the state beside the log, so that opening is quick."""
        self._memory.snapshot()

    # --- the writer's side

    def put(self, decision: Draft) -> None:
        """Log a decision that nobody waits for, soon."""
        try:
            self._writer.put(Job(None, decision, None, 0.0, (str(decision.key),)))
        except BaseException:
            self.asked.pop(str(decision.key), None)  # it is on its way nowhere
            raise

    def submit(self, work: Work, keys: Sequence[str] = ()) -> Future[Any]:
        """Have work done in a transaction; answered once it is durable.

        Args:
            work: what to do.
            keys: what it is going to look for in the log: one question brings it all.
        """
        if self.broken:
            raise StoreError(self.broken)
        if self.read_only:
            raise StoreError(f"{self.store.address} is open for reading only")
        outage, now = self.outage, time.monotonic()
        if outage and now - self._out_since > PATIENCE:
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
        with self._memory.lock:
            try:
                if self.broken:
                    raise StoreError(self.broken)
                self._memory.make_sure()
                keys = [key for job in jobs for key in job.keys]
                with self.store.appending(self.state.position, keys) as log:
                    self._memory.unsure = True
                    self.state.fetch = log.find  # it sees what is not committed yet
                    for event in log.tail(self.state.position):
                        self.state.apply(event)
                    self._tick_if_due(log)
                    self._do(jobs, log, answers)
                self._memory.unsure = False
                self._reached()
                self._memory.publish()
            except Exception as error:
                self._failed(error)
                if isinstance(error, StoreError) and not self.broken:
                    return error
                answers = [(j.future, None, error) for j in jobs if j.future is not None]
                unanswered = [j for j in jobs if j.future is None]
                if unanswered and not self.broken:
                    if answers:  # one of those is the cause
                        self._writer.again(unanswered)
                    else:
                        self.broken = f"decisions cannot be logged: {error!r}"
            finally:
                self.state.fetch = self.store.find
        for future, value, problem in answers:
            if future.set_running_or_notify_cancel():
                future.set_result(value) if problem is None else future.set_exception(problem)
        for job in jobs:  # the log knows them by now, or never will
            if job.draft is not None:
                self.asked.pop(str(job.draft.key), None)
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
                value, events = job.work(self.state, log)
            except _OWN_FAULTS as error:
                answers.append((job.future, None, error))  # it appended nothing
                continue
            for event in events:
                self.state.apply(event)
            answers.append((job.future, value, None))
        self._log_decisions(decisions, log)

    def _log_decisions(self, drafts: list[Draft], log: Appending) -> None:
        """Log decisions that nobody waits for; one that is there already is left as it is."""
        if not drafts:
            return
        unique = {str(draft.key): draft for draft in reversed(drafts)}
        there = log.find(list(unique))
        self._log(log, *(d for k, d in reversed(unique.items()) if k not in there))

    def _log(self, log: Appending, *drafts: Draft) -> None:
        for event in log.append(drafts):
            self.state.apply(event)

    def _tick_if_due(self, log: Appending) -> None:
        now = self._tick_now()
        if now <= self.state.tick:
            return  # or another replica was faster
        left_before = set(self.state.bands_left)
        at = self.clock()
        self._log(log, drafted("Tick", at, {"tick": now}))
        left = self.state.bands_left
        for band in sorted(set(left) - left_before):
            content = {"band": band, "seen": left[band], "tick": now}
            self._log(log, drafted("Escalation", at, content))

    def _tick_now(self) -> int:
        return floor(self.clock() / self.state.config.tick_seconds)

    def needs_tick(self) -> bool:
        """Whether time alone would change something."""
        state = self.state
        overrides = list(state.overrides.values())  # at once: the writer may be adding to them
        ends = any(o["expires_at"] is not None for o in overrides)
        return bool(ends or state.pending or state.fold.live.size or state.traffic.now.decisions)

    def _idle(self) -> None:
        """Nothing came for a while: follow the log and the clock."""
        if self.broken:
            return
        try:
            with self._memory.lock:
                self._memory.make_sure()
                if self.store.shared or self.read_only:
                    self._memory.follow()
            self._reached()
            if self.read_only:
                return
            if self._tick_now() > self.state.tick and self.needs_tick():
                self._commit([])
        except Exception as error:
            self._failed(error)

    def _snapshot_if_due(self) -> None:
        memory = self._memory
        if self.state.position - memory.snapshot_at >= SNAPSHOT_EVERY and not memory.unsure:
            memory.snapshot_at = self.state.position  # if it fails, not at every look
            memory.snapshot()

    def _reached(self) -> None:
        self._seen = time.monotonic()
        self.outage = None

    def _failed(self, error: Exception) -> None:
        """The transaction is gone, or nobody knows; the state may hold what was in it."""
        if self.store.shared or self.read_only or isinstance(error, BusyError):
            if self.outage is None:
                self._out_since = time.monotonic()
            self.outage = f"the log is out of reach: {error}"
        else:
            # After a failed write or sync nobody knows what the disk holds until it is read anew.
            self.broken = f"the log could not be written: {error}; open the gate again"
