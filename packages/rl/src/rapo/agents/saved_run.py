"""Trained runs as they were saved: their config and their policy, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from gymnasium.spaces import Discrete

from rapo.agents.agent import Agent
from rapo.agents.checkpoint import load_checkpoint
from rapo.agents.cost_env import make_env
from rapo.agents.env_agent import EnvAgent
from rapo.agents.model import Model
from rapo.agents.normaliser import Normaliser
from rapo.agents.run_config import RunConfig, open_graph
from rapo.agents.shield import Shield
from rapo_core.checks import UserError

_MODEL = ("kind", "inputs", "actions", "signals", "hidden", "told")


def load_agent(path: Path | str) -> tuple[Agent | Shield | EnvAgent, RunConfig]:
    """Load the frozen policy of a run, with its shield if it has one, and its config.

    `resolve(config).environment(1)` is what the policy was trained on, and `rapo.rsd.evaluate`
    takes both. The policy of a run on a foreign environment is an `EnvAgent`, which takes
    observations as that environment gives them.

    Raises:
        UserError: there is no such run, or its environment cannot be made again.
    """
    content, config = load_run(path)
    policy = policy_of(content)
    if config.has_episodes:
        return policy, config
    assert isinstance(policy, Agent)
    env = make_env(config.env, config.env_kwargs)
    actions = env.action_space
    assert isinstance(actions, Discrete)
    agent = EnvAgent(policy, env.observation_space, actions)
    env.close()
    return agent, config


def load_run(path: Path | str) -> tuple[dict[str, Any], RunConfig]:
    """Load a checkpoint and its config; a graph must still be the one that was trained on."""
    content = load_checkpoint(path)
    config = RunConfig.from_dict(content["config"])
    if not config.on_graph:
        return content, config
    file = config.env_kwargs.get("graph")
    if file is not None and not Path(file).exists():
        raise UserError(f"{path} was trained on {file}, which is not there any more")
    graph = open_graph(config.env_kwargs)
    if graph.hash != content["graph_hash"]:
        raise UserError(
            f"{path} was trained on graph {content['graph_hash']}, but its config now gives "
            f"{graph.hash}; the graph file or the generator has changed"
        )
    return content, config


def policy_of(content: Mapping[str, Any]) -> Agent | Shield:
    """The policy in a checkpoint's content, with its shield if it has one."""
    agent, shield = agent_of(content), content.get("shield")
    if shield is None:
        return agent
    return Shield(agent, shield["threshold"], reference=shield["reference"])


def agent_of(content: Mapping[str, Any]) -> Agent:
    """The policy in a checkpoint's content, bare."""
    made = content["model"]
    model = Model(**{name: made[name] for name in _MODEL})
    weights = content["learner"]["weights"]
    if weights.shape != model.buffer.values.shape:
        raise UserError(
            f"the checkpoint holds {len(weights)} weights, its networks need "
            f"{len(model.buffer.values)}"
        )
    if not torch.isfinite(weights).all():
        raise UserError("the checkpoint's weights are not finite: its training diverged")
    model.buffer.values.copy_(weights)
    normaliser = Normaliser(model.inputs)
    normaliser.load(content["learner"]["normaliser"])
    return Agent(model, normaliser)
