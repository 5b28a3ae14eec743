"""`GateConfig`: everything about a gate that an operator may choose; a clock for simulations."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import sqrt
from pathlib import Path
from typing import Any

from rapo_core.checks import UserError, whole_number
from rapo_core.params import FieldParams
from rapo_gate.events import checked_word

Clock = Callable[[], float]
"""Tells Unix seconds."""
FIXED = ("tick_seconds", "D", "D_max")
"""Settings that give logged ticks their meaning; a gate keeps the ones it was made with."""

ACTING = FieldParams(
    lam=0.1, alpha=0.1, tau=0.1, eta=0.002, delta=0.999984, w_G=1.0, w_H=2.0, psi_min=0.1
)
"""Fields that act out of the box at one minute a tick: with alpha = lambda a steady trace is the
harm itself, tau is three times the base rate, a day at 5% reported scars down to psi 0.5, and a
scar halves in 30 days."""

LEAST_PSI_MIN = 1e-6
"""Below, the mass that passes may vanish in rounding."""

MOST_TOPICS = 10_000

_REALS: dict[str, tuple[float, float]] = {  # name: smallest (excluded), largest
    "tick_seconds": (0.0, 1e7),
    "max_harm": (0.0, 1e3),
    "half_life": (0.0, 1e7),
    "shrinkage": (0.0, 1e9),
    "scale": (0.0, 1e6),
    "cap_source": (0.0, 1e6),
    "unconfirmed_floor": (0.0, 1.0),
    "agree_share": (0.0, 1.0),
    "saturation_psi": (0.0, 1.0),
    "band_scar_mass": (0.0, 1e12),
    "band_gating": (0.0, 1.0),
    "band_saturated": (0.0, 1.0),
    "band_reports": (0.0, 1e6),
}
MOST_SOURCES, MOST_SIGNALS = 32, 8
"""Most reporters and kinds of signal that may be needed: as many of a region are kept."""
_WHOLES = {  # name: largest; the smallest is 1
    "D": 10**9, "D_max": 10**9, "confirm_ticks": 10**9,
    "min_signals": MOST_SIGNALS, "min_sources": MOST_SOURCES,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GateConfig:
    """Settings of a gate; validated, hashed into every snapshot.

    >>> GateConfig(D=100).to_dict()["D"]
    100
    >>> GateConfig(D=100, D_max=50)
    Traceback (most recent call last):
    rapo_core.checks.UserError: D_max must be >= D = 100, got 50
    """

    params: FieldParams = ACTING
    """Constants of the fields. A gate's ticks are minutes and its harm is a rate, so its defaults
    are not the paper's: see `ACTING`."""

    tick_seconds: float = 60.0
    """Seconds of one tick, the paper's step."""
    D: int = 50
    """Ticks, at least 1, after an exposure at which its harm counts. Reports may arrive in any
    order until then; what comes later waits for a reviewer."""
    D_max: int = 1440
    """Ticks after which a report is refused."""

    max_harm: float = 1.0
    """Largest harm of one report; more is refused."""
    base_rate: float = 0.01
    """Reports per exposure, in (0, 1), that are nothing unusual: harm is what exceeds it."""
    base_rates: Mapping[str, float] = field(default_factory=dict)
    """What the rate of a region with this topic is taken to be before anything is known of it;
    `base_rate` for every other region. A topic alone must not be harm (see below)."""
    half_life: float = 4320.0
    """Ticks in which reports and exposures lose half of their weight."""
    shrinkage: float = 50.0
    """Exposures at the prior rate that every region is taken to have had: one report on one
    exposure is not a rate of 1."""
    z: float = 2.0
    """Standard deviations, >= 0, by which a rate must exceed the base rate to be harm."""
    scale: float = 0.2
    """Excess over the base rate that is harm 1; more is no more."""
    cap_source: float = 5.0
    """Most harm that one reporter can put into one tick; more is scaled down to it."""

    min_signals: int = 2
    """Different signals that must agree before a region may scar, at most 8."""
    min_sources: int = 3
    """Different reporters that must agree before a region may scar, at most 32."""
    agree_share: float = 0.05
    """A report agrees only on regions with at least this share of what it is about: whoever was
    merely among the candidates is not confirmed by it."""
    confirm_ticks: int = 1440
    """Ticks during which reports count towards such agreement, and a reviewer's word holds."""
    unconfirmed_floor: float = 0.9
    """Until a region is confirmed its trace alone cannot take its psi below this share."""
    scar_ticks: int | None = None
    """A scar expires this many ticks after it last grew; None for never (the paper)."""

    saturation_psi: float = 0.5
    """A decision whose every candidate has at most this psi is saturated: renormalising gives
    the mass back, so the gate cannot help."""
    band_scar_mass: float = 10.0
    """Escalate when the sum of all scars exceeds this."""
    band_gating: float = 0.5
    """Escalate when decisions of a tick are moved by more than this total variation on average."""
    band_saturated: float = 0.05
    """Escalate when more than this share of a tick's decisions is saturated."""
    band_reports: float = 6.0
    """Escalate when a tick's reports exceed their moving mean by this many square roots of it."""

    def __post_init__(self) -> None:
        if not isinstance(self.params, FieldParams):
            raise UserError(f"params must be FieldParams, got {self.params!r}")
        if self.params.psi_min < LEAST_PSI_MIN:
            limit = f"{LEAST_PSI_MIN:g}"
            raise UserError(f"psi_min of a gate must be >= {limit}, got {self.params.psi_min}")
        for name, (low, high) in _REALS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise UserError(f"{name} must be a number, got {value!r}")
            if not low < value <= high:  # also what is not finite
                raise UserError(f"{name} must be in ({low:g}, {high:g}], got {value!r}")
            object.__setattr__(self, name, float(value))
        for name, most in _WHOLES.items():
            object.__setattr__(self, name, whole_number(name, getattr(self, name), 1, most))
        self._check_rates()
        if self.scar_ticks is not None:
            whole_number("scar_ticks", self.scar_ticks, 1, 10**9)
        if self.D_max < self.D:
            raise UserError(f"D_max must be >= D = {self.D}, got {self.D_max}")

    def _check_rates(self) -> None:
        settings = {"z": self.z, "base_rate": self.base_rate}
        if not isinstance(self.base_rates, Mapping) or len(self.base_rates) > MOST_TOPICS:
            raise UserError(
                f"base_rates must be up to {MOST_TOPICS} topics and their rates, "
                f"got {self.base_rates!r:.80}"
            )
        for topic, rate in self.base_rates.items():
            settings[f"base_rates of {checked_word('a topic of base_rates', topic)!r}"] = rate
        for name, value in settings.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise UserError(f"{name} must be a number, got {value!r}")
            if not (0 <= value <= 100 if name == "z" else 0 < value < 1):
                allowed = "[0, 100]" if name == "z" else "(0, 1)"
                raise UserError(f"{name} must be in {allowed}, got {value!r}")
        object.__setattr__(self, "z", float(self.z))
        object.__setattr__(self, "base_rate", float(self.base_rate))
        rates = {topic: float(rate) for topic, rate in sorted(self.base_rates.items())}
        object.__setattr__(self, "base_rates", rates)
        for topic, rate in rates.items():
            # with no report left the excess has the sign of this; it must fade, not rest on b_p
            known = self.shrinkage * rate
            if rate > self.base_rate and known - self.z * sqrt(known) > (
                self.shrinkage * self.base_rate
            ):
                raise UserError(
                    f"base_rates of {topic!r} = {rate:g} would be harm without a single report; "
                    "lower it, or raise z, or lower shrinkage"
                )

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for the log and for TOML."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["params"] = self.params.to_dict()
        values["base_rates"] = dict(self.base_rates)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GateConfig:
        """Build from a mapping; an unknown name is an error, a missing one takes the default."""
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise UserError(f"unknown settings {unknown} of a gate; known are {known}")
        settings = dict(values)
        if isinstance(settings.get("params"), Mapping):
            settings["params"] = FieldParams.from_dict({**ACTING.to_dict(), **settings["params"]})
        return cls(**settings)

    def digest(self) -> str:
        """SHA-256 of the settings, in hex."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class SimulatedClock:
    """Unix seconds that go on when they are told to.

    >>> clock = SimulatedClock(100.0); clock.now += 60; clock()
    160.0
    """

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time."""
        return self.now


def config_of(path: Path | None) -> GateConfig:
    """Settings from a TOML file; the defaults without one."""
    if path is None:
        return GateConfig()
    try:
        values = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    try:
        return GateConfig.from_dict(values)
    except (ValueError, TypeError) as error:
        raise UserError(f"{path}: {error}") from None
