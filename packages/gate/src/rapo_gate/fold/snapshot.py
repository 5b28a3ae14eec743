"""A state as bytes and back, and a log folded from its beginning.

Opening a gate does not mean reading its whole log: a snapshot is a state as bytes. Arrays are
NumPy's own format, the rest is JSON; nothing in a snapshot is executed. The ledger is kept in
pieces beside it, each written once.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_gate.config import GateConfig
from rapo_gate.events import Event
from rapo_gate.fold.attribution import Lookup, Report
from rapo_gate.fold.exposure import Exposure
from rapo_gate.fold.fold import ROW, Change, Confirmation, Fold, Rows
from rapo_gate.fold.ledger import Ledger
from rapo_gate.fold.records import Records
from rapo_gate.fold.registry import Numbering, Registry
from rapo_gate.fold.state import State
from rapo_gate.fold.traffic import Traffic
from rapo_gate.log.store import Rewriting, Store, StoreError, events_of

FORMAT = 4
"""Raised when an older snapshot can no longer be read; the log then is folded afresh."""

_FOLD_ARRAYS = ("G", "H", "psi", "topic")


def dump(state: State) -> bytes:
    """Everything of a state but the rows of its ledger."""
    values, arrays = state.traffic.dump(len(state.regions))
    arrays = {f"traffic {name}": array for name, array in arrays.items()}
    fold, regions, slots = state.fold, len(state.regions), state.ledger.slots
    for name in _FOLD_ARRAYS:
        arrays[f"fold {name}"] = getattr(fold, name)[:regions]
    cells, pairs, names, ticks = fold.f
    said = ticks[:slots] > 0
    arrays |= {
        "fold cells": cells[:slots], "fold pairs": pairs[: fold.ledger.pairs],
        "fold free": fold.free[:slots], "fold live": fold.live,
        "fold regions": fold.ledger.regions, "fold agreed": np.packbits(said),
        "fold names": names[:slots][said], "fold ticks": ticks[:slots][said],
    }  # fmt: skip
    exposed, more = fold.exposure.dump(regions)
    arrays |= {f"exposure {name}": array for name, array in more.items()}
    head = {
        "format": FORMAT,
        "position": state.position,
        "revision": state.revision,
        "created": state.created,
        "config_hash": state.config.digest(),
        "field_hash": state.field_hash(),
        "mode": state.mode,
        "percent": state.percent,
        "regions": state.regions.names,
        "sources": state.sources.names,
        "signals": state.signals.names,
        "rows": len(state.ledger),
        "rows_checksum": _checksum(state.ledger.rows),
        "fold": {
            "start": fold.start,
            "tick": fold.tick,
            "changes": [(change.tick, change.config.to_dict()) for change in fold.changes],
            "confirmations": fold.confirmations,
            "topics": fold.topics,
            "exposure": exposed,
        },
        "pending": [[t, [asdict(r) for r in rs]] for t, rs in state.pending.items()],
        "review": [asdict(r) for r in state.review.values()],
        "allowed": list(state.allowed.items()),
        "overrides": list(state.overrides.items()),
        "labels": list(state.labels.items()),
        "rollbacks": state.rollbacks,
        "escalations": state.escalations,
        "bands_left": state.bands_left,
        "traffic": values,
    }
    stream = io.BytesIO()
    np.savez(stream, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def load(data: bytes, rows: Rows) -> State:
    """The state of a snapshot and of the rows of the ledger that were kept with it.

    Raises:
        ValueError: the snapshot is of another format, is damaged, or its hashes do not fit it.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays: dict[str, npt.NDArray[Any]] = {name: file[name] for name in file.files}
        head = json.loads(arrays.pop("head").tobytes())
        if head["format"] != FORMAT:
            raise UserError(f"its format is {head['format']}, this version reads {FORMAT}")
        if rows.size != head["rows"]:
            raise UserError(f"it belongs to a ledger of {head['rows']} rows, got {rows.size}")
        if rows.dtype != ROW or _checksum(rows) != head["rows_checksum"]:
            raise UserError("its ledger is not the one that it was kept with")
        state = _state(head, arrays, rows)
    except Exception as error:  # damaged bytes make the readers of zip, NumPy and JSON raise any
        raise UserError(f"a snapshot cannot be read: {error}") from error
    if state.field_hash() != head["field_hash"] or state.config.digest() != head["config_hash"]:
        raise UserError("a snapshot does not have the fields that its hash is of")
    return state


