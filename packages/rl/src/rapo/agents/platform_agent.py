"""The policy of a run on a platform."""

from __future__ import annotations

from pathlib import Path

from rapo.agents.agent import Agent, agent_of
from rapo.agents.checkpoint import load_checkpoint
from rapo.agents.platform_config import PlatformConfig
from rapo_core.checks import UserError


def load_platform_agent(path: Path | str) -> tuple[Agent, PlatformConfig]:
    """The frozen policy of a checkpoint that `rapo train --env` wrote on a platform.

    `rapo.rsd.evaluate(config.environment(1), agent)` runs the diagnostic on its own platform.

    Raises:
        ValueError: no such checkpoint, or it is of another kind of environment.
    """
    content = load_checkpoint(path)
    if not content["config"].get("platform"):
        raise UserError(
            f"{path} was not trained on a platform; load_agent reads runs on graphs, "
            "load_env_agent those on other environments"
        )
    return agent_of(content), PlatformConfig.from_dict(content["config"])
