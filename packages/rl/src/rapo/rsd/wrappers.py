"""Wrappers by which other environments can be diagnosed, under the names of `rapo.rsd`."""

from rapo.platforms.tabular import TabularReplayEnv
from rapo.platforms.walkers import CandidateReplayEnv

__all__ = ["CandidateReplayEnv", "TabularReplayEnv"]
