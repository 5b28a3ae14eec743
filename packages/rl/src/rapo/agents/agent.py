"""`Agent`: a trained policy, frozen, with its normalisation and the config it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rapo.agents.checkpoint import load_checkpoint
from rapo.agents.model import Model
from rapo.agents.normaliser import Normaliser
from rapo.agents.shield import Shield
from rapo.agents.train_config import TrainConfig
from rapo_core.action_probs import sample
from rapo_core.checks import UserError

Float = npt.NDArray[np.floating[Any]]


_MODEL = ("kind", "inputs", "actions", "signals", "hidden", "told")


class Agent:
    """Tells the law of its actions; the memory of a recurrent one is cleared by `reset`.

    Args:
        model: networks.
        normaliser: of observations.
    """

    def __init__(self, model: Model, normaliser: Normaliser) -> None:
        self.model, self.normaliser = model, normaliser
        self._memory = model.start(0)

    def reset(self, episodes: int, seed: int = 0) -> None:
        """Forget everything; `seed` is not used, actions are drawn with the caller's draws."""
        self._memory = self.model.start(episodes)

    @torch.no_grad()
    def law(self, x: Float) -> npt.NDArray[np.float64]:
        """Action law (E, A) for observations (E, d); moves the memory on."""
        if x.ndim != 2 or x.shape[1] != self.model.inputs:
            raise UserError(
                f"this policy sees observations of {self.model.inputs} entries, got shape {x.shape}"
            )
        if len(self._memory) != len(x):
            self.reset(len(x))
        seen = torch.from_numpy(self.normaliser(x.astype(np.float32, copy=False)))
        logits, self._memory, _ = self.model.act(seen, self._memory)
        return np.asarray(torch.softmax(logits.double(), dim=1).numpy())

    def act(self, x: Float, draws: Float) -> tuple[npt.NDArray[np.int64], Float]:
        """Actions (E,) by the draws (E,) in [0, 1), and their law (E, A)."""
        law = self.law(x)
        return sample(law, draws), law


def load_agent(path: Path | str) -> tuple[Agent | Shield, TrainConfig]:
    """The frozen policy of a checkpoint, with its shield if it has one, and its config.

    Raises:
        ValueError: no checkpoint, another format, or the graph cannot be made again.
    """
    content, config = load_run(path)
    return policy_of(content), config


def load_run(path: Path | str) -> tuple[dict[str, Any], TrainConfig]:
    """A checkpoint's content and config, whose graph must still be the one it was trained on."""
    content = load_checkpoint(path)
    if content["config"].get("platform"):
        raise UserError(
            f"{path} was trained on the platform {content['config']['env']}; rapo suite run "
            "--policy scores it, rapo.agents.load_platform_agent(path) gives its policy"
        )
    if "env" in content["config"]:
        raise UserError(
            f"{path} was trained on {content['config']['env']}, which is not the graph environment;"
            " its policy is rapo.agents.load_env_agent(path), which rapo.rsd.evaluate takes with "
            "any environment of the RSD protocol"
        )
    config = TrainConfig.from_dict(content["config"])
    if config.graph is not None and not Path(config.graph).exists():
        raise UserError(f"{path} was trained on {config.graph}, which is not there any more")
    if config.network.hash != content["graph_hash"]:
        raise UserError(
            f"{path} was trained on graph {content['graph_hash']}, but its config now gives "
            f"{config.network.hash}; the graph file or the generator has changed"
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
