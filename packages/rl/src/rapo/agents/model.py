"""Policy and value networks as PPO sees them: step by step when acting, in pieces when learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rapo.agents.networks import GRU, MLP, Buffer
from rapo_core.checks import UserError

Rows = npt.NDArray[np.int64]


@dataclass
class Seen:
    """What the policy saw in a rollout of T steps of N environments.

    Attributes:
        x: (T * N, d) normalised observations, time first.
        keep: (T, N) 0 where the policy's memory was forgotten before the step, else 1.
        states: (T, N, h) the policy's memory before the step.
    """

    x: Tensor
    keep: Tensor
    states: Tensor


class Model:
    """Two separate networks in one buffer.

    Args:
        kind: `mlp`, or `gru` for a policy with memory, whose critic sees that memory too.
        inputs: entries of an observation, d.
        actions: how many.
        signals: outputs of the critic, the reward and each cost.
        extra: further entries that only the critic sees, such as the phase of the schedule.
        hidden: width of the layers; a memory has half as many entries, which gives the GRU about
            as many weights as the MLP it replaces.
    """

    def __init__(
        self, kind: str, inputs: int, actions: int, signals: int, hidden: int, extra: int = 0
    ) -> None:
        if kind not in ("mlp", "gru"):
            raise UserError(f"network must be mlp or gru, got {kind!r}")
        self.kind, self.inputs, self.actions, self.extra = kind, inputs, actions, extra
        self.memory = max(1, hidden // 2) if kind == "gru" else 0
        policy = GRU if kind == "gru" else MLP
        self.buffer = Buffer(
            [
                policy.shapes(inputs, self.memory or hidden, actions),
                MLP.shapes(inputs + self.memory + extra, hidden, signals),
            ]
        )
        self.policy: Any = policy(*self.buffer.views[0])
        self.critic = MLP(*self.buffer.views[1])

    def initialise(self, seed: int) -> None:
        """Fresh weights: a nearly uniform policy and small values."""
        generator = torch.Generator().manual_seed(seed)
        self.policy.initialise(0.01, generator)
        self.critic.initialise(1.0, generator)

    def rewrite(self, ratio: Tensor, move: Tensor) -> None:
        """Let both networks say of x what they said of `ratio x + move`, each of them (d,)."""
        for network in (self.policy, self.critic):
            rows, bias = network.values[0][: self.inputs], network.values[1]
            bias += move @ rows
            rows *= ratio[:, None]

    def start(self, episodes: int) -> Tensor:
        """(episodes, memory) an empty memory; of width 0 without one."""
        return torch.zeros(episodes, self.memory)

    def act(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (N, A), the next memory, and what the critic sees of it all (N, d + memory)."""
        if self.kind == "mlp":
            return self.policy.forward(x), state, x
        logits, state = self.policy.step(x, state)
        return logits, state, torch.cat((x, state), dim=1)

    def pieces(self, steps: int, envs: int, minibatch: int, bptt: int) -> tuple[int, int]:
        """Number of pieces a rollout falls into, and how many of them make a minibatch.

        A piece is a step, or for a policy with memory a sequence of up to `bptt` steps. Both kinds
        of policy get the same number of minibatches, as nearly as whole sequences allow.
        """
        if self.kind == "mlp":
            return steps * envs, minibatch
        count, batches = -(-steps // bptt) * envs, -(-steps * envs // minibatch)
        size = -(-count // batches)
        return count, min(size, max(1, size - 1), key=lambda s: abs(-(-count // s) - batches))

    def forward(self, seen: Seen, picks: Rows, bptt: int) -> tuple[Rows, Tensor]:
        """Rows (B,) of the rollout that the pieces hold, and their logits (B, A)."""
        if self.kind == "mlp":
            return picks, self.policy.forward(seen.x.index_select(0, torch.from_numpy(picks)))
        T, N = seen.keep.shape
        first, n = picks // N * bptt, picks % N
        t = first + np.arange(bptt)[:, None]  # (bptt, S); the last piece may be shorter
        self._valid = torch.from_numpy(np.flatnonzero(t.reshape(-1) < T))
        t = np.minimum(t, T - 1)
        rows = (t * N + n).reshape(-1)
        x = seen.x.index_select(0, torch.from_numpy(rows)).view(bptt, len(picks), -1)
        keep = seen.keep[t, n].unsqueeze(2)
        logits = self.policy.forward(x, seen.states[first, n], keep)
        self._shape = logits.shape
        return rows[self._valid.numpy()], logits.view(-1, self.actions)[self._valid]

    def backward(self, slope: Tensor) -> None:
        """Gradients of the policy from the slope (B, A) of the last `forward`."""
        if self.kind == "gru":
            whole = torch.zeros(self._shape)
            whole.view(-1, self.actions)[self._valid] = slope
            slope = whole
        self.policy.backward(slope)
