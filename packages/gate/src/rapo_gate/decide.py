"""From a request to a decision: checked, answered from the view, or answered as it was before.

A view never changes; a new one replaces it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from hashlib import blake2b
from itertools import count
from math import floor
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_core.deformation import SUM_TOLERANCE, reweight_into, whole_sum
from rapo_core.jit import inlined, kernel
from rapo_gate.events import (
    DecisionBody,
    Event,
    NewEvent,
    Region,
    checked_region,
    checked_regions,
    checked_word,
    decision_key,
    digest_of,
    drafted,
    exposure_key,
    pack_decision,
    unpack_decision,
)
from rapo_gate.fold.names import Names
from rapo_gate.fold.registry import reals_into
from rapo_gate.fold.state import State
from rapo_gate.log.store import Appending, StoreError

if TYPE_CHECKING:
    from rapo_gate.engine import Engine
    from rapo_gate.writer import Work

_ROUNDING = 1e-12
_SMALLEST = 1e-300
"""Below this floats lose digits, and a ratio of two of them says nothing."""


class Decision(NamedTuple):
    """The gate's answer. n candidates, in the order of the request."""

    q: npt.NDArray[np.float64]
    """The distribution to serve, (n,), summing to 1; `p` itself in shadow mode."""
    psi: npt.NDArray[np.float64]
    """Conductance of each candidate's region, (n,), whatever the mode."""
    decision_id: str
    revision: int
    """Of the state that it was made from; never falls."""
    mode: str
    """`shadow`, or `enforce` if `q` is the gated law."""

    def __eq__(self, other: object) -> bool:
        """Each is equal to itself alone: arrays have no yes or no."""
        return self is other

    def __ne__(self, other: object) -> bool:
        """Tuples have one of their own."""
        return self is not other

    def __hash__(self) -> int:
        """By identity, as equality."""
        return id(self)


@inlined
def _bounded(p: Any, q: Any, total: float, psi_min: float) -> bool:
    """Whether `q` is a law whose every probability lies in [psi_min p, p / psi_min]."""
    low, high = psi_min / total * (1 - _ROUNDING), 1 / (psi_min * total) * (1 + _ROUNDING)
    outside = 0
    for i in range(p.size):  # to the end: a loop that may leave takes one at a time
        inside = (low * p[i] - _SMALLEST <= q[i]) & (q[i] <= high * p[i] + _SMALLEST)
        outside += not inside
    return outside == 0 and abs(whole_sum(q) - 1) <= _ROUNDING


@kernel
def _answer_into(p: Any, psi: Any, psi_min: float, enforced: bool, q: Any) -> Any:
    """Write what is served into `q`.

    Returns:
        As `reweight_into`, and whether the gated law, served or not, is within its bounds.
    """
    total, passed = reweight_into(p, psi, q)
    bounded = _bounded(p, q, total, psi_min)
    if not enforced:
        for i in range(p.size):
            q[i] = p[i] / total
    return total, passed, bounded


@kernel
def _gate_into(
    keys: Any, values: Any, reals: Any, regions: Any, p: Any, psi_min: float, enforced: bool,
    psi: Any, q: Any,
) -> Any:  # fmt: skip
    """Look up the `psi` of integer regions, and answer as `_answer_into`; one call, not two."""
    reals_into(keys, values, regions, reals, psi)
    return _answer_into(p, psi, psi_min, enforced, q)


class View:
    """psi of every region, the mode, and the revision of both."""

    def __init__(self, state: State) -> None:
        self.revision, self.tick = state.revision, state.tick
        self.mode, self.percent = state.mode, state.percent
        self.psi_min = state.config.params.psi_min
        self.tick_seconds = state.config.tick_seconds
        self._regions, self._psi = state.regions, state.psi()

    def enforces(self, decision_id: str) -> bool:
        """Whether a decision is gated for real; the same decision is, on every replica."""
        if self.mode != "enforce" or self.percent >= 100:
            return self.mode == "enforce"
        return crc32(decision_id.encode()) % 10_000 < self.percent * 100

    def psi(self, regions: npt.NDArray[np.int64] | Names) -> npt.NDArray[np.float64]:
        """Conductance of each candidate, 1 for a region that is not known."""
        return self._regions.reals(regions, self._psi)

    def decide(
        self,
        regions: npt.NDArray[np.int64] | Names,
        p: npt.NDArray[np.float64],
        tick: int,
        decision_id: str,
        stimulus: str | None,
    ) -> tuple[Decision, DecisionBody]:
        """The answer to a request, and what the log keeps of it.

        Raises:
            ValueError: `p` is not a distribution over the regions.
        """
        enforced = self.enforces(decision_id)
        if isinstance(regions, np.ndarray):
            psi, q = np.empty(p.size), np.empty(p.size)
            table = self._regions.integers
            outcome = _gate_into(*table, self._psi, regions, p, self.psi_min, enforced, psi, q)
            _check(outcome, p, self.psi_min, decision_id)
            mode = "enforce" if enforced else "shadow"
            decision, passed = Decision(q, psi, decision_id, self.revision, mode), outcome[1]
        else:
            psi = self.psi(regions)
            decision, passed = answer(p, psi, enforced, self.psi_min, decision_id, self.revision)
        body = DecisionBody(regions, p, psi, passed, tick, self.revision, enforced, stimulus)
        return decision, body


