"""`PPOConfig`: the numbers of the optimiser, one flat dataclass; its fields are command options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rapo_core.checks import (
    Count,
    FromZero,
    OpenShare,
    Positive,
    ShareOrNone,
    UserError,
    check_fields,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PPOConfig:
    """PPO with Lagrangian duals. What the paper does not give is marked as chosen."""

    envs: Count = 16
    """Environments side by side; chosen."""
    rollout: Count = 2048
    """Steps of all environments together between two updates, a multiple of `envs`."""
    minibatch: Count = 256
    """Steps of one gradient; chosen. Recurrent policies take whole sequences, about as many."""
    epochs: Count = 4
    """Passes over a rollout; chosen from 4..10, the cheapest that learns."""
    lr: Positive = 3e-4
    """Learning rate of Adam."""
    clip: Positive = 0.2
    """How far the probability ratio may move before its gradient stops."""
    gamma: OpenShare = 0.9
    """Discount of the reward; chosen: what is served is counted in whole injections, and a long
    horizon adds the noise of the next hundred to what an action earns."""
    cost_gamma: OpenShare = 0.99
    """Discount of costs, which come late; chosen."""
    gae_lambda: ShareOrNone = 0.95
    """Lambda of the advantage estimate."""
    entropy: FromZero = 0.003
    """Entropy bonus; with none, policies settle on aggressive before the duals rise."""
    value_coef: FromZero = 0.5
    """Weight of the value loss; chosen."""
    max_grad_norm: Positive = 0.5
    """Gradients are scaled down to this norm; chosen."""
    hidden: Count = 256
    """Width of the two hidden layers; a GRU has half as many units (chosen: as many weights)."""
    bptt: Count = 50
    """Steps over which a recurrent policy is unrolled."""
    steady: bool = False
    """Whether the policy stays the same when the statistics of its observations move.

    Else every rollout shifts and scales what it sees a little, beside what the clip allows: much
    where better policies see other states, as in CartPole."""
    dual_lr: FromZero = 1e-2
    """Step of the projected ascent of the duals, once per rollout."""
    dual_start: FromZero = 0.0
    """Duals at the beginning; chosen: from above, methods overshoot their budgets."""
    dual_cap: Positive = 10.0
    """Upper bound of the duals, reported when it holds a budget off; chosen."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rollout % self.envs:
            raise UserError(
                f"rollout must be a multiple of envs, got {self.rollout} with {self.envs} envs"
            )
        if self.minibatch > self.rollout:
            raise UserError(
                f"minibatch must be at most rollout, got {self.minibatch} > {self.rollout}"
            )
        if self.dual_start > self.dual_cap:
            raise UserError(
                f"dual_start must be at most dual_cap, got {self.dual_start} > {self.dual_cap}"
            )

    @classmethod
    def for_gymnasium(cls, **changes: Any) -> PPOConfig:
        """Numbers for an environment that nobody has tuned: few copies, many small gradients."""
        return cls(**{**_FOREIGN, **changes})

    @property
    def length(self) -> int:
        """Steps of each environment in a rollout."""
        return self.rollout // self.envs


_FOREIGN: Mapping[str, Any] = {
    "gamma": 0.99, "envs": 1, "minibatch": 64, "epochs": 10, "hidden": 64, "entropy": 0.0,
    "steady": True, "dual_lr": 0.1, "dual_start": 0.0,
}  # fmt: skip
"""What `for_gymnasium` changes; the numbers that Stable-Baselines3 has come to."""
