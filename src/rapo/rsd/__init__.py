"""The Replay Suppression Diagnostic: does a system replay what harmed it before?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rapo.rsd.candidates import CandidateReplayEnv
    from rapo.rsd.checker import check
    from rapo.rsd.protocol import ReplayEnv
    from rapo.rsd.result import RSDResult
    from rapo.rsd.runner import evaluate
    from rapo.rsd.tabular import TabularReplayEnv

_HOME = {
    "CandidateReplayEnv": "candidates",
    "RSDResult": "result",
    "ReplayEnv": "protocol",
    "TabularReplayEnv": "tabular",
    "check": "checker",
    "evaluate": "runner",
}

__all__ = [
    "CandidateReplayEnv",
    "RSDResult",
    "ReplayEnv",
    "TabularReplayEnv",
    "check",
    "evaluate",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"rapo.rsd.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rapo.rsd' has no attribute {name!r}")
