"""From a request to a decision: checked, answered from the view, or answered as it was before."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from hashlib import blake2b
from itertools import count
from math import floor
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.gate.engine import Engine
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
from rapo.gate.names import Names
from rapo.gate.state import State
from rapo.gate.store import Appending, StoreError
from rapo.gate.view import Decision, answer
from rapo.gate.writer import Work

MOST_CANDIDATES = 100_000


class Decider:
    """Makes decisions from an engine's view, without a lock; it logs nothing itself."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._prefix, self._numbers = secrets.token_hex(6), count(1)

    def make(
        self, regions: Any, p: npt.ArrayLike, request_id: str | None, stimulus: str | None
    ) -> tuple[Decision, Draft]:
        """The answer to a request, and the event that it becomes."""
        if self.engine.broken or self.engine.read_only:
            raise StoreError(
                self.engine.broken or f"{self.engine.store.address} is open for reading only"
            )
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
        view, now = self.engine.view, self.engine.clock()
        tick = max(floor(now / view.tick_seconds), view.tick)
        decision, body = view.decide(names, law, tick, decision_id, stimulus)
        digest = b""  # nobody can ask for a fresh name again
        if request_id is not None:
            digest = digest_of(b"".join((
                names.joined if isinstance(names, Names) else names.tobytes(),
                law.tobytes(), (stimulus or "").encode(),
            )))  # fmt: skip
        draft = Draft("Decision", now, decision_key(decision_id), digest, pack_decision(body))
        return decision, draft

    def first(self, draft: Draft, decision_id: str, request_id: str) -> Decision | None:
        """The first answer to a request, in the log or on its way there; None if this is it."""
        key = str(draft.key)
        first: Draft | Event = self.engine.asked.setdefault(key, draft)
        # Also where another draft is on its way: it may itself be one that came again just now.
        logged = self._logged(key)
        if logged is not None:
            if first is draft:
                self.engine.asked.pop(key, None)
            first = logged
        if first is draft:
            return None
        if first.digest != draft.digest:
            raise ConflictError(f"request_id {request_id!r} has another body")
        return self.again(unpack_decision(first.body), decision_id)

    def _logged(self, key: str) -> Event | None:
        """An event by its key; None also where the log is out of reach, which stops no answer."""
        if self.engine.outage:
            return None  # no use to ask; it is looked for before it is logged
        try:
            return self.engine.store.find([key]).get(key)
        except StoreError:
            return None

    def again(self, body: DecisionBody, decision_id: str) -> Decision:
        """The first answer to a request, from what the log keeps of it."""
        least = min(self.engine.view.psi_min, float(body.psi.min()))  # psi_min may have risen since
        given = (body.p, body.psi, body.enforced, least)
        return answer(*given, decision_id, body.revision)[0]


def exposing(decision_id: str, shown: Iterable[Region], now: float) -> Work:
    """The work of noting what was really shown of a decision; its answer: whether in time."""
    checked_word("decision_id", decision_id)
    if isinstance(shown, str | bytes):
        raise ValueError(f"shown must be a list of regions, got {shown!r}")
    names = [checked_region(r) for r in shown]
    body = packed({"decision_id": decision_id, "shown": names})
    draft = Draft("Exposure", now, exposure_key(decision_id), digest_of(body), body)

    def work(state: State, log: Appending) -> tuple[bool, list[Event]]:
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

    return work


class ConflictError(ValueError):
    """The same name was used for something else before."""


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
