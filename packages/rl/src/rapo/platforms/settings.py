"""`FrozenSetting`: every open value of a platform, read from the `setting.toml` beside its class.

A field says in its type which values it takes, and that is all there is to validate.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from math import inf, isfinite
from typing import Annotated, Any, Literal, Self, get_args, get_origin, get_type_hints

from rapo_core.checks import UserError


@dataclass(frozen=True)
class Within:
    """Finite numbers from `low` to `high`; not `low` itself if it is `above`."""

    low: float
    high: float = inf
    above: bool = False

    def __str__(self) -> str:
        return f" in {'(' if self.above else '['}{self.low:g}, {self.high:g}]"

    def holds(self, value: float) -> bool:
        """Whether a number is one of them."""
        enough = value > self.low if self.above else value >= self.low
        return isfinite(value) and enough and value <= self.high


@dataclass(frozen=True)
class Ends:
    """Of a pair: a lower and an upper end; equal ones only if they may be."""

    equal: bool = True

    def __str__(self) -> str:
        return "a lower and an upper end"

    def holds(self, value: tuple[float, float]) -> bool:
        """Whether a pair is one."""
        return value[0] < value[1] or (self.equal and value[0] == value[1])


Count = Annotated[int, Within(1)]
Positive = Annotated[float, Within(0, above=True)]
FromZero = Annotated[float, Within(0)]
FromOne = Annotated[float, Within(1)]
Share = Annotated[float, Within(0, 1, above=True)]
ShareOrNone = Annotated[float, Within(0, 1)]
Level = Annotated[float, Within(-inf)]


@dataclass(frozen=True)
class FrozenSetting:
    """What each value means stands beside it in `setting.toml`. A subclass is a frozen dataclass.

    Raises:
        ValueError: a value that its field does not take, by name.
    """

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            value = _as_tuple(getattr(self, name))  # arrays of TOML are lists; a setting is a key
            object.__setattr__(self, name, value)
            wanted = _wanted(value, kind)
            if wanted:
                raise UserError(f"{name} must be {wanted}, got {value!r}")
        self.check()

    def check(self) -> None:
        """Refuse values that do not go together."""

    @classmethod
    def of(cls, changes: Mapping[str, Any] | Self | None = None) -> Self:
        """The frozen setting, with some values changed; an unknown name is an error."""
        if changes is not None and not isinstance(changes, Mapping):
            if not isinstance(changes, cls):
                raise UserError(f"setting must be values by name, got {changes!r}")
            return changes
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(changes or {}) - set(known))
        if unknown:
            raise UserError(f"unknown values {unknown} of the setting; known are {known}")
        return cls(**{**_frozen(cls.__module__), **(changes or {})})


@lru_cache
def _frozen(module: str) -> dict[str, Any]:
    folder = files(module.rpartition(".")[0])
    return tomllib.loads((folder / "setting.toml").read_text("utf-8"))


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(v) for v in value) if isinstance(value, list | tuple) else value


def _wanted(value: Any, kind: Any) -> str:
    """What a value should have been, or nothing if it is that.

    Args:
        value: of a field.
        kind: its type: a number, with what it is `Within`, one of some words, or a tuple of these.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        kind, rule = inner[:2]
        wanted = _wanted(value, kind)
        return wanted if wanted or rule.holds(value) else f"{_WORDS.get(kind, '')}{rule}"
    if origin is tuple:
        if not isinstance(value, tuple) or not value:
            return "several values"
        kinds = inner[:1] * len(value) if inner[-1] is ... else inner
        if len(value) != len(kinds):
            return f"{len(kinds)} values"
        return next((w for v, k in zip(value, kinds, strict=True) if (w := _wanted(v, k))), "")
    if origin is Literal:
        return "" if value in inner else f"one of {inner}"
    right = isinstance(value, int | float if kind is float else kind)
    return "" if right and not isinstance(value, bool) else _WORDS[kind]


_WORDS: dict[Any, str] = {int: "a whole number", float: "a number"}
