"""Checks that name what they received: whole numbers, truth values, snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def whole_number(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """`value` as an int if it is a whole number in [least, most]; a bool is not a number here."""
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_number and least <= value <= most:
        return int(value)
    limit = "" if most == 2**63 - 1 else f" and <= {most}"
    raise ValueError(f"{name} must be a whole number >= {least}{limit}, got {value!r}")


def truth(name: str, value: Any) -> bool:
    """`value` as a bool if it is one; words such as "no" would be true by accident."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"{name} must be True or False, got {value!r}")


def checked_state(
    state: Mapping[str, Any], like: Mapping[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """A snapshot's entries as copies with the names, shapes and dtypes of `like`.

    Floats must be finite, whole numbers and booleans must be such; nothing is rounded or wrapped.
    """
    if not isinstance(state, Mapping) or set(state) != set(like):
        got = sorted(state) if isinstance(state, Mapping) else type(state).__name__
        raise ValueError(f"a snapshot has {sorted(like)}, got {got}")
    taken = {}
    for name, mine in like.items():
        given = _as_given(state[name], mine.dtype)
        if given.shape != mine.shape:
            raise ValueError(
                f"{name} must have shape {mine.shape}, got {given.shape}; restore a snapshot of "
                "the same configuration"
            )
        kinds = {"u": "ui", "i": "iu", "f": "fiu", "b": "b", "U": "U"}[mine.dtype.kind]
        if given.dtype.kind not in kinds:
            raise ValueError(f"{name} must hold {mine.dtype} values, got {given.dtype}")
        with np.errstate(over="ignore"):
            cast = given.astype(mine.dtype) if mine.dtype.kind != "U" else given
        real = mine.dtype.kind == "f"
        fine = np.isfinite(cast) if real else cast == given
        if not np.all(fine):
            what = f"finite {mine.dtype}" if real else str(mine.dtype)
            raise ValueError(f"{name} must hold {what} values, got {given[~fine].flat[0]}")
        taken[name] = np.array(cast)
    return taken


def _as_given(value: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """`value` as an array; large whole numbers in lists would otherwise become floats."""
    if isinstance(value, list) and dtype.kind == "u":
        members = np.array(value, object)
        if all(type(v) is int and 0 <= v < 2**64 for v in members.flat):
            return members.astype(dtype)
    return np.asarray(value)
