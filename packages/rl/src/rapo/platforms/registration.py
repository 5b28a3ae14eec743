"""Gymnasium ids of platforms: a name, and where its class is."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register, registry

from rapo_core.checks import UserError

PLATFORMS: dict[str, str] = {
    "rapo/Feed-v0": "rapo.platforms.feed:Feed",
    "rapo/Routing-v0": "rapo.platforms.routing:Routing",
    "rapo/Warehouse-v0": "rapo.platforms.warehouse:Warehouse",
    "rapo/Twin-v0": "rapo.platforms.twin:Twin",
}
"""Id and "package.module:Class" of the platforms that importing `rapo` registers."""


def register_platform(name: str, platform: str, **options: Any) -> None:
    """Give a platform a Gymnasium id, for `gymnasium.make` and `gymnasium.make_vec`.

    Args:
        name: such as `rapo/Feed-v0`.
        platform: "package.module:Class" of a `BatchPlatform`; it is imported when it is made.
        options: of the environment, which callers may override.

    Raises:
        ValueError: the id stands for something else already.
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
    """Every platform of the package."""
    for name, platform in PLATFORMS.items():
        register_platform(name, platform)
