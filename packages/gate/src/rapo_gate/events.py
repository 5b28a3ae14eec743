"""Events of the log: what they are called, how they are written, what identifies them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple
from unicodedata import category

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_gate.fold.names import Names

Region = int | str

KINDS = (
    "Decision", "Exposure", "HarmReport", "Confirm", "Override", "Rollback", "Allow",
    "ConfigChange", "Tick", "Escalation", "Erasure", "Compaction",
)  # fmt: skip
"""Every kind of event; the log stores its number."""
NUMBER = {name: number for number, name in enumerate(KINDS)}

LOG_FORMAT = 2
"""Written into a gate's first event; raised when old settings no longer mean what they meant."""

LONGEST_ID = 200
"""Most characters of a region, source, key, signal, request or decision."""

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class DroppedError(LookupError):
    """A compaction dropped the body of an event; its Compaction says when, and up to where."""

    def __str__(self) -> str:
        return f"{self.args[0]} was dropped by a compaction"


class NewEvent(NamedTuple):
    """An event that has no position yet."""

    kind: str
    at: float
    """Unix seconds at which the gate took it."""
    key: str | None
    """What makes it unique in the log, or None."""
    digest: bytes
    """Hash of what the caller sent: the same key with another body is refused."""
    body: bytes


class Event(NamedTuple):
    """An event of the log."""

    position: int
    kind: str
    at: float
    key: str | None
    digest: bytes
    body: bytes

    def data(self) -> dict[str, Any]:
        """The body of every kind but Decision.

        Raises:
            DroppedError: there is none any more.
        """
        if not self.body:
            raise DroppedError(f"the body of event {self.position}")
        value: dict[str, Any] = json.loads(str(self.body, "utf-8"))
        return value


def key_of(kind: str, *parts: str) -> str:
    """The unique key of an event: its kind and what names it, which cannot run together."""
    return "\x1f".join((kind, *parts))


def packed(value: Any) -> bytes:
    """JSON that is the same for the same value."""
    return _ENCODER.encode(value).encode()


def drafted(kind: str, at: float, data: Any, key: str | None = None) -> NewEvent:
    """An event of any kind but Decision, with its body and the digest of that."""
    body = packed(data)
    return NewEvent(kind, at, key, digest_of(body), body)


def digest_of(body: bytes) -> bytes:
    """16 bytes that stand for what a caller sent."""
    return hashlib.blake2b(body, digest_size=16).digest()


class DecisionBody(NamedTuple):
    """What a decision was made of. n candidates, in the order of the request."""

    regions: npt.NDArray[np.int64] | Names
    """Region of each candidate."""
    p: npt.NDArray[np.float64]
    """Proposed distribution, (n,)."""
    psi: npt.NDArray[np.float64]
    """Conductance of each candidate, (n,)."""
    passed: float
    """`Z = sum p psi / sum p`."""
    tick: int
    revision: int
    enforced: bool
    """False in shadow mode: `p` was served."""
    stimulus: str | None = None

    @property
    def served(self) -> npt.NDArray[np.float64]:
        """The distribution that was served, (n,), summing to 1."""
        weight = self.p * self.psi if self.enforced else self.p
        return np.asarray(weight / weight.sum())

    @property
    def gated(self) -> npt.NDArray[np.float64]:
        """The distribution under the gate, served or not."""
        weight = self.p * self.psi
        return np.asarray(weight / weight.sum())

    def ids(self) -> list[Region]:
        """Regions as plain values."""
        names = self.regions
        return list(names.listed() if isinstance(names, Names) else names.tolist())


_HEAD = Struct("<BBqqdiii")  # version, flags, tick, revision, Z, candidates, bytes of ids, stimulus
_ENFORCED, _TEXT, _DEFORMED, _STIMULUS = 1, 2, 4, 8
_JSON, _LINES = 1, 2
"""Formats: names as JSON, as earlier versions wrote them, and a line each. Integers are in both."""


def pack_decision(body: DecisionBody) -> bytes:
    """A decision as bytes: 16 per candidate with integer regions, 8 more where psi is not 1."""
    regions = body.regions
    text = isinstance(regions, Names)
    ids: Any = regions.joined if isinstance(regions, Names) else regions.data
    # where p is 0 psi does not show in Z, but the answer told it
    deformed = body.passed != 1.0 or bool((body.psi != 1.0).any())
    stimulus = b"" if body.stimulus is None else body.stimulus.encode()
    flags = (
        _ENFORCED * body.enforced
        | _TEXT * text
        | _DEFORMED * deformed
        | _STIMULUS * (body.stimulus is not None)
    )
    version = _LINES if text else _JSON  # a version that cannot read lines says so
    head = _HEAD.pack(
        version, flags, body.tick, body.revision, body.passed, body.p.size,
        len(ids) if text else 8 * len(ids), len(stimulus),
    )  # fmt: skip
    # arrays are joined as they are: bytes of each would be copied twice
    return b"".join((head, ids, body.p.data, body.psi.data if deformed else b"", stimulus))


def unpack_decision(body: bytes) -> DecisionBody:
    """What `pack_decision` packed.

    Raises:
        DroppedError: there is nothing any more.
    """
    if not body:
        raise DroppedError("what this decision was made of")
    version, flags, tick, revision, passed, n, id_bytes, _ = _HEAD.unpack_from(body)
    if version not in (_JSON, _LINES):
        raise UserError(f"a decision of format {version}; this version of rapo reads 1 and 2")
    at = _HEAD.size
    ids = body[at : at + id_bytes]
    regions: npt.NDArray[np.int64] | Names
    if not flags & _TEXT:
        regions = np.frombuffer(ids, np.int64)
    elif version == _LINES:
        regions = Names(ids, n)
    else:
        regions = Names.of(json.loads(ids))
    at += id_bytes
    p = np.frombuffer(body, np.float64, n, at)
    at += 8 * n
    psi = np.frombuffer(body, np.float64, n, at) if flags & _DEFORMED else np.ones(n)
    at += 8 * n if flags & _DEFORMED else 0
    stimulus = body[at:].decode() if flags & _STIMULUS else None
    return DecisionBody(regions, p, psi, passed, tick, revision, bool(flags & _ENFORCED), stimulus)


