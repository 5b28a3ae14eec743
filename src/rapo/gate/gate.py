"""`Gate`: harm memory in front of a platform."""

from __future__ import annotations

import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from hashlib import blake2b
from itertools import count
from math import floor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo.gate import acts
from rapo.gate.acts import Effect
from rapo.gate.config import GateConfig
from rapo.gate.events import (
    DecisionBody,
    Draft,
    Event,
    Region,
    checked_region,
    checked_regions,
    checked_word,
    decision_key,
    digest_of,
    exposure_key,
    pack_decision,
    packed,
    unpack_decision,
)
from rapo.gate.intake import HarmReport, ReportResult, check, refused, take_in
from rapo.gate.snapshot import dump, load
from rapo.gate.state import State
from rapo.gate.store import Appending, Store, StoreError, open_store
from rapo.gate.view import Decision, View, answer
from rapo.gate.writer import Job, Work, Writer

POLL = 0.2
"""Seconds between looks at a shared log, and at the clock."""
SNAPSHOT_EVERY = 100_000
"""Events between snapshots."""
MOST_CANDIDATES = 100_000
_READ = 5000
"""Events read at a time."""

Clock = Callable[[], float]


class Field(NamedTuple):
    """A region's trace, scar and conductance."""

    G: float
    H: float
    psi: float


