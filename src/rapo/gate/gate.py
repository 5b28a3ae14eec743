"""`Gate`: harm memory in front of a platform."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from hashlib import blake2b
from itertools import count
from math import floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

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
from rapo.gate.intake import Checked, HarmReport, ReportResult, check, refused, take_in
from rapo.gate.keeper import Clock
from rapo.gate.reviewed import Reviewed
from rapo.gate.state import State
from rapo.gate.store import Appending, Store, StoreError, open_store
from rapo.gate.view import Decision, answer
from rapo.gate.writer import Job

MOST_CANDIDATES = 100_000


class Field(NamedTuple):
    """A region's trace, scar and conductance."""

    G: float
    H: float
    psi: float


class Gate(Reviewed):
    """Multiplies proposed distributions by what reports of harm have left of each region.

    The log is the truth: everything else is folded from it. Decisions are made from memory without
    a lock; a writer thread logs them in groups. Reports and human actions return once they are
    durable. Safe to use from many threads.

    >>> import os, tempfile, warnings
    >>> folder = tempfile.mkdtemp()
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     gate = Gate.open(os.path.join(folder, "gate.db"))
    >>> gate.decide(["cats", "diets"], [0.5, 0.5]).mode
    'shadow'
    >>> gate.close()
    """

    def __init__(self, store: Store, *, clock: Clock = time.time, read_only: bool = False) -> None:
        self._prefix, self._numbers = secrets.token_hex(6), count(1)
        super().__init__(store, clock=clock, read_only=read_only)

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
        if config is not None and not isinstance(config, GateConfig):
            raise TypeError(
                f"config must be a GateConfig, got {type(config).__name__}; "
                "GateConfig.from_dict makes one of a dict"
            )
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

    # --- what platforms call

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
            The answer at once; it is logged within milliseconds (`flush` waits for that). While a
            shared log is out of reach answers go on, and are logged once it is back.

        Raises:
            StoreError: nothing more can be logged, or too much waits for that already.
            ConflictError: the request was made before, with another body.
        """
        decision, draft = self._decide(regions, p, request_id, stimulus)
        first = None
        if request_id is not None:
            first = self._first(draft, decision.decision_id, request_id)
        if first is None:
            try:
                self._writer.put(Job(None, draft, keys=[str(draft.key)]))
            except BaseException:
                self._asked.pop(str(draft.key), None)  # it is on its way nowhere
                raise
        return first or decision

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
        may_be_there = request_id is not None

        def log(state: State, log: Appending) -> tuple[Decision, list[Event]]:
            nonlocal may_be_there
            first = log.find([str(draft.key)]) if may_be_there else {}
            may_be_there = True  # from the second attempt on
            if not first:
                return decision, log.append([draft])
            (event,) = first.values()
            if event.digest != draft.digest:
                raise ConflictError(f"request_id {request_id!r} has another body")
            return self._again(unpack_decision(event.body), decision.decision_id), []

        return self._soon(log, [str(draft.key)])

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
                raise ValueError(f"{min(foreign, key=str)!r} was not among the candidates")
            in_time = decision.tick + state.config.D > state.tick
            first = found.get(exposure_key(decision_id))
            if first is None:
                return in_time, log.append([draft])
            if first.digest != draft.digest:
                raise ConflictError(f"decision {decision_id!r} was exposed with other candidates")
            return in_time, []

        return self._soon(log, [decision_key(decision_id), exposure_key(decision_id)])

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
        sound = [c for c in checked if isinstance(c, Checked)]
        named = {c.values["decision_id"] for c in sound if "decision_id" in c.values}
        keys = [*(c.key for c in sound), *map(decision_key, named)]
        return self._soon(lambda state, log: take_in(checked, state, log, now), keys)

    # --- what it tells

    def fields(self) -> dict[Region, Field]:
        """G, H and psi of every known region."""
        with self._lock:
            self._check_sure()
            G, H, psi = self._state.fold.G, self._state.fold.H, self._state.psi()
            names = self._state.regions.names
            return {
                name: Field(float(G[i]), float(H[i]), float(psi[i])) for i, name in enumerate(names)
            }

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events of the log after a position, in order."""
        return self.store.read(after, limit)

    # --- how

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
        digest = b""  # nobody can ask for a fresh name again
        if request_id is not None:
            digest = digest_of(b"".join((
                "\n".join(names).encode() if isinstance(names, list) else names.tobytes(),
                law.tobytes(), (stimulus or "").encode(),
            )))  # fmt: skip
        draft = Draft("Decision", now, decision_key(decision_id), digest, pack_decision(body))
        return decision, draft

    def _first(self, draft: Draft, decision_id: str, request_id: str) -> Decision | None:
        """The first answer to a request, in the log or on its way there; None if this is it."""
        key = str(draft.key)
        first: Draft | Event = self._asked.setdefault(key, draft)
        # Also where another draft is on its way: it may itself be one that came again just now.
        logged = self._logged(key)
        if logged is not None:
            if first is draft:
                self._asked.pop(key, None)
            first = logged
        if first is draft:
            return None
        if first.digest != draft.digest:
            raise ConflictError(f"request_id {request_id!r} has another body")
        return self._again(unpack_decision(first.body), decision_id)

    def _logged(self, key: str) -> Event | None:
        """An event by its key; None also where the log is out of reach, which stops no answer."""
        if self._outage:
            return None  # no use to ask; it is looked for before it is logged
        try:
            return self.store.find([key]).get(key)
        except StoreError:
            return None

    def _again(self, body: DecisionBody, decision_id: str) -> Decision:
        """The first answer to a request that came again."""
        least = min(self._view.psi_min, float(body.psi.min()))  # psi_min may have risen since
        given = (body.p, body.psi, body.enforced, least)
        return answer(*given, decision_id, body.revision)[0]


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
