"""`Gate`: harm memory in front of a platform."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from inspect import Parameter, Signature, signature
from math import floor
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, get_type_hints

import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_gate import audit
from rapo_gate.actions import Allow, Configure, Confirm, Label, Mode, Override, Rollback
from rapo_gate.audit import Effect, preview
from rapo_gate.config import Clock, GateConfig
from rapo_gate.decide import ConflictError, Decider, Decision, exposing
from rapo_gate.declare import Action
from rapo_gate.engine import Engine
from rapo_gate.events import (
    LOG_FORMAT,
    Event,
    NewEvent,
    Region,
    action_key,
    decision_key,
    drafted,
    exposure_key,
    unpack_decision,
)
from rapo_gate.fold.snapshot import Replay
from rapo_gate.fold.state import State
from rapo_gate.log.store import Appending, Store, open_store
from rapo_gate.reports import Checked, HarmReport, ReportResult, check, refused, take_in


class Field(NamedTuple):
    """A region's trace, scar and conductance."""

    G: float
    H: float
    psi: float


P = ParamSpec("P")
T = TypeVar("T")


def _doing(action: Callable[P, Action]) -> Callable[Concatenate[Gate, P], Effect]:
    """The method that does an action: its fields are its arguments."""

    def method(self: Gate, /, *args: P.args, **kwargs: P.kwargs) -> Effect:
        return self.act(action(*args, **kwargs))

    method.__doc__ = action.__doc__
    own = Parameter("self", Parameter.POSITIONAL_ONLY)
    types = get_type_hints(action)  # without what else their annotations say
    fields = [p.replace(annotation=types[name]) for name, p in signature(action).parameters.items()]
    shown = Signature([own, *fields], return_annotation=Effect)
    method.__signature__ = shown  # type: ignore[attr-defined]  # what `help(Gate)` shows
    return method


