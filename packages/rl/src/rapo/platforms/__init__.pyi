"""Public names of the platforms and the modules that they are loaded from."""

from .candidates import Candidates as Candidates
from .candidates import Harmed as Harmed
from .platform import BatchPlatform as BatchPlatform
from .registration import register_platform as register_platform
from .single import PlatformEnv as PlatformEnv
from .tabular import TabularReplayEnv as TabularReplayEnv
from .vector import PlatformVectorEnv as PlatformVectorEnv
from .walkers import CandidateReplayEnv as CandidateReplayEnv
