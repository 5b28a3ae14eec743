"""What callers give the engine, checked: each function returns it in the engine's own form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import REPLAY
from rapo_core.checks import UserError, truth
from rapo_core.params import FieldParams

SMALLEST_PSI_MIN = 1e-30
"""Lower bounds of psi below this would leave the normal range of float32."""

Whole = npt.NDArray[np.int64]
Kind = TypeVar("Kind")


def need_kind(name: str, value: object, wanted: type[Kind]) -> Kind:
    """The value, if it is of the class."""
    if not isinstance(value, wanted):
        raise UserError(f"{name} must be a {wanted.__name__}, got {value!r}")
    return value


def params_of(params: object) -> FieldParams:
    """Constants of the fields that single precision can hold."""
    found = need_kind("params", params, FieldParams)
    if found.psi_min < SMALLEST_PSI_MIN:
        raise UserError(
            f"psi_min must be >= {SMALLEST_PSI_MIN:g} in single precision, got {found.psi_min}"
        )
    return found


def phases_of(deform_phases: object) -> list[bool]:
    """Three truth values, one per phase."""
    if not isinstance(deform_phases, tuple | list) or len(deform_phases) != 3:
        raise UserError(f"deform_phases needs three truth values, got {deform_phases!r}")
    return [truth("each of deform_phases", phase) for phase in deform_phases]


def stimuli_of(stimuli: npt.ArrayLike, count: int, known: int) -> Whole:
    """(count,) 1-based stimuli from one or one per episode, of `known` ones."""
    z = np.asarray(stimuli)
    if (
        z.shape not in ((), (count,))
        or not np.issubdtype(z.dtype, np.integer)
        or np.any((z < 1) | (z > known))
    ):
        raise UserError(f"stimulus must be in 1..{known}, one per episode, got {stimuli!r}")
    return np.broadcast_to(z, (count,)).astype(np.int64)


def actions_of(actions: npt.ArrayLike, episodes: int, *shapes: tuple[int, ...]) -> Whole:
    """A copy of the actions as int64 of one of the shapes; a single one is for all episodes."""
    given = np.asarray(actions)
    if given.shape not in ((), *shapes) or given.dtype.kind not in "iu":
        raise UserError(
            f"actions must be whole numbers of shape ({episodes},), got {given.dtype} {given.shape}"
        )
    chosen = np.empty(given.shape or (episodes,), np.int64)
    chosen[...] = given
    return chosen


def keys_of(keys: npt.ArrayLike, count: int) -> npt.NDArray[np.integer]:
    """(count,) keys of episodes."""
    k = np.asarray(keys)
    if k.dtype.kind not in "iu" or k.shape != (count,) or (len(k) and k.min() < 0):
        raise UserError(f"keys must be {count} whole numbers >= 0, one per episode, got {keys!r}")
    return k


def states_of(active: npt.ArrayLike, count: int, nodes: int) -> npt.NDArray[np.bool_]:
    """(count, nodes) active sets."""
    given = np.asarray(active)
    if given.dtype != np.bool_ or given.shape != (count, nodes):
        raise UserError(
            f"active must be bool of shape ({count}, {nodes}), a row per episode, got "
            f"{given.dtype} {given.shape}"
        )
    return given


def harm_region_of(ids: npt.ArrayLike, nodes: int, regions: int) -> npt.NDArray[np.int32]:
    """(nodes,) region that receives the harm of each node."""
    array = np.asarray(ids)
    if array.shape != (nodes,) or array.dtype.kind not in "iu":
        raise UserError(f"harm_region_of must name a region for each of {nodes} nodes")
    if array.min() < 0 or array.max() >= regions:
        raise UserError(
            f"harm_region_of must name regions 0..{regions - 1}, got {array.min()}..{array.max()}"
        )
    return array.astype(np.int32)


def check_values(state: Mapping[str, npt.NDArray[Any]], stimuli: int, *fields: str) -> None:
    """Refuse a snapshot with fields, counts, stimuli or phases that no engine can have.

    `fields` are the names of what must be >= 0 beside clock and entries.
    """
    for name in (*fields, "clock", "entries"):
        if (state[name] < 0).any():
            raise UserError(f"{name} must be >= 0, got {state[name].min()}")
    for name, last in (("stimulus", stimuli), ("phase", REPLAY)):
        values = state[name]
        if values.min() < 0 or values.max() > last:
            raise UserError(f"{name} must be in 0..{last}, got {values.tolist()}")