class Gate:
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
        self.engine = Engine(store, clock=clock, read_only=read_only)
        self.decider = Decider(self.engine)
        self.store, self.clock = store, clock

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
                if store.load_snapshot() is not None:
                    raise UserError(
                        f"{address} has a snapshot but no events: its log is missing; restore a "
                        "whole copy of it"
                    )
                if read_only or not create:
                    raise UserError(f"{address} holds no gate; rapo-gate init makes one")
                _create(store, config or GateConfig(), clock())
            gate = cls(store, clock=clock, read_only=read_only)
        except BaseException:
            store.close()
            raise
        if config is not None and config != gate.config:
            old, new = gate.config.to_dict(), config.to_dict()
            gate.close()
            differ = [f"{k}: {old[k]} there, {new[k]} given" for k in old if old[k] != new[k]]
            raise UserError(
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
        decision, draft = self.decider.make(regions, p, request_id, stimulus)
        first = None
        if request_id is not None:
            first = self.decider.first(draft, decision.decision_id, request_id)
        if first is None:
            self.engine.put(draft)
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
        decision, draft = self.decider.make(regions, p, request_id, stimulus)
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
            return self.decider.again(unpack_decision(event.body), decision.decision_id), []

        return self.engine.submit(log, [str(draft.key)])

    def expose(self, decision_id: str, shown: Iterable[Region]) -> bool:
        """Say which candidates of a decision were really shown; else the served shares count.

        Returns:
            Whether it came in time: reports on that decision have not counted yet.
        """
        return bool(self.expose_logged(decision_id, shown).result())

    def expose_logged(self, decision_id: str, shown: Iterable[Region]) -> Future[bool]:
        """As `expose`, without waiting."""
        keys = [decision_key(decision_id), exposure_key(decision_id)]
        return self.engine.submit(exposing(decision_id, shown, self.clock()), keys)

    def report(self, items: Iterable[HarmReport]) -> list[ReportResult]:
        """Take in reports of harm; one result for each, in order. Durable when it returns."""
        return list(self.report_logged(items).result())

    def report_logged(self, items: Iterable[HarmReport]) -> Future[list[ReportResult]]:
        """As `report`, without waiting."""
        now, config = self.clock(), self.config
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
        return self.engine.submit(lambda state, log: take_in(checked, state, log, now), keys)

    # --- what people do; `rapo_gate.actions` says what each needs and means

    confirm = _doing(Confirm)
    override = _doing(Override)
    allow = _doing(Allow)
    rollback = _doing(Rollback)
    set_mode = _doing(Mode)
    configure = _doing(Configure)
    label = _doing(Label)

    def act(self, action: Action) -> Effect:
        """Do an action, or show what it would do.

        It is checked against the state at the end of the log; done, it is durable when this
        returns. A dry run changes nothing, keeps no place in the writer's queue, and may be asked
        of a gate that is open for reading.
        """
        name = secrets.token_hex(12)
        done: Effect | None = None

        def draft_on(state: State) -> NewEvent:
            now = self.clock()
            return drafted(action.event, now, action.whole_body(state, now), action_key(name))

        def work(state: State, log: Appending) -> tuple[Effect, list[Event]]:
            nonlocal done
            if done is not None and log.find([action_key(name)]):
                return done, []  # the first attempt was committed after all, where it stood then
            draft = draft_on(state)
            effect = preview(state, draft, log)
            events = log.append([draft])
            at = events[0].position
            done = Effect(False, effect.regions, effect.reports, at, at)
            return done, events

        if action.dry_run:
            self.flush()
            return self.read(lambda state: preview(state, draft_on(state), self.store))
        return self.engine.submit(work).result()  # type: ignore[no-any-return]

    # --- what it tells

    @property
    def config(self) -> GateConfig:
        """Settings in force."""
        return self.engine.config

    def fields(self) -> dict[Region, Field]:
        """G, H and psi of every known region."""

        def look(state: State) -> dict[Region, Field]:
            G, H, psi = state.fold.G, state.fold.H, state.psi()
            return {
                name: Field(float(G[i]), float(H[i]), float(psi[i]))
                for i, name in enumerate(state.regions.names)
            }

        return self.read(look)

    def chain(self, region: Region, limit: int = 50) -> dict[str, Any]:
        """From reports to decisions: what made a region what it is, and what it changed."""
        return audit.chain(self.read, self.store, region, limit)

    def explain(self, decision_id: str, limit: int = 10) -> dict[str, Any]:
        """How much a decision was changed, and because of which reports."""
        return audit.explain(self.read, self.store, decision_id, limit)

    def bias(self) -> dict[str, Any]:
        """Gating and report rates by group and topic, with intervals."""
        return self.read(audit.bias)

    def queue(self, limit: int = 200) -> list[dict[str, Any]]:
        """Reports that wait for a reviewer, and why."""
        return self.read(lambda state: audit.queue(state, limit))

    def reporters(self, limit: int = 200) -> list[dict[str, Any]]:
        """Who reported, how much of it agreed with others, how much was rolled back."""
        return self.read(lambda state: audit.reporters(state, limit))

    def read(self, look: Callable[[State], T]) -> T:
        """Look at the state while nothing changes it; `look` must not change it either."""
        return self.engine.read(look)

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events of the log after a position, in order."""
        return self.store.read(after, limit)

    def verify(self, replay: Callable[[int], Replay] | None = None) -> dict[str, Any]:
        """Fold the whole log afresh and compare; see `Engine.verify`."""
        return self.engine.verify(replay)

    def health(self) -> dict[str, Any]:
        """Whether answers are fresh; see `Engine.health`."""
        return self.engine.health()

    # --- its life

    def flush(self) -> None:
        """Wait until everything so far is durable and in the state."""
        self.engine.flush()

    def tick(self) -> int:
        """Fold up to the current tick now, and return it."""
        return self.engine.tick()

    def snapshot(self) -> None:
        """Keep the state beside the log, so that opening reads only what comes after."""
        self.engine.snapshot()

    def close(self) -> None:
        """Make everything durable, keep a snapshot, let go; may be called twice."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _create(store: Store, config: GateConfig, now: float) -> None:
    """Write a new gate's first event."""
    created = {"at": now, "tick": floor(now / config.tick_seconds), "id": secrets.token_hex(8)}
    content = {
        "created": created, "format": LOG_FORMAT, "config": config.to_dict(), "mode": "shadow",
        "percent": 100.0, "reason": "created", "by": "program",
    }  # fmt: skip
    with store.appending() as log:
        if not list(log.tail(0)):  # another replica may have been faster
            log.append([drafted("ConfigChange", now, content)])
