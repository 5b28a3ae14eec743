"""The gate: harm memory in front of a real platform.

It needs the core alone; the research side knows nothing of it.
"""

from __future__ import annotations

from rapo.gate.config import GateConfig
from rapo.gate.decide import ConflictError
from rapo.gate.declare import Changed, Effect
from rapo.gate.gate import Field, Gate
from rapo.gate.intake import HarmReport, ReportResult
from rapo.gate.store import StoreError
from rapo.gate.view import Decision

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
