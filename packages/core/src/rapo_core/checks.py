"""Checks of what users pass: every message names the value received and what is wanted instead.

The fields of a config are checked by their types: `lr: Positive` is all that a config writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from math import inf
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

Choice = TypeVar("Choice")
Kind = TypeVar("Kind")
Whole = npt.NDArray[np.int64]


class UserError(ValueError):
    """What a user gave cannot be used; the message names it and says what to do.

    A `ValueError` of any other class is a fault of this software.
    """


@dataclass(frozen=True)
class Within:
    """In a type: finite numbers from `low` to `high`, each end left out where it is open."""

    low: float = -inf
    high: float = inf
    low_open: bool = False
    high_open: bool = False

    def __str__(self) -> str:
        if self.high == inf:
            sign = ">" if self.low_open else ">="
            return "" if self.low == -inf else f" {sign} {self.low:g}"
        left, right = "[("[self.low_open], "])"[self.high_open]
        return f" in {left}{self.low:g}, {self.high:g}{right}"

    def holds(self, value: float) -> bool:
        """Whether a number is one of them."""
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return -inf < value < inf and above and below


@dataclass(frozen=True)
class Ends:
    """In the type of a pair: a lower and an upper end, which are equal only if `equal`."""

    equal: bool = True

    def __str__(self) -> str:
        return "a lower and an upper end"

    def holds(self, value: tuple[float, float]) -> bool:
        """Whether the pair is in order."""
        return value[0] < value[1] or (self.equal and value[0] == value[1])


Count = Annotated[int, Within(1)]
Positive = Annotated[float, Within(0, low_open=True)]
FromZero = Annotated[float, Within(0)]
FromOne = Annotated[float, Within(1)]
Share = Annotated[float, Within(0, 1, low_open=True)]
ShareOrNone = Annotated[float, Within(0, 1)]
OpenShare = Annotated[float, Within(0, 1, low_open=True, high_open=True)]
Level = Annotated[float, Within()]
"""Types of fields: (0, inf), [0, inf), [1, inf), (0, 1], [0, 1], (0, 1), and any finite number."""


def check_fields(config: Any) -> None:
    """Refuse a dataclass with a field that does not have its annotated type; lists become tuples.

    A type is bool, str, int or float, the two last perhaps `Within` bounds, a `Literal`, one of
    these or None, or a tuple of these, perhaps with `Ends`. A text in `Annotated` says what the
    field means, and the message shows it. Whole numbers pass for floats; truth values never pass
    for numbers.

    >>> @dataclass
    ... class Config:
    ...     lr: Positive = 1.0
    >>> check_fields(Config(lr=-1.0))
    Traceback (most recent call last):
    rapo_core.checks.UserError: lr must be a number > 0, got -1.0
    """
    made: type = type(config)
    for name, kind in _field_kinds(made).items():
        value = getattr(config, name)
        wanted = _wanted(_as_tuple(value), kind)
        if wanted:
            texts = [text for text in getattr(kind, "__metadata__", ()) if isinstance(text, str)]
            meaning = "".join(f" ({text})" for text in texts)
            raise UserError(f"{name} must be {wanted}, got {value!r}{meaning}")
        if isinstance(value, list | tuple):  # arrays of TOML are lists, and a config is hashed
            object.__setattr__(config, name, _as_tuple(value))


@lru_cache
def _field_kinds(config: type) -> dict[str, Any]:
    """The annotated type of every field of a dataclass."""
    hints = get_type_hints(config, include_extras=True)
    return {field.name: hints[field.name] for field in fields(config)}


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list | tuple) else value


def _wanted(value: Any, kind: Any) -> str:
    """What a value of a type should have been, in words; empty if the value is that."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        wanted = _wanted(value, inner[0])
        rules = [rule for rule in inner[1:] if not isinstance(rule, str)]
        broken = [rule for rule in rules if not wanted and not rule.holds(value)]
        return f"{_KIND_NAMES.get(inner[0], '')}{broken[0]}" if broken else wanted
    if origin is tuple:
        some = isinstance(value, tuple) and len(value) > 0
        kinds = inner[:1] * len(value) if some and inner[-1] is ... else inner
        if not some or len(value) != len(kinds):
            return "several values" if inner[-1] is ... else f"{len(kinds)} values"
        return next((w for v, k in zip(value, kinds, strict=True) if (w := _wanted(v, k))), "")
    if origin in (Union, UnionType):  # of a type and None
        return "" if value is None else _wanted(value, inner[0])
    if origin is Literal:
        return "" if value in inner else f"one of {', '.join(map(str, inner))}"
    if origin is Callable:
        return "" if callable(value) else "a function"
    if isinstance(value, bool) is not (kind is bool):
        return _KIND_NAMES[kind]
    return "" if isinstance(value, int | float if kind is float else kind) else _KIND_NAMES[kind]


