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

from rapo.gate.config import GateConfig
from rapo.gate.fold import ROW, Fold, Rows
from rapo.gate.ledger import Ledger
from rapo.gate.registry import Registry
from rapo.gate.state import Act, Fetch, Report, State
from rapo.gate.traffic import Traffic

FORMAT = 2
"""Raised when an older snapshot can no longer be read; the log then is folded afresh."""

_FOLD_ARRAYS = (
    "G", "H", "grown", "confirmed_until", "sources", "signals", "_live", "_is_live", "_said",
    "_exposure", "_per_source", "_last_source", "_last_signal", "_part", "_part_tick", "_voice",
    "_heard", "_allowed", "_speakers",
)  # fmt: skip
_FOLD_NUMBERS = ("start", "tick", "at", "trail", "alive")


def dump(state: State) -> bytes:
    """Everything of a state but the rows of its ledger."""
    values, arrays = state.traffic.dump()
    arrays = {f"traffic {name}": array for name, array in arrays.items()}
    for name in _FOLD_ARRAYS:
        arrays[f"fold {name}"] = getattr(state.fold, name)
    head = {
        "format": FORMAT,
        "position": state.position,
        "revision": state.revision,
        "created": state.created,
        "config": state.config.to_dict(),
        "config_hash": state.config.digest(),
        "field_hash": state.field_hash(),
        "mode": state.mode,
        "percent": state.percent,
        "regions": state.regions.names,
        "sources": state.sources.names,
        "signals": state.signals.names,
        "rows": len(state.ledger),
        "rows_checksum": _checksum(state.ledger.rows),
        "fold": {name: getattr(state.fold, name) for name in _FOLD_NUMBERS},
        "acts": [_act(a) for a in state.acts],
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


def load(data: bytes, ledger: Rows | Ledger, fetch: Fetch) -> State:
    """The state of a snapshot and of the ledger that was kept with it, which it takes over.

    Raises:
        ValueError: the snapshot is of another format, is damaged, or its hashes do not fit it.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays: dict[str, npt.NDArray[Any]] = {name: file[name] for name in file.files}
        head = json.loads(arrays.pop("head").tobytes())
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']}, this version reads {FORMAT}")
        if isinstance(ledger, np.ndarray):
            if ledger.dtype != ROW or _checksum(ledger) != head["rows_checksum"]:
                raise ValueError("its ledger is not the one that it was kept with")
            ledger = Ledger(ledger)
        state = _state(head, arrays, ledger, fetch)
    except Exception as error:  # damaged bytes make the readers of zip, NumPy and JSON raise any
        raise ValueError(f"a snapshot cannot be read: {error}") from error
    if state.field_hash() != head["field_hash"] or state.config.digest() != head["config_hash"]:
        raise ValueError("a snapshot does not have the fields that its hash is of")
    return state


def _state(
    head: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], ledger: Ledger, fetch: Fetch
) -> State:
    if len(ledger) != head["rows"]:
        raise ValueError(f"it belongs to a ledger of {head['rows']} rows, got {len(ledger)}")
    state = State(fetch)
    for name in ("position", "revision", "created", "mode", "percent", "rollbacks", "escalations",
                 "bands_left"):  # fmt: skip
        setattr(state, name, head[name])
    state.config = GateConfig.from_dict(head["config"])
    state.regions = Registry(head["regions"])
    state.sources, state.signals = Registry(head["sources"]), Registry(head["signals"])
    state.ledger = ledger
    state.fold = Fold(head["fold"]["start"])
    for name in _FOLD_NUMBERS:
        setattr(state.fold, name, head["fold"][name])
    for name in _FOLD_ARRAYS:
        setattr(state.fold, name, arrays.pop(f"fold {name}"))
    state.acts = [_act_of(a) for a in head["acts"]]
    state.pending = {t: [Report(**r) for r in rs] for t, rs in head["pending"]}
    state.review = {r["position"]: Report(**r) for r in head["review"]}
    state.allowed = {int(k): v for k, v in head["allowed"]}
    state.overrides = {int(k): v for k, v in head["overrides"]}
    state.labels = {int(k): v for k, v in head["labels"]}
    inside = {name.removeprefix("traffic "): a for name, a in arrays.items()}
    state.traffic = Traffic.load(head["traffic"], inside)
    return state


def _checksum(rows: Rows) -> int:
    """CRC-32 of the ledger, which lies beside the snapshot; column by column: rows have gaps."""
    value = 0
    for name in ROW.names or ():
        value = crc32(rows[name].tobytes(), value)
    return value


def _act(act: Act) -> dict[str, Any]:
    config = None if act.config is None else act.config.to_dict()
    return {
        "tick": act.tick, "confirmed": act.confirmed, "until": act.until, "config": config,
        "vouched": act.vouched,
    }  # fmt: skip


def _act_of(values: dict[str, Any]) -> Act:
    config = None if values["config"] is None else GateConfig.from_dict(values["config"])
    vouched = tuple((report, region) for report, region in values["vouched"])
    return Act(values["tick"], tuple(values["confirmed"]), values["until"], config, vouched)
