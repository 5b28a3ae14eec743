"""`Setting`: the open choices of the simulated platform, read from one file of the package.

What the paper leaves open (cascade size, injection rates, reward shape, region size, ...) is chosen
once for every method. The values live in `setting.toml` beside this file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from importlib.resources import files
from math import isfinite
from typing import Any

AGGRESSIVE, MODERATE, CONSERVATIVE = 0, 1, 2
ACTIONS = ("aggressive", "moderate", "conservative")
EXPOSURE, DECAY, REPLAY = 0, 1, 2
PHASES = ("exposure", "decay", "replay")

Rule = tuple[str, Callable[[Any], bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Choices about graph, dynamics, injection, reward, budget; `Setting.default()` reads them."""

    neighbours: float
    """Targets are drawn among the `neighbours * out_degree` nearest nodes, >= 1."""
    inside_weight: float
    """Factor on the probability of edges inside V_sens before scaling, > 0."""
    sensitive_low: float
    """Smallest share of nodes in V_sens, in (0, 1)."""
    sensitive_high: float
    """Largest share of nodes in V_sens, in (0, 1)."""
    support: int
    """Seed nodes of a stimulus, >= 1."""
    cascade_target: float
    """Mean |A_t| over steps 50..400 of a nominal run with the moderate action, > 0."""
    edge_cap: float
    """Largest probability of an edge, in (0, 1]: odds of 1 are infinite, no gate lowers them."""
    persistence: float
    """s: probability that an active node stays active by itself, in [0, 1)."""
    delay: int
    """D: steps between activity and the harm it causes, >= 1."""
    regions: str
    """Region spec: `node`, `community:<mean size>` or `grid:<k>`."""
    straddle: bool
    """Whether a community may hold nodes on both sides of the border of V_sens."""
    rates: tuple[float, float, float]
    """Expected seeds per step under the aggressive, moderate and conservative action, > 0."""
    influence_tilt: float
    """Aggressive seeds are weighted by exp(influence_tilt * influence), >= 0."""
    risk_tilt: float
    """Conservative seeds are weighted by exp(-risk_tilt * risk), >= 0."""
    kappa_s: float
    """Saturation of the reward for served injections, > 0."""
    outside_weight: float
    """Weight of engagement outside V_sens in the reward, >= 0."""
    kappa: float
    """Saturation of engagement outside V_sens, in nodes, > 0."""
    budget: float
    """f: budget of every cost, as a share of the constant aggressive policy's under `P0`, > 0."""
    horizons: tuple[int, int, int]
    """Steps of exposure, decay and replay, >= 1 each."""

    def __post_init__(self) -> None:
        for name in ("rates", "horizons"):
            value = getattr(self, name)
            if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != 3:
                raise ValueError(f"{name} must hold three numbers, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        for field in fields(self):
            value = getattr(self, field.name)
            rule, holds = _RULES[field.name]
            for part in value if isinstance(value, tuple) else (value,):
                try:
                    fine = isfinite(part) if isinstance(part, int | float) else field.name in _WORDS
                    fine = fine and holds(part)
                except (TypeError, ValueError, OverflowError):
                    fine = False
                if not fine:
                    raise ValueError(f"{field.name} must be {rule}, got {value!r}")
        if self.sensitive_low > self.sensitive_high:
            raise ValueError(
                f"sensitive_low must be at most sensitive_high, got {self.sensitive_low} > "
                f"{self.sensitive_high}"
            )

    @staticmethod
    def default() -> Setting:
        """The package's own values."""
        return _default()

    def replace(self, **changes: Any) -> Setting:
        """A copy with some values changed, validated anew."""
        return Setting.from_dict({**asdict(self), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for configs and manifests."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Setting:
        """Build from a mapping that holds every field and nothing else.

        Version 0.1 had no `edge_cap` and cut at 1: without it the value is 1.0, so that what was
        written then still stands for the same graphs.
        """
        given = {"edge_cap": 1.0, **values}
        names = {f.name for f in fields(cls)}
        wrong = sorted(set(given) ^ names)
        if wrong:
            raise ValueError(f"unknown or missing settings {wrong}; needed are {sorted(names)}")
        return cls(**given)


def _whole(value: Any) -> bool:
    return not isinstance(value, bool) and int(value) == value and value >= 1


_POSITIVE: Rule = ("a positive number", lambda v: v > 0)
_NOT_NEGATIVE: Rule = ("a number >= 0", lambda v: v >= 0)
_SHARE: Rule = ("a share in (0, 1)", lambda v: 0 < v < 1)
_WORDS = ("regions", "straddle")
_RULES: dict[str, Rule] = {
    "neighbours": ("a number >= 1", lambda v: v >= 1),
    "inside_weight": _POSITIVE,
    "sensitive_low": _SHARE,
    "sensitive_high": _SHARE,
    "support": ("a whole number >= 1", _whole),
    "cascade_target": _POSITIVE,
    "edge_cap": ("a probability in (0, 1]", lambda v: 0 < v <= 1),
    "persistence": ("a probability in [0, 1)", lambda v: 0 <= v < 1),
    "delay": ("a whole number of steps >= 1", _whole),
    "regions": ("a region spec such as 'community:5'", lambda v: isinstance(v, str)),
    "straddle": ("True or False", lambda v: isinstance(v, bool)),
    "rates": ("three positive numbers of seeds per step", lambda v: v > 0),
    "influence_tilt": _NOT_NEGATIVE,
    "risk_tilt": _NOT_NEGATIVE,
    "kappa_s": _POSITIVE,
    "outside_weight": _NOT_NEGATIVE,
    "kappa": _POSITIVE,
    "budget": _NOT_NEGATIVE,
    "horizons": ("three whole numbers of steps >= 1", _whole),
}
"""What each value must be, in words and as a test of one number (or word)."""


@lru_cache(maxsize=1)
def _default() -> Setting:
    text = files("rapo.cascade").joinpath("setting.toml").read_text(encoding="utf-8")
    return Setting.from_dict(tomllib.loads(text))
