"""Public names of the diagnostic and the modules that they are loaded from."""

from .checker import check as check
from .protocol import ReplayEnv as ReplayEnv
from .result import RSDResult as RSDResult
from .runner import evaluate as evaluate
from .wrappers import CandidateReplayEnv as CandidateReplayEnv
from .wrappers import TabularReplayEnv as TabularReplayEnv
