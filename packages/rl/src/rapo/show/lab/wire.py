"""Arrays for the page: a JSON head that names the arrays, and then their bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_ALIGN = 8


def pack(head: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """One message: the length of the head as four bytes, the head, then the arrays.

    The head gains `arrays`: name, dtype, shape and offset of every array, counted from the first
    byte after the head. Padding lets a browser's typed arrays use the message without a copy.
    """
    table, pieces, at = [], [], 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        table.append([name, array.dtype.name, list(array.shape), at])
        room = -len(data) % _ALIGN
        pieces.append(data + b"\0" * room)
        at += len(data) + room
    text = as_json({**head, "arrays": table})
    text += b" " * (-(len(text) + 4) % _ALIGN)
    return len(text).to_bytes(4, "little") + text + b"".join(pieces)


def as_json(value: Any) -> bytes:
    """JSON of plain values; a number that is not finite becomes null."""
    return json.dumps(_finite(value), separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
