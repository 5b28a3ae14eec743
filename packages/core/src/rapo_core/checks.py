"""Checks that name what they received: fields, whole numbers, words, episodes, snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Word = TypeVar("Word")


class UserError(ValueError):
    """What a user gave cannot be used; the message names it and says what to do.

    A `ValueError` of any other class is a fault of this software.
    """


class Rule(NamedTuple):
    """What a field of a config must be."""

    words: str
    """After "must be"."""
    holds: Callable[[Any], bool]
    """Whether one value, or one entry of a tuple, keeps the rule."""
    number: bool = True
    """Whether it is about finite numbers; a bool is not one."""
    meaning: str = ""
    """What the field is, for the message."""
    optional: bool = False
    """Whether None keeps the rule as well."""

    def allows(self, value: Any) -> bool:
        """Whether the value keeps the rule; what cannot even be compared does not."""
        if self.optional and value is None:
            return True
        if self.number and (isinstance(value, bool) or not isinstance(value, int | float)):
            return False
        try:
            return (not self.number or isfinite(value)) and bool(self.holds(value))
        except (TypeError, ValueError, OverflowError):
            return False


def between(low: float, high: float, *, low_open: bool, meaning: str = "") -> Rule:
    """A number in (low, high] or [low, high]."""
    words = f"in {'(' if low_open else '['}{low:g}, {high:g}]"
    return Rule(words, lambda v: (v > low if low_open else v >= low) and v <= high, meaning=meaning)


WHOLE = Rule("a whole number >= 1", lambda v: isinstance(v, int) and v >= 1)
POSITIVE = Rule("a positive number", lambda v: v > 0)
NOT_NEGATIVE = Rule("a number >= 0", lambda v: v >= 0)
AT_LEAST_ONE = Rule("a number >= 1", lambda v: v >= 1)
PROBABILITY = Rule("a number in [0, 1]", lambda v: 0 <= v <= 1)
SHARE = Rule("a share in (0, 1)", lambda v: 0 < v < 1)
TRUTH = Rule("True or False", lambda v: isinstance(v, bool), number=False)


def check_fields(config: Any, rules: Mapping[str, Rule]) -> None:
    """Refuse a config with a field that breaks its rule; of a tuple every entry has to keep it.

    >>> from types import SimpleNamespace
    >>> check_fields(SimpleNamespace(lr=-1.0), {"lr": POSITIVE})
    Traceback (most recent call last):
    rapo_core.checks.UserError: lr must be a positive number, got -1.0
    """
    for name, rule in rules.items():
        value = getattr(config, name)
        if not all(map(rule.allows, value if isinstance(value, tuple) else (value,))):
            meaning = f" ({rule.meaning})" if rule.meaning else ""
            raise UserError(f"{name} must be {rule.words}, got {value!r}{meaning}")


def whole_number(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    """`value` as an int if it is a whole number in [least, most]; a bool is not a number here."""
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_number and least <= value <= most:
        return int(value)
    limit = "" if most == 2**63 - 1 else f" and <= {most}"
    raise UserError(f"{name} must be a whole number >= {least}{limit}, got {value!r}")


def truth(name: str, value: Any) -> bool:
    """`value` as a bool if it is one; words such as "no" would be true by accident."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise UserError(f"{name} must be True or False, got {value!r}")


def one_of(name: str, value: Word, known: tuple[Word, ...]) -> Word:
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


def checked_state(
    state: Mapping[str, Any], like: Mapping[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """A snapshot's entries as copies with the names, shapes and dtypes of `like`.

    Floats must be finite, whole numbers and booleans must be such; nothing is rounded or wrapped.
    """
    if not isinstance(state, Mapping) or set(state) != set(like):
        got = sorted(state) if isinstance(state, Mapping) else type(state).__name__
        raise UserError(f"a snapshot has {sorted(like)}, got {got}")
    taken = {}
    for name, mine in like.items():
        given = _as_given(state[name], mine.dtype)
        if given.shape != mine.shape:
            raise UserError(
                f"{name} must have shape {mine.shape}, got {given.shape}; restore a snapshot of "
                "the same configuration"
            )
        kinds = {"u": "ui", "i": "iu", "f": "fiu", "b": "b", "U": "U"}[mine.dtype.kind]
        if given.dtype.kind not in kinds:
            raise UserError(f"{name} must hold {mine.dtype} values, got {given.dtype}")
        with np.errstate(over="ignore"):
            cast = given.astype(mine.dtype) if mine.dtype.kind != "U" else given
        real = mine.dtype.kind == "f"
        fine = np.isfinite(cast) if real else cast == given
        if not np.all(fine):
            what = f"finite {mine.dtype}" if real else str(mine.dtype)
            raise UserError(f"{name} must hold {what} values, got {given[~fine].flat[0]}")
        taken[name] = np.array(cast)
    return taken


def _as_given(value: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """`value` as an array; large whole numbers in lists would otherwise become floats."""
    if isinstance(value, list) and dtype.kind == "u":
        members = np.array(value, object)
        if all(type(v) is int and 0 <= v < 2**64 for v in members.flat):
            return members.astype(dtype)
    return np.asarray(value)
