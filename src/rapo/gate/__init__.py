"""The gate: harm memory in front of a real platform.

It needs the core alone; the research side knows nothing of it. Names load on first use: a platform
that only calls the service (`rapo.gate.client`) does not wait for numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rapo.gate.config import GateConfig
    from rapo.gate.decide import ConflictError, Decision
    from rapo.gate.declare import Changed, Effect
    from rapo.gate.gate import Field, Gate
    from rapo.gate.intake import HarmReport, ReportResult
    from rapo.gate.store import StoreError

_HOME = {
    "Changed": "declare",
    "ConflictError": "decide",
    "Decision": "decide",
    "Effect": "declare",
    "Field": "gate",
    "Gate": "gate",
    "GateConfig": "config",
    "HarmReport": "intake",
    "ReportResult": "intake",
    "StoreError": "store",
}

__all__ = [
    "Changed",
    "ConflictError",
    "Decision",
    "Effect",
    "Field",
    "Gate",
    "GateConfig",
    "HarmReport",
    "ReportResult",
    "StoreError",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"rapo.gate.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rapo.gate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
