"""What PPO keeps of the steps that were taken, until all their costs are in, and then learns from.

A cost that arrives `lag` steps after its cause is known that much later: the last steps of a
rollout wait for the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rapo.agents.model import Seen
from rapo.cascade.setting import PHASES

Float = npt.NDArray[np.float32]
Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@dataclass
class Steps:
    """T steps of N environments as they were taken, and E truncated ends among them."""

    x: Tensor
    """(T, N, d) normalised observations."""
    keep: Tensor
    """(T, N) 0 where the policy's memory was forgotten before the step, else 1."""
    states: Tensor
    """(T, N, h) the policy's memory before the step."""
    features: Tensor
    """(T, N, f) what the critic sees."""
    last: Tensor
    """(E, f) what it sees of the truncated ends."""
    actions: Int
    """(T, N)"""
    log_p: Float
    """(T, N) log-probability of the actions."""
    signals: Float
    """(T, N, 1 + K) reward and costs as they arrived."""
    terminated: Bool
    """(T, N)"""
    truncated: Bool
    """(T, N)"""
    ends: Int
    """(E, 2) step and environment of the truncated ends."""

    @staticmethod
    def none(envs: int, inputs: int, memory: int, features: int, signals: int) -> Steps:
        """No step at all."""
        return Steps(
            torch.empty(0, envs, inputs),
            torch.empty(0, envs),
            torch.empty(0, envs, memory),
            torch.empty(0, envs, features),
            torch.empty(0, features),
            np.empty((0, envs), np.int64),
            np.empty((0, envs), np.float32),
            np.empty((0, envs, signals), np.float32),
            np.empty((0, envs), np.bool_),
            np.empty((0, envs), np.bool_),
            np.empty((0, 2), np.int64),
        )

    def __len__(self) -> int:
        return len(self.actions)

    def joined(self, others: Steps) -> Steps:
        """These steps and then the others."""
        parts: dict[str, Any] = {}
        for name, mine in self.state().items():
            theirs = getattr(others, name)
            if name == "ends":
                theirs = theirs + [len(self), 0]
            join: Any = torch.cat if isinstance(mine, Tensor) else np.concatenate
            parts[name] = join((mine, theirs))
        return Steps(**parts)

    def since(self, first: int) -> Steps:
        """Copies of the steps from `first` on."""
        later = self.ends[:, 0] >= first
        parts: dict[str, Any] = {n: p[first:] for n, p in self.state().items()}
        parts["last"] = self.last[torch.from_numpy(later)]
        parts["ends"] = self.ends[later] - [first, 0]
        return Steps.of(parts)

    def rewrite(self, ratio: Tensor, move: Tensor) -> None:
        """Follow statistics that have moved: `ratio x + move`, each (d,), is now x."""
        for seen in (self.x, self.features, self.last):
            part = seen[..., : len(ratio)]
            part.sub_(move).div_(ratio)

    def state(self) -> dict[str, Any]:
        """The parts by name, not copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def of(state: Mapping[str, Any]) -> Steps:
        """Copies of the parts; arrays may come as tensors."""
        parts: dict[str, Any] = {n: torch.as_tensor(part).clone() for n, part in state.items()}
        kinds = {field.name: field.type for field in fields(Steps)}
        return Steps(**{n: p if kinds[n] == "Tensor" else p.numpy() for n, p in parts.items()})


@dataclass
class Rollout:
    """T steps of N environments to learn from; signals are the reward and the K costs."""

    seen: Seen
    features: Tensor
    """(T * N, f) what the critic sees."""
    actions: Int
    """(T * N,)"""
    log_p: Float
    """(T * N,) log-probability of the actions."""
    signals: Float
    """(T, N, 1 + K) as they arrived, in reference units; of a cost that is carried, what is new."""
    values: Float
    """(T, N, 1 + K) the critic's, of what an action can still change."""
    advantages: Float
    """(T, N, 1 + K); 0 where not known."""
    known: Bool
    """(T, N, 1 + K) False where an episode was cut off before the cost arrived."""
    means: npt.NDArray[np.float64]
    """(1 + K,) of reward and whole costs over the steps just taken."""


def phases_of(info: Mapping[str, Any], envs: int) -> Float:
    """(N, 3) which phase each environment is in, one-hot; (N, 0) where there are none."""
    if "phase" not in info:
        return np.empty((envs, 0), np.float32)
    return np.asarray(np.eye(len(PHASES), dtype=np.float32)[info["phase"]])
