"""Snapshots: a state as bytes, so that opening a gate does not mean reading its whole log.

Arrays are NumPy's own format, the rest is JSON; nothing in a snapshot is executed. The ledger is
kept in pieces beside it, each written once.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rapo.gate.cells import Cells
from rapo.gate.config import GateConfig
from rapo.gate.exposure import Exposure
from rapo.gate.fold import ROW, Change, Fold, Rows, Vouch
from rapo.gate.ledger import Ledger
from rapo.gate.registry import Registry
from rapo.gate.state import Fetch, Report, State
from rapo.gate.traffic import Traffic

FORMAT = 3
"""Raised when an older snapshot can no longer be read; the log then is folded afresh."""

_FOLD_ARRAYS = ("G", "H", "psi", "topic", "free", "live")


def dump(state: State) -> bytes:
    """Everything of a state but the rows of its ledger."""
    values, arrays = state.traffic.dump()
    arrays = {f"traffic {name}": array for name, array in arrays.items()}
    fold = state.fold
    for name in _FOLD_ARRAYS:
        arrays[f"fold {name}"] = getattr(fold, name)
    arrays |= {f"fold {name}": array for name, array in fold.f._asdict().items()}
    arrays["fold regions"] = fold.ledger.regions
    exposed, more = fold.exposure.dump()
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
            "vouches": fold.vouches,
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


def load(data: bytes, rows: Rows, fetch: Fetch) -> State:
    """The state of a snapshot and of the rows of the ledger that were kept with it.

    Raises:
        ValueError: the snapshot is of another format, is damaged, or its hashes do not fit it.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays: dict[str, npt.NDArray[Any]] = {name: file[name] for name in file.files}
        head = json.loads(arrays.pop("head").tobytes())
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']}, this version reads {FORMAT}")
        if rows.size != head["rows"]:
            raise ValueError(f"it belongs to a ledger of {head['rows']} rows, got {rows.size}")
        if rows.dtype != ROW or _checksum(rows) != head["rows_checksum"]:
            raise ValueError("its ledger is not the one that it was kept with")
        state = _state(head, arrays, rows, fetch)
    except Exception as error:  # damaged bytes make the readers of zip, NumPy and JSON raise any
        raise ValueError(f"a snapshot cannot be read: {error}") from error
    if state.field_hash() != head["field_hash"] or state.config.digest() != head["config_hash"]:
        raise ValueError("a snapshot does not have the fields that its hash is of")
    return state


def _state(
    head: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], rows: Rows, fetch: Fetch
) -> State:
    state = State(fetch)
    for name in ("position", "revision", "created", "mode", "percent", "rollbacks", "escalations",
                 "bands_left"):  # fmt: skip
        setattr(state, name, head[name])
    state.regions = Registry(head["regions"])
    state.sources, state.signals = Registry(head["sources"]), Registry(head["signals"])
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
    for name in _FOLD_ARRAYS:
        setattr(fold, name, own[name])
    fold.f = Cells(*(own[name] for name in Cells._fields))
    fold.exposure = Exposure.load(values["exposure"], _part(arrays, "exposure "))
    fold.restore(Ledger(rows), own["regions"], [Vouch(*v) for v in values["vouches"]])
    return fold


def _part(arrays: dict[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _checksum(rows: Rows) -> int:
    """CRC-32 of the ledger, which lies beside the snapshot; column by column: rows have gaps."""
    value = 0
    for name in ROW.names or ():
        value = crc32(rows[name].tobytes(), value)
    return value
