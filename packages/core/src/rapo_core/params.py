"""The constants of the harm fields, with the paper's values as defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from rapo_core.checks import UserError, between, check_fields

LARGEST = 1e9
"""Upper end of constants that have none of their own: products of them must fit float32."""

_RULES = {
    "lam": between(0, 1, low_open=True, meaning="decay rate of the trace G per step"),
    "alpha": between(0, LARGEST, low_open=False, meaning="gain from harm to the trace G"),
    "eta": between(0, LARGEST, low_open=False, meaning="growth rate of the scar H"),
    "tau": between(0, LARGEST, low_open=False, meaning="trace above which scars grow"),
    "delta": between(0, 1, low_open=True, meaning="scar retention per step (1 = irreversible)"),
    "w_G": between(0, LARGEST, low_open=False, meaning="weight of G in the conductance"),
    "w_H": between(0, LARGEST, low_open=False, meaning="weight of H in the conductance"),
    "psi_min": between(0, 1, low_open=True, meaning="lower bound of the conductance"),
}


@dataclass(frozen=True, slots=True)
class FieldParams:
    """Constants of the fields `G`, `H` and of the conductance `psi`.

    >>> FieldParams(w_H=4.0).psi_min
    0.1
    >>> FieldParams(lam=2)
    Traceback (most recent call last):
    rapo_core.checks.UserError: lam must be in (0, 1], got 2.0 (decay rate of the trace G per step)
    """

    lam: float = 0.1
    """Decay rate of the trace per step, in (0, 1]."""
    alpha: float = 0.5
    """Gain from attributed harm to the trace, >= 0."""
    eta: float = 0.05
    """Scar growth per unit of trace above `tau` and step, >= 0."""
    tau: float = 0.3
    """Threshold of the trace above which scars grow, >= 0."""
    delta: float = 1.0
    """Scar retention per step, in (0, 1]; 1 is irreversible, 0.95..0.999 slow decay."""
    w_G: float = 1.0
    """Weight of the trace in `psi`, >= 0."""
    w_H: float = 2.0
    """Weight of the scar in `psi`, >= 0."""
    psi_min: float = 0.1
    """Lower bound of `psi`, in (0, 1]; keeps the deformation from shutting a region."""

    def __post_init__(self) -> None:
        for name, rule in _RULES.items():
            value = getattr(self, name)
            try:
                if isinstance(value, bool | str):
                    raise TypeError
                object.__setattr__(self, name, float(value))
            except (TypeError, ValueError, OverflowError):
                raise UserError(
                    f"{name} must be a number, got {value!r} ({rule.meaning})"
                ) from None
        check_fields(self, _RULES)

    def to_dict(self) -> dict[str, float]:
        """The constants as a plain dict, for configs and manifests."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FieldParams:
        """Build from a mapping; an unknown name is an error, a missing one takes the default."""
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise UserError(f"unknown field constants {unknown}; known are {known}")
        return cls(**values)
