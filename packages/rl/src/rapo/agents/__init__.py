"""Agents: PPO with Lagrangian duals, and the methods of the paper as rows of one table.

Names load on first use: most of them need torch.

Its files, in the order in which data flows:

- methods: the table: what each method sees, pays, samples from and is made of
- config, gru_kernel, networks, model, advantage, loss, normaliser, lagrangian, rollout, ppo: the
  optimiser, read in this order
- references, train_config, run_file, tracking, train, checkpoint, agent: budgets, runs in
  folders, frozen policies
- shield: actions blocked by rollouts under P0
- gym_task, episodic, env_config, env_agent: any Gymnasium environment with a cost; budgets per
  episode; runs and policies of it
- platform_config, platform_agent: the paper's methods on any platform, which see a summary of
  the fields
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rapo.agents.agent import Agent, load_agent
    from rapo.agents.config import PPOConfig
    from rapo.agents.env_agent import EnvAgent, load_env_agent
    from rapo.agents.env_config import EnvConfig
    from rapo.agents.methods import METHODS, Method
    from rapo.agents.platform_agent import load_platform_agent
    from rapo.agents.platform_config import PlatformConfig
    from rapo.agents.ppo import PPO
    from rapo.agents.shield import Shield
    from rapo.agents.train_config import TrainConfig

_HOME = {
    "METHODS": "methods",
    "PPO": "ppo",
    "Agent": "agent",
    "EnvAgent": "env_agent",
    "EnvConfig": "env_config",
    "Method": "methods",
    "PPOConfig": "config",
    "PlatformConfig": "platform_config",
    "Shield": "shield",
    "TrainConfig": "train_config",
    "load_agent": "agent",
    "load_env_agent": "env_agent",
    "load_platform_agent": "platform_agent",
}

__all__ = [
    "METHODS",
    "PPO",
    "Agent",
    "EnvAgent",
    "EnvConfig",
    "Method",
    "PPOConfig",
    "PlatformConfig",
    "Shield",
    "TrainConfig",
    "load_agent",
    "load_env_agent",
    "load_platform_agent",
]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"rapo.agents.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rapo.agents' has no attribute {name!r}")
