"""`PlatformEnv`: one episode of a platform as an ordinary Gymnasium environment."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from rapo.envs.episodes import Info
from rapo.envs.single_base import OneEpisodeEnv
from rapo.platforms.episode_memory import EpisodeMemory
from rapo.platforms.memory import RegionMemory
from rapo.platforms.vector import MakePlatform, PlatformVectorEnv
from rapo_core.checks import UserError


class PlatformEnv(OneEpisodeEnv):
    """One RSD episode; takes every option of `PlatformVectorEnv` but `autoreset_mode`.

    Entries of `info` that are undefined at a step (the odds, when nobody moves) are left out.

    Args:
        platform: a `BatchPlatform` class, or "package.module:Class".
        render_mode: None, or `rgb_array` for a platform that has a `frame`.
        options: of `PlatformVectorEnv` and of the platform.
    """

    def __init__(
        self, *, platform: MakePlatform | str, render_mode: str | None = None, **options: Any
    ) -> None:
        if "num_envs" in options or "autoreset_mode" in options:
            raise UserError("a single environment has no num_envs and no autoreset_mode")
        self._show(
            PlatformVectorEnv(
                1,
                platform=platform,
                render_mode=render_mode,
                autoreset_mode=AutoresetMode.DISABLED,
                **options,
            )
        )

    @property
    def harm_memory(self) -> EpisodeMemory | None:
        """The fields of the regions, which RSD records; None with a scar field."""
        memory = self.vector.engine.memory
        return EpisodeMemory(memory.harm) if isinstance(memory, RegionMemory) else None

    def _of_one(self, info: Info) -> Info:
        return {name: value for name, value in super()._of_one(info).items() if value == value}
