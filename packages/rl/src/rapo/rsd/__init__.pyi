"""Public names of the diagnostic and the modules that they are loaded from."""

from .adapters import ReplayEnv as ReplayEnv
from .check import check as check
from .result import RSDResult as RSDResult
from .runner import evaluate as evaluate
from .wrappers import CandidateReplayEnv as CandidateReplayEnv
from .wrappers import TabularReplayEnv as TabularReplayEnv
