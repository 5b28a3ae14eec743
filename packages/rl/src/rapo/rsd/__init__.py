"""The Replay Suppression Diagnostic: does a system replay what harmed it before?

Its files, in the order in which data flows:

- protocol, stage: what an environment must offer: RSD's calls, or a stage of its own choice
- policy, saved_models: policies of all kinds as actors
- runner, plan, episodes, frame: `evaluate`: what is run, the phases of one run, the numbers of
  its episodes
- metrics, statistics, bootstrap, tails, pooled, result: pure functions on what was found
- plots, table, report: figures; the table of metrics; the HTML page of RSD
- checker, trial, restart: what an environment or a policy breaks, in words
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rapo.platforms.tabular import TabularReplayEnv
    from rapo.platforms.walkers import CandidateReplayEnv
    from rapo.rsd.checker import check
    from rapo.rsd.protocol import ReplayEnv
    from rapo.rsd.result import RSDResult
    from rapo.rsd.runner import evaluate

_HOME = {
    "CandidateReplayEnv": "rapo.platforms.walkers",
    "RSDResult": "rapo.rsd.result",
    "ReplayEnv": "rapo.rsd.protocol",
    "TabularReplayEnv": "rapo.platforms.tabular",
    "check": "rapo.rsd.checker",
    "evaluate": "rapo.rsd.runner",
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
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rapo.rsd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
