"""The gate: harm memory in front of a real platform.

It needs the core alone; the research side knows nothing of it. Names load on first use: a platform
that only calls the service (`rapo_gate.client`) does not wait for numba.

Its files, in the order in which data flows:

- config, events: settings; what the log holds and how it is written
- store, sqlite; postgres, postgres_log, session: the log: one appender, unique keys, snapshots,
  the writer's place at a file
- names, registry, ledger, exposure, law, cells, steps, fold, traffic, state: from events to
  fields, in whole numbers and fixed order
- memory, writer, engine: snapshots, and memory to serve from, kept in step with the log by one
  thread
- intake, decide, gate: reports; decisions; `Gate`, which has an engine
- declare, actions: what people do, each action declared once: method, endpoint, command, form,
  dry run and log line follow
- chains, audit, bias: why a decision changed; reporters, outcomes, what an action would change;
  rates by group
- retention, migrate: what is taken out of a log for good; logs of the first format
- format, tables: numbers and times in words, what people type; what is printed, files of
  reports
- service/: the API and the page of reviewers
- shadow_log, fit: a log as arrays, folded under any settings; settings from it, in words and as
  a figure
- cli, commands, demo: `rapo-gate …`, the bundled stream
- client, calls: for platforms that call the service: the standard library alone
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rapo_gate.config import GateConfig
    from rapo_gate.decide import ConflictError, Decision
    from rapo_gate.declare import Changed, Effect
    from rapo_gate.gate import Field, Gate
    from rapo_gate.intake import HarmReport, ReportResult
    from rapo_gate.store import StoreError

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
        return getattr(import_module(f"rapo_gate.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rapo_gate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