def _state(head: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], rows: Rows) -> State:
    state = State()
    for name in ("position", "revision", "created", "mode", "percent", "rollbacks", "escalations",
                 "bands_left"):  # fmt: skip
        setattr(state, name, head[name])
    state.regions = Registry(head["regions"])
    state.sources, state.signals = Numbering(head["sources"]), Numbering(head["signals"])
    state.fold = _fold(head["fold"], arrays, rows)
    state.pending = {t: [Report(**r) for r in rs] for t, rs in head["pending"]}
    state.review = {r["position"]: Report(**r) for r in head["review"]}
    state.allowed = {int(k): v for k, v in head["allowed"]}
    state.overrides = {int(k): v for k, v in head["overrides"]}
    state.labels = {int(k): v for k, v in head["labels"]}
    state.traffic = Traffic.load(head["traffic"], _part(arrays, "traffic "))
    state.traffic.mark({r: v.get("sensitive") == "yes" for r, v in state.labels.items()})
    return state


def _fold(values: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], rows: Rows) -> Fold:
    changes = [Change(t, GateConfig.from_dict(c)) for t, c in values["changes"]]
    fold = Fold(values["start"], changes[0].config)
    fold.tick, fold.changes, fold.topics = values["tick"], changes, values["topics"]
    own = _part(arrays, "fold ")
    for name in (*_FOLD_ARRAYS, "free", "live"):
        setattr(fold, name, own[name])
    fold.f = Records.empty(own["cells"].size, own["pairs"].size)
    fold.f.cells[:], fold.f.pairs[:] = own["cells"], own["pairs"]
    bits = np.unpackbits(own["agreed"], count=fold.f.ticks.size)
    said = bits.astype(np.bool_).reshape(fold.f.ticks.shape)
    fold.f.names[said], fold.f.ticks[said] = own["names"], own["ticks"]
    fold.exposure = Exposure.load(values["exposure"], _part(arrays, "exposure "))
    fold.restore(Ledger(rows), own["regions"], [Confirmation(*c) for c in values["confirmations"]])
    return fold


def _part(arrays: dict[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _checksum(rows: Rows) -> int:
    """CRC-32 of the ledger, which lies beside the snapshot; column by column: rows have gaps."""
    value = 0
    for name in ROW.names or ():
        value = crc32(rows[name].tobytes(), value)
    return value


# --- the log, folded


class Replay(NamedTuple):
    """What a fresh fold of the log came to."""

    position: int
    revision: int
    tick: int
    fields: str
    """Hash of its fields."""
    integrity: str
    """Of the database."""


def replayed(store: Store, until: int) -> Replay:
    """The log folded from its first event up to a position."""
    fresh = folded(beginning(store), store, until)
    return Replay(fresh.position, fresh.revision, fresh.tick, fresh.field_hash(), store.integrity())


def folded(
    state: State, log: Store | Rewriting, until: int | None = None, lookup: Lookup | None = None
) -> State:
    """A state that has taken in what a log has beyond it, up to a position."""
    for event in events_of(log, state.position, until):
        state.apply(event, lookup or log)
    return state


def beginning(store: Store) -> State:
    """What a fold of the log begins with: nothing, or the snapshot that a compaction kept.

    Raises:
        StoreError: that snapshot cannot be read.
    """
    base = store.load_base()
    if base is None:
        return State()
    try:
        state = load(*base)
        if state.position > store.last():
            raise UserError(f"the log ends at event {store.last()}")
        return state
    except ValueError as error:
        what = in_words(dropped(store))
        raise StoreError(
            f"{store.address}: {what}, and {error}; open it with the version of rapo that dropped "
            "them, or restore a copy from before"
        ) from error


def dropped(store: Store) -> dict[str, Any] | None:
    """What the last compaction said, and whether the log still agrees; None if there was none.

    Returns:
        `until`, `on` (Unix seconds), `fields` at `until`, `chain` of all that was dropped, and
        `intact`: whether what is left of those events is what it was then.
    """
    newest = store.read(0, 1, kinds=["Compaction"], newest=True)
    if not newest:
        return None
    data = newest[0].data()
    for event in store.read(newest[0].position, 1, kinds=["Erasure"], newest=True):
        data["heads"] = event.data()["heads"]  # it renamed a reporter in them
    intact = heads_of(events_of(store, 0, data["until"])) == data["heads"]
    kept = {name: data[name] for name in ("until", "fields", "chain")}
    return {**kept, "on": newest[0].at, "intact": intact}


def heads_of(events: Iterator[Event]) -> str:
    """Hash of everything but the bodies: it can be checked also when those are gone."""
    sums = sha256()
    for event in events:
        sums.update(repr(event[:5]).encode())
    return sums.hexdigest()


def in_words(gone: dict[str, Any] | None) -> str:
    """What a compaction dropped, and when."""
    if gone is None:
        return "its beginning was dropped"
    day = time.strftime("%Y-%m-%d", time.gmtime(gone["on"]))
    return (
        f"events up to {gone['until']} were dropped on {day}, where the fields had the hash "
        f"{gone['fields'][:16]}…"
    )