def answer(
    p: npt.NDArray[np.float64],
    psi: npt.NDArray[np.float64],
    enforced: bool,
    psi_min: float,
    decision_id: str,
    revision: int,
) -> tuple[Decision, float]:
    """The decision that `p` and `psi` give, and the mass `Z` that passes."""
    q = np.empty(p.size)
    outcome = _answer_into(p, psi, psi_min, enforced, q)
    _check(outcome, p, psi_min, decision_id)
    mode = "enforce" if enforced else "shadow"
    return Decision(q, psi, decision_id, revision, mode), outcome[1]


def _check(
    outcome: tuple[float, float, bool], p: npt.NDArray[np.float64], psi_min: float, decision_id: str
) -> None:
    """Refuse what `_answer_into` finds not to be a law, or not within its bounds."""
    total, _, bounded = outcome
    if not abs(total - 1) <= SUM_TOLERANCE:
        raise UserError(_why_not(p, total))
    if not bounded:
        raise RuntimeError(
            f"decision {decision_id} would leave its bounds with psi_min = {psi_min}; not served"
        )


def _why_not(p: npt.NDArray[np.float64], total: float) -> str:
    bad = p[~(np.isfinite(p) & (p >= 0))]
    if bad.size:
        return f"p must be finite and >= 0, got {bad[0]}"
    if not p.any():
        return "p must sum to 1, got all zeros"
    return f"p must sum to 1, got {total!r}; divide it by its sum"


MOST_CANDIDATES = 100_000


class Decider:
    """Makes decisions from an engine's view, without a lock; it logs nothing itself."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._prefix, self._numbers = secrets.token_hex(6), count(1)

    def make(
        self, regions: Any, p: npt.ArrayLike, request_id: str | None, stimulus: str | None
    ) -> tuple[Decision, NewEvent]:
        """The answer to a request, and the event that it becomes."""
        if self.engine.broken or self.engine.read_only:
            raise StoreError(
                self.engine.broken or f"{self.engine.store.address} is open for reading only"
            )
        names = checked_regions(regions)
        law = _law(p)
        if law.shape != (len(names),):
            raise UserError(f"p must have {len(names)} entries like regions, got {law.shape}")
        if len(names) > MOST_CANDIDATES:
            raise UserError(f"{len(names)} candidates; at most {MOST_CANDIDATES}")
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
        draft = NewEvent("Decision", now, decision_key(decision_id), digest, pack_decision(body))
        return decision, draft

    def first(self, draft: NewEvent, decision_id: str, request_id: str) -> Decision | None:
        """The first answer to a request, in the log or on its way there; None if this is it."""
        key = str(draft.key)
        first: NewEvent | Event = self.engine.queued.setdefault(key, draft)
        # Also where another draft is on its way: it may itself be one that came again just now.
        logged = self._logged(key)
        if logged is not None:
            if first is draft:
                self.engine.queued.pop(key, None)
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
        request = (body.p, body.psi, body.enforced, least)
        return answer(*request, decision_id, body.revision)[0]


def exposing(decision_id: str, shown: Iterable[Region], now: float) -> Work:
    """The work of noting what was really shown of a decision; its answer: whether in time."""
    checked_word("decision_id", decision_id)
    if isinstance(shown, str | bytes):
        raise UserError(f"shown must be a list of regions, got {shown!r}")
    names = [checked_region(r) for r in shown]
    content = {"decision_id": decision_id, "shown": names}
    draft = drafted("Exposure", now, content, exposure_key(decision_id))

    def work(state: State, log: Appending) -> tuple[bool, list[Event]]:
        events = log.find([decision_key(decision_id), exposure_key(decision_id)])
        made = events.get(decision_key(decision_id))
        if made is None:
            raise LookupError(f"decision_id {decision_id!r} is of no decision of this gate")
        decision = unpack_decision(made.body)
        foreign = set(names) - set(decision.ids())
        if foreign:
            raise UserError(f"{min(foreign, key=str)!r} was not among the candidates")
        in_time = decision.tick + state.config.D > state.tick
        first = events.get(exposure_key(decision_id))
        if first is None:
            return in_time, log.append([draft])
        if first.digest != draft.digest:
            raise ConflictError(f"decision {decision_id!r} was exposed with other candidates")
        return in_time, []

    return work


class ConflictError(UserError):
    """The same name was used for something else before."""


def _law(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    if isinstance(p, np.ndarray) and p.dtype == np.float64:
        return np.ascontiguousarray(p)
    try:
        array = np.asarray(p)
        if array.dtype.kind not in "fiu":
            raise ValueError
        return np.ascontiguousarray(array, np.float64)
    except (ValueError, TypeError):
        raise UserError(f"p must be a list of numbers, got {p!r:.80}") from None