_KIND_NAMES = {int: "a whole number", float: "a number", bool: "True or False", str: "a text"}


def need_kind(name: str, value: object, wanted: type[Kind]) -> Kind:
    """The value, if it is of the class."""
    if not isinstance(value, wanted):
        raise UserError(f"{name} must be a {wanted.__name__}, got {value!r}")
    return value


def whole_number(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """`value` as an int if it is a whole number in [least, most]; a bool is not a number here."""
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_number and least <= value <= most:
        return int(value)
    limit = "" if most == 2**63 - 1 else f" and <= {most}"
    raise UserError(f"{name} must be a whole number >= {least}{limit}, got {value!r}")


def truth(name: str, value: Any) -> bool:
    """`value` as a bool if it is one; a text such as "no" would be true by accident."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise UserError(f"{name} must be True or False, got {value!r}")


def one_of(name: str, value: Choice, known: tuple[Choice, ...]) -> Choice:
    """`value` if it is a known one; the message shows those that are."""
    if value in known:
        return value
    raise UserError(f"{name} must be one of {known}, got {value!r}")


def rows_of(episodes: npt.ArrayLike | None, count: int) -> npt.NDArray[np.int64]:
    """Episode indices from indices, a mask or None for all of `count`."""
    if episodes is None:
        return np.arange(count)
    rows = np.atleast_1d(np.asarray(episodes))
    if rows.dtype == np.bool_ and rows.shape == (count,):
        return np.flatnonzero(rows)
    whole = rows.dtype.kind in "iu" or rows.size == 0  # an empty list has the dtype of floats
    if not whole or np.any((rows < 0) | (rows >= count)):
        raise UserError(f"episodes must be indices 0..{count - 1} or a mask, got {episodes!r}")
    return rows.astype(np.int64)


def checked_phases(deform_phases: object) -> list[bool]:
    """Three truth values, one per phase."""
    if not isinstance(deform_phases, tuple | list) or len(deform_phases) != 3:
        raise UserError(f"deform_phases needs three truth values, got {deform_phases!r}")
    return [truth("each of deform_phases", phase) for phase in deform_phases]


def checked_stimuli(stimuli: npt.ArrayLike, count: int, known: int) -> Whole:
    """(count,) 1-based stimuli from one or one per episode; there are `known` stimuli."""
    z = np.asarray(stimuli)
    if (
        z.shape not in ((), (count,))
        or not np.issubdtype(z.dtype, np.integer)
        or np.any((z < 1) | (z > known))
    ):
        raise UserError(f"stimulus must be in 1..{known}, one per episode, got {stimuli!r}")
    return np.broadcast_to(z, (count,)).astype(np.int64)


def checked_actions(actions: npt.ArrayLike, episodes: int, *shapes: tuple[int, ...]) -> Whole:
    """A copy of the actions as int64 in one of the shapes; a single action is for all episodes."""
    array = np.asarray(actions)
    if array.shape not in ((), *shapes) or array.dtype.kind not in "iu":
        raise UserError(
            f"actions must be whole numbers of shape ({episodes},), got {array.dtype} {array.shape}"
        )
    filled = np.empty(array.shape or (episodes,), np.int64)
    filled[...] = array
    return filled


def checked_keys(keys: npt.ArrayLike, count: int) -> npt.NDArray[np.integer]:
    """(count,) keys of episodes."""
    k = np.asarray(keys)
    if k.dtype.kind not in "iu" or k.shape != (count,) or (len(k) and k.min() < 0):
        raise UserError(f"keys must be {count} whole numbers >= 0, one per episode, got {keys!r}")
    return k


def checked_active(active: npt.ArrayLike, count: int, nodes: int) -> npt.NDArray[np.bool_]:
    """(count, nodes) active sets."""
    array = np.asarray(active)
    if array.dtype != np.bool_ or array.shape != (count, nodes):
        raise UserError(
            f"active must be bool of shape ({count}, {nodes}), a row per episode, got "
            f"{array.dtype} {array.shape}"
        )
    return array


def checked_harm_regions(ids: npt.ArrayLike, nodes: int, regions: int) -> npt.NDArray[np.int32]:
    """(nodes,) region that receives the harm of each node."""
    array = np.asarray(ids)
    if array.shape != (nodes,) or array.dtype.kind not in "iu":
        raise UserError(f"harm_region_of must name a region for each of {nodes} nodes")
    if array.min() < 0 or array.max() >= regions:
        raise UserError(
            f"harm_region_of must name regions 0..{regions - 1}, got {array.min()}..{array.max()}"
        )
    return array.astype(np.int32)


def check_episodes(state: Mapping[str, npt.NDArray[Any]], stimuli: int, *sizes: str) -> None:
    """Refuse a snapshot with fields, counts, stimuli or phases that no engine can have.

    `sizes` are the names of entries that must be >= 0, as clock and entries must.
    """
    for name in (*sizes, "clock", "entries"):
        if (state[name] < 0).any():
            raise UserError(f"{name} must be >= 0, got {state[name].min()}")
    for name, last in (("stimulus", stimuli), ("phase", 2)):
        values = state[name]
        if values.min() < 0 or values.max() > last:
            raise UserError(f"{name} must be in 0..{last}, got {values.tolist()}")


def checked_state(
    state: Mapping[str, Any], like: Mapping[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Copies of the entries of a snapshot, with the names, shapes and dtypes of `like`.

    Floats must be finite, and whole numbers must be whole; nothing is rounded or wrapped.
    """
    if not isinstance(state, Mapping) or set(state) != set(like):
        got = sorted(state) if isinstance(state, Mapping) else type(state).__name__
        raise UserError(f"a snapshot has {sorted(like)}, got {got}")
    taken = {}
    for name, mine in like.items():
        array = _as_array(state[name], mine.dtype)
        if array.shape != mine.shape:
            raise UserError(
                f"{name} must have shape {mine.shape}, got {array.shape}; restore a snapshot of "
                "the same configuration"
            )
        kinds = {"u": "ui", "i": "iu", "f": "fiu", "b": "b", "U": "U"}[mine.dtype.kind]
        if array.dtype.kind not in kinds:
            raise UserError(f"{name} must hold {mine.dtype} values, got {array.dtype}")
        with np.errstate(over="ignore"):
            cast = array.astype(mine.dtype) if mine.dtype.kind != "U" else array
        real = mine.dtype.kind == "f"
        fine = np.isfinite(cast) if real else cast == array
        if not np.all(fine):
            what = f"finite {mine.dtype}" if real else str(mine.dtype)
            raise UserError(f"{name} must hold {what} values, got {array[~fine].flat[0]}")
        taken[name] = np.array(cast)
    return taken


def _as_array(value: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """`value` as an array; large whole numbers in lists would otherwise become floats."""
    if isinstance(value, list) and dtype.kind == "u":
        members = np.array(value, object)
        if all(type(v) is int and 0 <= v < 2**64 for v in members.flat):
            return members.astype(dtype)
    return np.asarray(value)