class Gate:
    """Multiplies proposed distributions by what reports of harm have left of each region.

    The log is the truth: everything else is folded from it. Decisions are made from memory without
    a lock; a writer thread logs them in groups. Reports and human actions return once they are
    durable. Safe to use from many threads.

    >>> import tempfile, os
    >>> folder = tempfile.mkdtemp()
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     gate = Gate.open(os.path.join(folder, "gate.db"))
    >>> gate.decide(["cats", "diets"], [0.5, 0.5]).mode
    'shadow'
    >>> gate.close()
    """

    def __init__(self, store: Store, *, clock: Clock = time.time, read_only: bool = False) -> None:
        self.store, self.read_only = store, read_only
        self._clock = clock
        self._lock = threading.RLock()
        self._broken: str | None = None
        self._seen = time.monotonic()
        self._prefix, self._numbers = secrets.token_hex(6), count(1)
        self._state = self._read_log()
        self._snapshot_at = self._state.position
        self._escalated: set[str] = set(self._state.bands_left)
        self._view = View(self._state)
        self._writer = Writer(self._commit, self._idle, POLL)
        self._writer.start()

    # --- opening and closing

    @classmethod
    def open(
        cls,
        address: str | Path,
        config: GateConfig | None = None,
        *,
        create: bool = True,
        read_only: bool = False,
        clock: Clock = time.time,
    ) -> Gate:
        """Open the gate at a path or a `postgresql://` address; a new one starts in shadow mode.

        Args:
            address: file (SQLite), or `postgresql://…` for several replicas.
            config: settings of a new gate; for an existing one they must be what it has.
            create: make a gate where there is none.
            read_only: look at a gate that another process writes.
            clock: Unix seconds; for tests and simulations.
        """
        store = open_store(str(address), create=create, read_only=read_only)
        try:
            if store.last() == 0:
                if read_only or not create:
                    raise ValueError(f"{address} holds no gate; rapo gate init makes one")
                _found(store, config or GateConfig(), clock())
            gate = cls(store, clock=clock, read_only=read_only)
        except BaseException:
            store.close()
            raise
        if config is not None and config != gate.config:
            old, new = gate.config.to_dict(), config.to_dict()
            gate.close()
            differ = [f"{k}: {old[k]} there, {new[k]} given" for k in old if old[k] != new[k]]
            raise ValueError(
                f"{address} has other settings ({'; '.join(differ)}); leave config out and use "
                "gate.configure to change them"
            )
        return gate

    def close(self) -> None:
        """Make everything durable, keep a snapshot, let go; may be called twice."""
        if self._writer.is_alive():
            self._writer.end()
            if not (self.read_only or self._broken):
                try:
                    self.snapshot()
                except (StoreError, OSError) as error:
                    warnings.warn(f"no snapshot was kept: {error}", stacklevel=2)
        self.store.close()

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- what platforms call

    @property
    def config(self) -> GateConfig:
        """Settings in force."""
        return self._state.config

    def decide(
        self,
        regions: Sequence[Region] | npt.NDArray[Any],
        p: npt.ArrayLike,
        request_id: str | None = None,
        *,
        stimulus: str | None = None,
    ) -> Decision:
        """Gate a proposed distribution.

        Args:
            regions: region of each candidate, (n,): integers, or strings; they may repeat.
            p: proposed probabilities >= 0 that sum to 1, (n,).
            request_id: sent twice with the same body, the first answer comes again.
            stimulus: what is being recommended, for the outcome metrics.

        Returns:
            The answer at once; it is logged within milliseconds (`flush` waits for that).
        """
        decision, draft = self._decide(regions, p, request_id, stimulus)
        self._writer.put(Job(None, draft))
        return decision

    def decide_logged(
        self,
        regions: Sequence[Region] | npt.NDArray[Any],
        p: npt.ArrayLike,
        request_id: str | None = None,
        *,
        stimulus: str | None = None,
    ) -> Future[Decision]:
        """As `decide`, answered once the decision is durable."""
        decision, draft = self._decide(regions, p, request_id, stimulus)

        def log(state: State, log: Appending) -> tuple[Decision, list[Event]]:
            first = log.find([str(draft.key)]) if request_id is not None else {}
            if not first:
                return decision, log.append([draft])
            (event,) = first.values()
            if event.digest != draft.digest:
                raise ConflictError(f"request_id {request_id!r} has another body")
            return self._again(unpack_decision(event.body), decision.decision_id), []

        return self._soon(log)

    def expose(self, decision_id: str, shown: Iterable[Region]) -> bool:
        """Say which candidates of a decision were really shown; else the served shares count.

        Returns:
            Whether it came in time: reports on that decision have not counted yet.
        """
        return bool(self.expose_logged(decision_id, shown).result())

    def expose_logged(self, decision_id: str, shown: Iterable[Region]) -> Future[bool]:
        """As `expose`, without waiting."""
        checked_word("decision_id", decision_id)
        if isinstance(shown, str | bytes):
            raise ValueError(f"shown must be a list of regions, got {shown!r}")
        names = [checked_region(r) for r in shown]
        body = packed({"decision_id": decision_id, "shown": names})
        draft = Draft("Exposure", self._clock(), exposure_key(decision_id), digest_of(body), body)

        def log(state: State, log: Appending) -> tuple[bool, list[Event]]:
            found = log.find([decision_key(decision_id), exposure_key(decision_id)])
            made = found.get(decision_key(decision_id))
            if made is None:
                raise LookupError(f"decision_id {decision_id!r} is of no decision of this gate")
            decision = unpack_decision(made.body)
            foreign = set(names) - set(decision.ids())
            if foreign:
                raise ValueError(f"{sorted(map(str, foreign))[0]!r} was not among the candidates")
            in_time = decision.tick + state.config.D > state.tick
            first = found.get(exposure_key(decision_id))
            if first is None:
                return in_time, log.append([draft])
            if first.digest != draft.digest:
                raise ConflictError(f"decision {decision_id!r} was exposed with other candidates")
            return in_time, []

        return self._soon(log)

    def report(self, items: Iterable[HarmReport]) -> list[ReportResult]:
        """Take in reports of harm; one result for each, in order. Durable when it returns."""
        return list(self.report_logged(items).result())

    def report_logged(self, items: Iterable[HarmReport]) -> Future[list[ReportResult]]:
        """As `report`, without waiting."""
        now, config = self._clock(), self.config
        checked: list[Any] = []
        for item in items:
            try:
                checked.append(check(item, config, now))
            except ValueError as error:
                checked.append(refused(str(error)))
        if not any(not isinstance(c, ReportResult) for c in checked):
            done: Future[list[ReportResult]] = Future()
            done.set_result(checked)
            return done
        return self._soon(lambda state, log: take_in(checked, state, log, now))

    # --- what people do

    def confirm(
        self,
        reports: list[int] | None = None,
        regions: list[Region] | None = None,
        *,
        reason: str = "",
        by: str = "program",
        dry_run: bool = False,
    ) -> Effect:
        """Vouch for reports or regions: the regions may scar for `confirm_ticks`.

        Late and quarantined reports count from the next tick on.
        """
        return self._act("Confirm", dry_run, lambda state: acts.confirm(
            state, reports=reports, regions=regions, reason=_reason(reason, dry_run), by=by
        ))  # fmt: skip

    def override(
        self,
        region: Region,
        psi: float | None,
        *,
        expires_at: float | None = None,
        reason: str = "",
        by: str = "program",
        dry_run: bool = False,
    ) -> Effect:
        """Set a region's psi by hand until `expires_at` (Unix seconds); None takes that back."""
        return self._act("Override", dry_run, lambda state: acts.override(
            state, region, psi, expires_at=expires_at, now=self._clock(),
            reason=_reason(reason, dry_run), by=by,
        ))  # fmt: skip

    def allow(
        self,
        region: Region,
        *,
        remove: bool = False,
        reason: str = "",
        by: str = "program",
        dry_run: bool = False,
    ) -> Effect:
        """Put a region on the allow-list: no report on it counts, nor ever did; or take it off."""
        return self._act("Allow", dry_run, lambda state: acts.allow(
            state, region, remove=remove, reason=_reason(reason, dry_run), by=by
        ))  # fmt: skip

    def rollback(
        self,
        reports: list[int] | int | None = None,
        source: str | None = None,
        start: float | None = None,
        end: float | None = None,
        *,
        reason: str = "",
        by: str = "program",
        dry_run: bool = False,
    ) -> Effect:
        """Take reports out as if they had never come: some, a reporter's, a time range's.

        Args:
            reports: report ids.
            source: every report of this reporter so far.
            start: reports about exposures from this time on, Unix seconds.
            end: and before this time.
            reason: for the log; a dry run needs none.
            by: who does it.
            dry_run: only show what would change.
        """
        wanted = [reports] if isinstance(reports, int) else reports
        return self._act("Rollback", dry_run, lambda state: acts.rollback(
            state, reports=wanted, source=source, start=start, end=end,
            reason=_reason(reason, dry_run), by=by,
        ))  # fmt: skip

    def set_mode(
        self, mode: str, percent: float = 100.0, *, reason: str = "set by program",
        by: str = "program", dry_run: bool = False,
    ) -> Effect:  # fmt: skip
        """`shadow` computes and logs; `enforce` serves the gated law to `percent` of decisions."""
        return self._act("ConfigChange", dry_run, lambda state: acts.mode(
            mode, percent, reason=reason, by=by
        ))  # fmt: skip

    def configure(
        self, changes: dict[str, Any], *, reason: str = "", by: str = "program",
        dry_run: bool = False,
    ) -> Effect:  # fmt: skip
        """Change settings from the next tick on; those that ticks hang on cannot change."""
        return self._act("ConfigChange", dry_run, lambda state: acts.configure(
            state, changes, reason=_reason(reason, dry_run), by=by
        ))  # fmt: skip

    def label(
        self, labels: dict[Region, dict[str, str]], *, reason: str = "", by: str = "program"
    ) -> Effect:
        """Label regions with `group`, `topic`, `sensitive` ("yes"/"no") for audits and outcomes."""
        return self._act("ConfigChange", False, lambda state: acts.labels(
            state, labels, reason=_reason(reason, False), by=by
        ))  # fmt: skip

    # --- what it tells

    def fields(self) -> dict[Region, Field]:
        """G, H and psi of every known region."""
        with self._lock:
            G, H, psi = self._state.fold.G, self._state.fold.H, self._state.psi()
            names = self._state.regions.names
            return {
                name: Field(float(G[i]), float(H[i]), float(psi[i])) for i, name in enumerate(names)
            }

    def read(self, look: Callable[[State], Any]) -> Any:
        """Look at the state while nothing changes it; `look` must not change it either."""
        with self._lock:
            return look(self._state)

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events of the log after a position, in order."""
        return self.store.read(after, limit)

    def verify(self) -> dict[str, Any]:
        """Fold the whole log afresh and compare.

        Returns:
            `ok`; the `position` compared at; `fields`, the hash of the live state, `replay`, that
            of the fresh one, `config`, that of the settings; `integrity` of the database.
        """
        self.flush()
        with self._lock:
            fresh = State(self.store.find)
            _catch_up(fresh, self.store, self._state.position)
            live = self._state.field_hash()
            found = {
                "position": fresh.position,
                "revision": fresh.revision,
                "tick": fresh.tick,
                "fields": live,
                "replay": fresh.field_hash(),
                "config": self.config.digest(),
                "integrity": self.store.integrity(),
            }
        same = found["fields"] == found["replay"] and found["integrity"] == "ok"
        return {"ok": same, **found}

    def health(self) -> dict[str, Any]:
        """Whether answers are fresh: `ok`, `stale` (the log is out of reach) or `broken`."""
        behind = 0
        age = time.monotonic() - self._seen
        try:
            behind = self.store.last() - self._state.position
        except OSError:
            age = max(age, 10 * POLL)
        overdue = self._tick_now() - self._state.tick if self._needs_tick() else 0
        stale = age > 25 * POLL or overdue > 2 or not self._writer.is_alive()
        status = "broken" if self._broken else "stale" if stale else "ok"
        return {
            "status": status,
            "why": self._broken,
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
            ledger, position = self._state.ledger, self._state.position
            new = ledger.rows[ledger.kept :]
            self.store.save_snapshot(position, dump(self._state), new, ledger.kept)
            ledger.kept = len(ledger)
            self._snapshot_at = position

    # --- the writer's side

    def _decide(
        self, regions: Any, p: npt.ArrayLike, request_id: str | None, stimulus: str | None
    ) -> tuple[Decision, Draft]:
        if self._broken or self.read_only:
            raise StoreError(self._broken or f"{self.store.address} is open for reading only")
        names = checked_regions(regions)
        law = _law(p)
        if law.shape != (len(names),):
            raise ValueError(f"p must have {len(names)} entries like regions, got {law.shape}")
        if len(names) > MOST_CANDIDATES:
            raise ValueError(f"{len(names)} candidates; at most {MOST_CANDIDATES}")
        if stimulus is not None:
            checked_word("stimulus", stimulus)
        if request_id is None:
            decision_id = f"{self._prefix}{next(self._numbers):x}"
        else:
            checked_word("request_id", request_id)
            decision_id = blake2b(request_id.encode(), digest_size=12).hexdigest()
        view, now = self._view, self._clock()
        tick = max(floor(now / view.tick_seconds), view.tick)
        decision, body = view.decide(names, law, tick, decision_id, stimulus)
        asked = b"".join((
            "\n".join(names).encode() if isinstance(names, list) else names.tobytes(),
            law.tobytes(), (stimulus or "").encode(),
        ))  # fmt: skip
        draft = Draft(
            "Decision", now, decision_key(decision_id), digest_of(asked), pack_decision(body)
        )
        return decision, draft

    def _again(self, body: DecisionBody, decision_id: str) -> Decision:
        """The first answer to a request that came again."""
        given = (body.p, body.psi, body.enforced, self._view.psi_min)
        return answer(*given, decision_id, body.revision)[0]

    def _act(self, kind: str, dry_run: bool, body_of: Callable[[State], dict[str, Any]]) -> Effect:
        """Check an action against the state at the end of the log, then try it or do it."""

        def work(state: State, log: Appending) -> tuple[Effect, list[Event]]:
            draft = acts.draft(kind, body_of(state), self._clock())
            effect = acts.tried(state, draft)
            if dry_run:
                return effect, []
            events = log.append([draft])
            done = Effect(
                False, effect.regions, effect.reports, events[0].position, events[0].position
            )
            return done, events

        return self._soon(work).result()  # type: ignore[no-any-return]

    def _soon(self, work: Work) -> Future[Any]:
        if self._broken:
            raise StoreError(self._broken)
        if self.read_only:
            raise StoreError(f"{self.store.address} is open for reading only")
        future: Future[Any] = Future()
        self._writer.put(Job(work, future=future))
        return future

    def _commit(self, jobs: list[Job]) -> None:
        """Do jobs in one transaction; answer them once it is durable."""
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        with self._lock:
            try:
                if self._broken:
                    raise StoreError(self._broken)
                with self.store.appending() as log:
                    self._state.fetch = log.find  # it sees what is not committed yet
                    for event in log.tail(self._state.position):
                        self._state.apply(event)
                    self._tick_if_due(log)
                    self._do(jobs, log, answers)
                self._committed()
            except Exception as error:
                self._failed(error)
                answers = [(j.future, None, error) for j in jobs if j.future is not None]
            finally:
                self._state.fetch = self.store.find
        for future, value, problem in answers:
            if not future.set_running_or_notify_cancel():
                continue
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(value)

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
            except (ValueError, LookupError) as error:
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
            return
        body = packed({"tick": now})
        draft = Draft("Tick", self._clock(), None, digest_of(body), body)
        for event in log.append([draft]):
            self._state.apply(event)
        left = self._state.bands_left
        for band in sorted(set(left) - self._escalated):
            told = packed({"band": band, "seen": left[band], "tick": now})
            for event in log.append([Draft("Escalation", draft.at, None, digest_of(told), told)]):
                self._state.apply(event)
        self._escalated = set(left)

    def _tick_now(self) -> int:
        return floor(self._clock() / self._state.config.tick_seconds)

    def _needs_tick(self) -> bool:
        """Whether time alone would change something."""
        state = self._state
        return bool(state.pending or state.fold.alive or state.traffic.now.decisions)

    def _idle(self) -> None:
        """Nothing came for a while: follow the log and the clock."""
        try:
            if self.store.shared or self.read_only:
                with self._lock:
                    _catch_up(self._state, self.store)
                    self._publish()
            self._seen = time.monotonic()
            if self._broken and self.store.shared:
                self._broken = None  # the log is within reach again
            due = self._tick_now() > self._state.tick and self._needs_tick()
            if due and not self.read_only:
                self._commit([])
            if self._state.position - self._snapshot_at >= SNAPSHOT_EVERY and not self.read_only:
                self.snapshot()
        except Exception as error:
            self._failed(error)

    def _committed(self) -> None:
        self._seen = time.monotonic()
        self._publish()

    def _publish(self) -> None:
        if self._state.revision != self._view.revision:
            self._view = View(self._state)

    def _failed(self, error: Exception) -> None:
        """The transaction is gone; so is what the state took in of it."""
        if not self.store.shared:
            # After a failed write or sync nobody knows what the disk holds until it is read anew.
            self._broken = f"the log could not be written: {error}; open the gate again"
            return
        try:
            self._state = self._read_log()
            self._publish()
        except Exception as again:
            self._broken = f"the log is out of reach: {again}"

    def _read_log(self) -> State:
        """The state at the end of the log, from the newest snapshot that is sound."""
        state = State(self.store.find)
        kept = self.store.load_snapshot()
        if kept is not None:
            try:
                state = load(*kept, self.store.find)
            except ValueError as error:
                warnings.warn(f"{error}; the whole log is read instead", stacklevel=3)
        _catch_up(state, self.store)
        return state


class ConflictError(ValueError):
    """The same name was used for something else before."""


def _found(store: Store, config: GateConfig, now: float) -> None:
    """Write a new gate's first event."""
    created = {"at": now, "tick": floor(now / config.tick_seconds), "id": secrets.token_hex(8)}
    body = packed({
        "created": created, "config": config.to_dict(), "mode": "shadow", "percent": 100.0,
        "reason": "created", "by": "program",
    })  # fmt: skip
    with store.appending() as log:
        if not list(log.tail(0)):  # another replica may have been faster
            log.append([Draft("ConfigChange", now, None, digest_of(body), body)])


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


def _law(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    if isinstance(p, np.ndarray) and p.dtype == np.float64:
        return np.ascontiguousarray(p)
    try:
        given = np.asarray(p)
        if given.dtype.kind not in "fiu":
            raise ValueError
        return np.ascontiguousarray(given, np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"p must be a list of numbers, got {p!r:.80}") from None


def _reason(reason: str, dry_run: bool) -> str:
    return reason or "dry run" if dry_run else reason
