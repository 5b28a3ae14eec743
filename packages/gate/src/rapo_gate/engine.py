"""`Engine`: the state in memory, kept in step with the log by one writer thread."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from math import floor
from typing import Any, TypeVar

from rapo_core.checks import UserError
from rapo_gate.config import Clock, GateConfig
from rapo_gate.decide import View
from rapo_gate.events import NewEvent, drafted
from rapo_gate.fold.snapshot import Replay, beginning, dropped, dump, folded, load, replayed
from rapo_gate.fold.state import State
from rapo_gate.log.store import Appending, BusyError, Store, StoreError, pieces
from rapo_gate.writer import PATIENCE, Job, Work, Writer

T = TypeVar("T")

POLL = 0.2
"""Seconds between looks at a shared log, and at the clock."""
SNAPSHOT_EVERY = 100_000
"""Events between snapshots."""
AHEAD = 60.0
"""Seconds that the last tick may be ahead of the clock before health says so."""

_OWN_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a job may raise for reasons of its own; the rest is the store's and ends the transaction."""

Answer = tuple[Future[Any], Any, BaseException | None]
"""Whom to answer, with which value or which error."""


class _JobFailedError(Exception):
    """A job failed after it had appended: its transaction is given up, the job's error kept."""

    def __init__(self, job: Job, answer: Answer) -> None:
        super().__init__(str(answer[2]))
        self.job, self.answer = job, answer


