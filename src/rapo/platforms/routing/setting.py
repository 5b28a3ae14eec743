"""`Setting`: every open value of the routing platform, frozen in `setting.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

BLAMES = ("link", "path")
_SHARES = ("arrival", "grey", "loss", "touched", "saturation")
_WHOLE = ("nodes", "paths", "pool", "pairs", "stimuli", "flows", "delay")


@dataclass(frozen=True)
class Setting:
    """What each value means stands beside it in `setting.toml`."""

    nodes: tuple[int, int]
    links_per_node: float
    hop_km: float
    paths: int
    penalty: float
    pool: int
    pairs: int
    stimuli: int
    flows: int
    temperatures: tuple[float, ...]
    arrival: float
    size: float
    capacity: float
    grey: float
    loss: float
    touched: tuple[float, float]
    blame: str
    delay: int
    saturation: float
    half_life: float
    reuse: float
    suppress: float
    longest: float
    flap: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name == "blame":
                if value not in BLAMES:
                    raise ValueError(f"blame must be one of {BLAMES}, got {value!r}")
                continue
            values = list(value) if isinstance(value, tuple | list) else [value]
            kind, what = (int, "whole numbers") if name in _WHOLE else (int | float, "numbers")
            most = 1 if name in _SHARES else float("inf")
            right = [
                isinstance(v, kind) and not isinstance(v, bool) and 0 < v <= most for v in values
            ]
            if not (right and all(right)):
                raise ValueError(f"{name} must be {what} in (0, {most}], got {value!r}")
            if isinstance(value, list):  # arrays of TOML; a setting can be a key
                object.__setattr__(self, name, tuple(value))
        for name, least in (("penalty", 1.0), ("size", 1.0), ("suppress", self.reuse)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be >= {least:g}, got {getattr(self, name)}")
        for name in ("nodes", "touched"):
            low_high = getattr(self, name)
            if len(low_high) != 2 or low_high[0] > low_high[1]:
                raise ValueError(f"{name} must be a lower and an upper end, got {low_high}")

    @classmethod
    def of(cls, changes: Mapping[str, Any] | Setting | None = None) -> Setting:
        """The frozen setting, with some values changed; an unknown name is an error."""
        if isinstance(changes, Setting):
            return changes
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(changes or {}) - set(known))
        if unknown:
            raise ValueError(f"unknown values {unknown} of the routing setting; known are {known}")
        return cls(**{**_frozen(), **(changes or {})})


@lru_cache
def _frozen() -> dict[str, Any]:
    text = (files("rapo.platforms.routing") / "setting.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
