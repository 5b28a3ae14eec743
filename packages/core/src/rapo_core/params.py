"""The constants of the harm fields, with the paper's values as defaults."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

from rapo_core.checks import UserError, Within, check_fields, need_kind

LARGEST = 1e9
"""Upper end of constants without a bound of their own: products of them must fit float32."""

SMALLEST_PSI_MIN = 1e-30
"""Lower bounds of psi below this would leave the normal range of float32."""

_Gain = Within(0, LARGEST)
_Rate = Within(0, 1, low_open=True)


@dataclass(frozen=True, slots=True)
class FieldParams:
    """Constants of the fields `G`, `H` and of the conductance `psi`.

    >>> FieldParams(w_H=4.0).psi_min
    0.1
    >>> FieldParams(lam=2)
    Traceback (most recent call last):
    rapo_core.checks.UserError: lam must be a number in (0, 1], got 2.0 (decay rate of the trace G)
    """

    lam: Annotated[float, _Rate, "decay rate of the trace G"] = 0.1
    """Decay rate of the trace per step, in (0, 1]."""
    alpha: Annotated[float, _Gain, "gain from harm to the trace G"] = 0.5
    """Gain from attributed harm to the trace, >= 0."""
    eta: Annotated[float, _Gain, "growth rate of the scar H"] = 0.05
    """Scar growth per unit of trace above `tau` and step, >= 0."""
    tau: Annotated[float, _Gain, "trace above which scars grow"] = 0.3
    """Threshold of the trace above which scars grow, >= 0."""
    delta: Annotated[float, _Rate, "retention of the scar H per step, 1 = irreversible"] = 1.0
    """Scar retention per step, in (0, 1]; 1 is irreversible, 0.95..0.999 slow decay."""
    w_G: Annotated[float, _Gain, "weight of G in the conductance"] = 1.0
    """Weight of the trace in `psi`, >= 0."""
    w_H: Annotated[float, _Gain, "weight of H in the conductance"] = 2.0
    """Weight of the scar in `psi`, >= 0."""
    psi_min: Annotated[float, _Rate, "lower bound of the conductance"] = 0.1
    """Lower bound of `psi`, in (0, 1]; keeps the deformation from shutting a region."""

    def __post_init__(self) -> None:
        for field in fields(self):  # whole numbers and numbers of NumPy become Python floats
            value = getattr(self, field.name)
            if not isinstance(value, bool | str):
                with suppress(TypeError, ValueError, OverflowError):
                    object.__setattr__(self, field.name, float(value))
        check_fields(self)

    @property
    def rates(self) -> tuple[float, float, float, float, float]:
        """(1 - lam, alpha, delta, eta, tau), as kernels of the fields take them."""
        return 1 - self.lam, self.alpha, self.delta, self.eta, self.tau

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


def single_precision(params: object) -> FieldParams:
    """The constants, if a kernel in single precision can use them."""
    checked = need_kind("params", params, FieldParams)
    if checked.psi_min < SMALLEST_PSI_MIN:
        raise UserError(
            f"psi_min must be >= {SMALLEST_PSI_MIN:g} in single precision, got {checked.psi_min}"
        )
    return checked
