"""`Setting`: every open value of the twin, frozen in `setting.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

Pair = tuple[float, float]
_WHOLE = ("units", "candidates", "stimuli", "cells", "delay", "centres", "trip_to")
_FROM_ZERO = ("activity", "fouling", "swing_c", "swing_T", "mix", "lag", "box", "window", "trip_to")
_ENDS = ("mix", "period")


@dataclass(frozen=True)
class Setting:
    """What each value means stands beside it in `setting.toml`."""

    units: int
    activity: float
    fouling: float
    minutes: float
    set_points: tuple[float, ...]
    candidates: int
    farthest: float
    spread: float
    stimuli: int
    swing_c: float
    swing_T: float
    mix: Pair
    period: Pair
    lag: float
    damage: float
    warm: float
    box: tuple[Pair, Pair]
    cells: tuple[int, int]
    window: tuple[Pair, Pair]
    delay: int
    saturation: float
    centres: int
    spreads: float
    trip_above: float
    trip_to: int

    def __post_init__(self) -> None:
        for f in fields(self):
            value = _as_tuple(getattr(self, f.name))  # arrays of TOML are lists; a setting is a key
            object.__setattr__(self, f.name, value)
            kind, what = (int, "whole numbers") if f.name in _WHOLE else (int | float, "numbers")
            least = 0 if f.name in _FROM_ZERO else 5e-324
            flat = _flat(value)
            right = [isinstance(v, kind) and v is not True and v is not False for v in flat]
            if not (right and all(right) and min(flat) >= least):
                bound = ">= 0" if least == 0 else "> 0"
                raise ValueError(f"{f.name} must be {what} {bound}, got {value!r}")
        pairs = [(n, getattr(self, n)) for n in _ENDS]
        pairs += [(n, pair) for n in ("box", "window") for pair in getattr(self, n)]
        for name, pair in pairs:
            if len(pair) != 2 or not pair[0] <= pair[1] or (name != "mix" and pair[0] == pair[1]):
                raise ValueError(f"{name} must be a lower and an upper end, got {pair}")
        for name, shape in (("box", self.box), ("window", self.window), ("cells", self.cells)):
            if len(shape) != 2:
                raise ValueError(f"{name} must be of mol/L and of K, got {shape}")
        if self.candidates < 2:
            raise ValueError(f"candidates must be >= 2 to choose from, got {self.candidates}")
        if self.trip_to >= self.candidates:
            raise ValueError(f"trip_to must be below {self.candidates}, got {self.trip_to}")

    @classmethod
    def of(cls, changes: Mapping[str, Any] | Setting | None = None) -> Setting:
        """The frozen setting, with some values changed; an unknown name is an error."""
        if isinstance(changes, Setting):
            return changes
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(changes or {}) - set(known))
        if unknown:
            raise ValueError(f"unknown values {unknown} of the twin's setting; known are {known}")
        return cls(**{**_frozen(), **(changes or {})})


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(v) for v in value) if isinstance(value, list | tuple) else value


def _flat(value: Any) -> list[Any]:
    return [v for part in value for v in _flat(part)] if isinstance(value, tuple) else [value]


@lru_cache
def _frozen() -> dict[str, Any]:
    text = (files("rapo.platforms.twin") / "setting.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