class Engine:
    """Holds the state at the end of the log and the view that decisions are made from.

    Work is put into the writer's queue; the writer does it inside a transaction, takes its events
    into the state, commits, publishes a new view, and only then answers. `lock` is held by whoever
    changes `state`. Before a change the engine sets `unsure`, and clears it once state and log are
    known to agree: a state that took in half of something is read from the log again before
    anybody looks at it.

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
        self.queued: dict[str, NewEvent] = {}
        """Decisions with a request id that are not in the log yet."""
        self.lock = threading.RLock()
        self.unsure = False
        """Whether the state holds more, or less, than the log."""
        self.state = self._read_log()
        """The state itself; only the writer changes it, under the lock."""
        self.view = View(self.state)
        """What decisions are made from."""
        self._snapshot_at = self.state.position
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
            if not (self.read_only or self.broken or self.outage or self.unsure):
                try:
                    self.snapshot()
                except (StoreError, OSError) as error:
                    warnings.warn(f"no snapshot was kept: {error}", stacklevel=2)
        self.store.close()

    @property
    def config(self) -> GateConfig:
        """Settings in force."""
        return self.state.config

    def read(self, look: Callable[[State], T]) -> T:
        """Look at the state while nothing changes it; `look` must not change it either."""
        with self.lock:
            if self.unsure:
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
            with self.lock:
                self._make_sure()
                self._follow()
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
        """Keep the state beside the log, so that opening reads only what comes after."""
        with self.lock:
            if self.unsure:
                raise StoreError("no snapshot: the state may not be what the log says")
            ledger, position = self.state.ledger, self.state.position
            new = ledger.rows[ledger.kept :]
            self.store.save_snapshot(position, dump(self.state), new, ledger.kept)
            ledger.kept = len(ledger)
            self._snapshot_at = position

    # --- state and log

    def _read_log(self) -> State:
        """The state at the end of the log, from the newest snapshot that is sound.

        Raises:
            UserError: the snapshot is ahead of the log, or is of another log.
        """
        state, kept = None, self.store.load_snapshot()
        if kept is not None:
            try:
                state = load(*kept)
            except ValueError as error:
                warnings.warn(f"{error}; the whole log is read instead", stacklevel=4)
        if state is not None:
            self._check_snapshot(state)
        return folded(state or beginning(self.store), self.store)

    def _check_snapshot(self, state: State) -> None:
        """Refuse a snapshot that this log cannot have led to."""
        first, last = self.store.read(0, 1), self.store.last()
        if first and first[0].data()["created"]["id"] != state.created["id"]:
            raise UserError(
                f"{self.store.address} holds the snapshot of another gate; restore a copy in which "
                "log and snapshot belong together"
            )
        if state.position > last:
            raise UserError(
                f"{self.store.address} ends at event {last}, but its snapshot was kept at event "
                f"{state.position}: the end of the log is missing; restore a whole copy of it"
            )

    def _make_sure(self) -> None:
        """Read the state again if it may not be what the log says."""
        if self.unsure:
            self.state = self._read_log()
            self.unsure = False
            self._publish()

    def _follow(self) -> None:
        """Take in what others appended."""
        for events in pieces(self.store, self.state.position):
            self.unsure = True  # an event is half taken in if the log goes away now
            for event in events:
                self.state.apply(event, self.store)
            self.unsure = False
        self._publish()

    def _publish(self) -> None:
        """Let decisions see the state."""
        if self.state.revision != self.view.revision:
            self.view = View(self.state)

    # --- the writer's side

    def put(self, decision: NewEvent) -> None:
        """Log a decision that nobody waits for, soon."""
        try:
            self._writer.put(Job(None, decision, None, 0.0, (str(decision.key),)))
        except BaseException:
            self.queued.pop(str(decision.key), None)  # it is on its way nowhere
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
        left, answers = list(jobs), list[Answer]()
        with self.lock:
            done: list[Answer] = []
            while True:
                try:
                    done = self._transact(left)
                    self._reached()
                    self._publish()
                    break
                except _JobFailedError as failure:
                    # Nothing was logged. The others are done again, in the same order.
                    answers.append(failure.answer)
                    left.remove(failure.job)
                except Exception as error:
                    self._failed(error)
                    if isinstance(error, StoreError) and not self.broken:
                        return error
                    done = [(j.future, None, error) for j in left if j.future is not None]
                    if len(done) < len(left) and not self.broken:
                        self.broken = f"decisions cannot be logged: {error!r}"
                    break
        self._tell(answers + done)
        for job in jobs:  # the log knows them by now, or never will
            if job.draft is not None:
                self.queued.pop(str(job.draft.key), None)
        try:
            self._snapshot_if_due()
        except Exception as error:
            self._failed(error)
        return None

    def _tell(self, answers: list[Answer]) -> None:
        for future, value, problem in answers:
            if future.set_running_or_notify_cancel():
                future.set_result(value) if problem is None else future.set_exception(problem)

    def _transact(self, jobs: list[Job]) -> list[Answer]:
        """Do jobs in one transaction and take what they append into the state; their answers.

        Raises:
            _JobFailedError: a job failed after it had appended something; nothing was logged.
        """
        if self.broken:
            raise StoreError(self.broken)
        self._make_sure()
        keys = [key for job in jobs for key in job.keys]
        with self.store.appending(self.state.position, keys) as log:
            self.unsure = True
            for event in log.tail(self.state.position):
                self.state.apply(event, log)
            self._tick_if_due(log)
            answers = self._do(jobs, log)
        self.unsure = False
        return answers

    def _do(self, jobs: list[Job], log: Appending) -> list[Answer]:
        answers: list[Answer] = []
        decisions: list[NewEvent] = []
        for job in jobs:
            if job.draft is not None:
                decisions.append(job.draft)
                continue
            self._log_decisions(decisions, log)
            decisions = []
            assert job.work is not None and job.future is not None
            before = log.appended
            try:
                value, events = job.work(self.state, log)
                for event in events:
                    self.state.apply(event, log)
                answers.append((job.future, value, None))
            except StoreError:
                raise
            except (*_OWN_FAULTS, OSError) as error:
                if log.appended != before or isinstance(error, OSError):
                    raise _JobFailedError(job, (job.future, None, error)) from error
                answers.append((job.future, None, error))
        self._log_decisions(decisions, log)
        return answers

    def _log_decisions(self, drafts: list[NewEvent], log: Appending) -> None:
        """Log decisions that nobody waits for; one that is there already is left as it is."""
        if not drafts:
            return
        unique = {str(draft.key): draft for draft in reversed(drafts)}
        there = log.find(list(unique))
        self._log(log, *(d for k, d in reversed(unique.items()) if k not in there))

    def _log(self, log: Appending, *drafts: NewEvent) -> None:
        for event in log.append(drafts):
            self.state.apply(event, log)

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
            with self.lock:
                self._make_sure()
                if self.store.shared or self.read_only:
                    self._follow()
            self._reached()
            if self.read_only:
                return
            if self._tick_now() > self.state.tick and self.needs_tick():
                self._commit([])
        except Exception as error:
            self._failed(error)

    def _snapshot_if_due(self) -> None:
        if self.state.position - self._snapshot_at >= SNAPSHOT_EVERY and not self.unsure:
            self._snapshot_at = self.state.position  # if it fails, not at every look
            self.snapshot()

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
