"""Names of `rapo_core` that `rapo` offers too: harm memory, deformation, operating point."""

from rapo_core import (
    FieldParams,
    HarmMemory,
    OperatingPoint,
    Scope,
    conductance,
    gate_odds,
    reweight,
)
from rapo_core.operating_point import operating_point

__all__ = [
    "FieldParams",
    "HarmMemory",
    "OperatingPoint",
    "Scope",
    "conductance",
    "gate_odds",
    "operating_point",
    "reweight",
]
