"""`Setting`: every open value of the warehouse, frozen in `setting.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

_SHARES = ("dispatch", "apart", "way_round", "detour", "touched", "stall", "stray", "saturation")
_MAY_BE_0 = ("apart", "detour", "stall", "stray")
_WHOLE = (
    "doors", "gates", "picks", "radius", "errands", "trip", "pool", "stimuli", "robots", "pick",
    "routes", "zone", "hazards", "delay", "timer",
)  # fmt: skip
_NOT_LAID_OUT = (
    "robots", "dispatch", "pick", "stall", "stray", "delay", "saturation", "timer",
)  # fmt: skip
_MOST_ROUTES = 31
"""Routes are the bits of a whole number while they are compared."""


@dataclass(frozen=True)
class Setting:
    """What each value means stands beside it in `setting.toml`."""

    doors: int
    gates: int
    picks: int
    radius: int
    errands: int
    trip: tuple[int, int]
    pool: int
    stimuli: int
    robots: int
    dispatch: tuple[float, ...]
    pick: int
    routes: int
    longest: float
    apart: float
    temperature: float
    zone: tuple[int, int]
    hazards: int
    way_round: float
    detour: float
    touched: tuple[float, float]
    stall: float
    stray: float
    delay: int
    saturation: float
    timer: int

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            values = list(value) if isinstance(value, tuple | list) else [value]
            kind, what = (int, "whole numbers") if name in _WHOLE else (int | float, "numbers")
            most = 1 if name in _SHARES else float("inf")
            zero = name in _MAY_BE_0
            right = [
                isinstance(v, kind) and not isinstance(v, bool) and 0 <= v <= most and (zero or v)
                for v in values
            ]
            if not (right and all(right)):
                open_end = "[" if zero else "("
                raise ValueError(f"{name} must be {what} in {open_end}0, {most}], got {value!r}")
            if isinstance(value, list):  # arrays of TOML; a setting can be a key
                object.__setattr__(self, name, tuple(value))
        if self.longest < 1:
            raise ValueError(f"longest must be >= 1, got {self.longest}")
        if self.routes > _MOST_ROUTES:
            raise ValueError(f"routes must be <= {_MOST_ROUTES}, got {self.routes}")
        for name, larger in (("gates", 2 * self.doors), ("errands", self.gates * self.picks)):
            if getattr(self, name) > larger:
                raise ValueError(f"{name} must be <= {larger}, got {getattr(self, name)}")
        if len(self.zone) != 2:
            raise ValueError(f"zone must be rows and columns, got {self.zone}")
        for name in ("trip", "touched"):
            low_high = getattr(self, name)
            if len(low_high) != 2 or low_high[0] > low_high[1]:
                raise ValueError(f"{name} must be a lower and an upper end, got {low_high}")

    def layout(self) -> Setting:
        """The same, with the frozen values of all that waves, routes and hazards do not need."""
        return replace(self, **{name: _frozen()[name] for name in _NOT_LAID_OUT})

    @classmethod
    def of(cls, changes: Mapping[str, Any] | Setting | None = None) -> Setting:
        """The frozen setting, with some values changed; an unknown name is an error."""
        if isinstance(changes, Setting):
            return changes
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(changes or {}) - set(known))
        if unknown:
            raise ValueError(f"unknown values {unknown} of the warehouse; known are {known}")
        return cls(**{**_frozen(), **(changes or {})})


@lru_cache
def _frozen() -> dict[str, Any]:
    text = (files("rapo.platforms.warehouse") / "setting.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
