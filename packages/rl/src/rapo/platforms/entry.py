"""`Entry`: what a platform's folder tells Gymnasium, the suite and the lab about the platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rapo.names import import_named
from rapo.platforms.data import AUTO

if TYPE_CHECKING:
    from rapo.envs.episodes import EpisodesVectorEnv


@dataclass(frozen=True)
class Baseline:
    """What practitioners of a field do about harm without a harm memory."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the environment under this baseline."""
    policy: str = ""
    """`module:Class` of a policy that acts instead of the scored policy; empty for the latter."""


@dataclass(frozen=True)
class Entry:
    """A platform's names, its default action, its baselines, and what is asked of RAPO on it."""

    name: str
    """Name of the domain in the suite."""
    env: str
    """Gymnasium id."""
    made_by: str
    """`package.module:Class` of a `BatchPlatform`, or of an `EpisodesVectorEnv`."""
    action: int
    """Constant action that the suite scores unless it is given a policy."""
    baselines: tuple[Baseline, ...]
    reach: str
    """What the reach counts."""
    sensitive: str
    """What the sensitive mass counts."""
    returns: str
    """What the return counts."""
    files: tuple[str, ...] = ()
    """Files of real data in the folder of data sets. A platform that has some takes `data`."""
    seed: str = "seed"
    """Option that takes the seed of the platform; that of graphs is called `graph_seed`."""
    SM_R: float = 0.75
    """Largest SM-R that the suite allows RAPO."""
    SM_vs_P0: float = 0.6
    """Largest SM_vs_P0 that the suite allows RAPO."""

    def make(self, seed: int, data: str = AUTO, **options: Any) -> EpisodesVectorEnv:
        """Make the environment of a platform seed, with one episode.

        Args:
            seed: of the platform: it draws what differs between platforms of one kind.
            data: `real`, `stand-in` or `auto`; ignored by a platform without real data.
            options: of the environment and of the platform.
        """
        from rapo.envs.episodes import EpisodesVectorEnv
        from rapo.platforms.vector import PlatformVectorEnv

        chosen = {self.seed: seed, **({"data": data} if self.files else {}), **options}
        made: Any = import_named(self.made_by, "platform")
        if issubclass(made, EpisodesVectorEnv):
            env: EpisodesVectorEnv = made(1, **chosen)
            return env
        return PlatformVectorEnv(1, platform=made, **chosen)
