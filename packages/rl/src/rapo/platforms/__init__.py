"""Platforms: many users, flows, robots or units that choose among candidates, with harm memory.

Its files, in the order in which data flows:

- hooks, proposal, batch: what a domain says; candidates and harm; `BatchPlatform`
- kernel, memory, phases, report: psi, law, draw and counts in one call; regions or a scar
  field; clocks and keys; info
- vector, single, episode_memory, registration: Gymnasium: many, one, ids
- data, settings, canvas: what all domains share: real data or a stand-in, open values by type,
  dark pictures
- feed/, routing/, warehouse/, twin/: a domain: platform, setting, its tables and
  kernels, the field's own baseline, picture
- walkers, walker_platform, tabular: walkers that are asked one by one; transition tables
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rapo.platforms.batch import BatchPlatform
    from rapo.platforms.proposal import Candidates, Harmed
    from rapo.platforms.registration import register_platform
    from rapo.platforms.single import PlatformEnv
    from rapo.platforms.tabular import TabularReplayEnv
    from rapo.platforms.vector import PlatformVectorEnv
    from rapo.platforms.walkers import CandidateReplayEnv

_HOME = {
    "BatchPlatform": "batch",
    "CandidateReplayEnv": "walkers",
    "Candidates": "proposal",
    "Harmed": "proposal",
    "PlatformEnv": "single",
    "PlatformVectorEnv": "vector",
    "TabularReplayEnv": "tabular",
    "register_platform": "registration",
}

__all__ = [
    "BatchPlatform",
    "CandidateReplayEnv",
    "Candidates",
    "Harmed",
    "PlatformEnv",
    "PlatformVectorEnv",
    "TabularReplayEnv",
    "register_platform",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"rapo.platforms.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rapo.platforms' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
