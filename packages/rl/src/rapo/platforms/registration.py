"""The platforms of the package, and Gymnasium ids of platforms."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register, registry

from rapo.platforms.entry import Entry
from rapo.platforms.feed.entry import FEED
from rapo.platforms.routing.entry import ROUTING
from rapo.platforms.twin.entry import TWIN
from rapo.platforms.warehouse.entry import WAREHOUSE
from rapo_core.checks import UserError

PLATFORMS: dict[str, Entry] = {entry.env: entry for entry in (FEED, ROUTING, WAREHOUSE, TWIN)}
"""The platforms of the package by Gymnasium id; importing `rapo` registers these ids."""


def register_platform(name: str, platform: str, **options: Any) -> None:
    """Give a platform a Gymnasium id, for `gymnasium.make` and `gymnasium.make_vec`.

    Args:
        name: such as `rapo/Feed-v0`.
        platform: "package.module:Class" of a `BatchPlatform`, imported when one is made.
        options: of the environment, which callers may override.

    Raises:
        UserError: the id stands for something else already.
    """
    made = {"platform": platform, **options}
    if name in registry:
        if registry[name].kwargs != made:
            raise UserError(f"{name} is registered already, with {registry[name].kwargs}")
        return
    register(
        id=name,
        entry_point="rapo.platforms.single:PlatformEnv",
        vector_entry_point="rapo.platforms.vector:PlatformVectorEnv",
        kwargs=made,
    )


def register_all() -> None:
    """Register every platform of the package."""
    for name, entry in PLATFORMS.items():
        register_platform(name, entry.made_by)