def plain_event(event: Event) -> dict[str, Any]:
    """An event as JSON has it, decisions decoded; a report's own `at` is `exposed_at`."""
    head = {"position": event.position, "kind": event.kind, "at": event.at}
    if not event.body:
        return {**head, "dropped": True}
    if event.kind == "Decision":
        body = unpack_decision(event.body)
        return {
            **head, "decision_id": (event.key or "").partition("\x1f")[2], "regions": body.ids(),
            "p": body.p.tolist(), "psi": body.psi.tolist(), "served": body.served.tolist(),
            "tick": body.tick, "revision": body.revision,
            "mode": "enforce" if body.enforced else "shadow", "stimulus": body.stimulus,
        }  # fmt: skip
    data = event.data()
    if event.kind == "HarmReport":
        head["exposed_at"] = data["at"]
    return {**{name: value for name, value in data.items() if name not in head}, **head}


def event_of(values: dict[str, Any]) -> Event:
    """The event that `plain_event` gave, with its body; digests of callers are not kept there."""
    data = dict(values)
    position, kind, at = (data.pop(name) for name in ("position", "kind", "at"))
    if kind == "Decision":
        p, psi = (np.array(data[name], np.float64) for name in ("p", "psi"))
        body = DecisionBody(
            checked_regions(data["regions"]), p, psi, float((p * psi).sum() / p.sum()),
            data["tick"], data["revision"], data["mode"] == "enforce", data["stimulus"],
        )  # fmt: skip
        return Event(
            position, kind, at, decision_key(data["decision_id"]), b"", pack_decision(body)
        )
    key = exposure_key(data["decision_id"]) if kind == "Exposure" else None
    if kind == "HarmReport":
        data["at"], key = data.pop("exposed_at"), report_key(data["source"], data["key"])
    return Event(position, kind, at, key, b"", packed(data))


_DECISION = key_of("d", "")


def decision_key(decision_id: str) -> str:
    """Unique key of a decision in the log."""
    return _DECISION + decision_id


def exposure_key(decision_id: str) -> str:
    """Unique key of what a decision really showed."""
    return key_of("x", decision_id)


def report_key(source: str, key: str) -> str:
    """Unique key of a report."""
    return key_of("r", source, key)


def action_key(name: str) -> str:
    """Unique key of what a person did."""
    return key_of("a", name)


def checked_word(name: str, value: Any, longest: int = LONGEST_ID) -> str:
    """`value` if it is a string that can be stored, shown and put into a key."""
    if not isinstance(value, str) or not value or len(value) > longest:
        got = (
            f"{value[:40]!r}… of {len(value)}" if isinstance(value, str) and value else repr(value)
        )
        raise UserError(f"{name} must be a string of 1 to {longest} characters, got {got}")
    if not value.isprintable() and not all(c.isprintable() or _ordinary(c) for c in value):
        raise UserError(f"{name} must be printable, got {value!r}")
    return value


def _ordinary(character: str) -> bool:
    """Whether people use a character that Python calls unprintable.

    Spaces of all widths, and what joins letters or emoji; not line breaks, controls, surrogates,
    nor the marks that turn the direction of what comes after them.
    """
    kind = category(character)
    return kind == "Zs" or (kind == "Cf" and character not in _TURNING)


def checked_region(value: Any) -> Region:
    """`value` as a region: a string or a 64-bit integer."""
    if isinstance(value, str):
        return checked_word("a region", value)
    if type(value) is int or (isinstance(value, int | np.integer) and not isinstance(value, bool)):
        if -(2**63) <= value < 2**63:
            return int(value)
        raise UserError(f"a region must fit 64 bits, got {value}")
    raise UserError(f"a region must be a string or an integer, got {value!r}")


def checked_regions(values: Any) -> npt.NDArray[np.int64] | Names:
    """Candidates' regions: an integer array, or names; not a mixture."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu" and values.ndim == 1 and values.size:
            if values.dtype == np.uint64 and values.max() >= 2**63:
                raise UserError(f"a region must fit 64 bits, got {values.max()}")
            return np.ascontiguousarray(values, np.int64)
        if values.dtype.kind in "USO" and values.ndim == 1:
            values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or not len(values):
        raise UserError(f"regions must be a non-empty list, got {values!r:.80}")
    if isinstance(values[0], str):
        return _checked_names(values)
    checked = [checked_region(v) for v in values]
    if not all(isinstance(v, int) for v in checked):
        raise UserError("regions must be all strings or all integers, got both")
    return np.array(checked, np.int64)


def _checked_names(values: Sequence[Any]) -> Names:
    """Strings that may be regions. Printable ASCII is checked as a whole, the rest one by one."""
    try:
        names = Names.of(values)
    except TypeError:
        raise UserError("regions must be all strings or all integers, got both") from None
    except ValueError:
        names = None
    if names is None or not names.plain or names.longest > LONGEST_ID:
        for value in set(values if names is None else names.listed()):
            checked_word("a region", value)
    assert names is not None, "a name with a line break is no word"
    return names
