"""`PPOConfig`: the numbers of the optimiser, one flat dataclass; its fields are command options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rapo_core.checks import (
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    TRUTH,
    WHOLE,
    Rule,
    UserError,
    check_fields,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PPOConfig:
    """PPO with Lagrangian duals. What the paper does not give is marked as chosen."""

    envs: int = 16
    """Environments side by side; chosen."""
    rollout: int = 2048
    """Steps of all environments together between two updates, a multiple of `envs`."""
    minibatch: int = 256
    """Steps of one gradient; chosen. Recurrent policies take whole sequences, about as many."""
    epochs: int = 4
    """Passes over a rollout; chosen from 4..10, the cheapest that learns."""
    lr: float = 3e-4
    """Learning rate of Adam."""
    clip: float = 0.2
    """How far the probability ratio may move before its gradient stops."""
    gamma: float = 0.9
    """Discount of the reward; chosen: what is served is counted in whole injections, and a long
    horizon adds the noise of the next hundred to what an action earns."""
    cost_gamma: float = 0.99
    """Discount of costs, which come late; chosen."""
    gae_lambda: float = 0.95
    """Lambda of the advantage estimate."""
    entropy: float = 0.003
    """Entropy bonus; with none, policies settle on aggressive before the duals rise."""
    value_coef: float = 0.5
    """Weight of the value loss; chosen."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm; chosen."""
    hidden: int = 256
    """Width of the two hidden layers; a GRU has half as many units (chosen: as many weights)."""
    bptt: int = 50
    """Steps over which a recurrent policy is unrolled."""
    steady: bool = False
    """Whether the policy stays the same when the statistics of its observations move.

    Else every rollout shifts and scales what it sees a little, beside what the clip allows: much
    where better policies see other states, as in CartPole."""
    dual_lr: float = 1e-2
    """Step of the projected ascent of the duals, once per rollout."""
    dual_start: float = 0.0
    """Duals at the beginning; chosen: from above, methods overshoot their budgets."""
    dual_cap: float = 10.0
    """Upper bound of the duals, reported when it holds a budget off; chosen."""

    def __post_init__(self) -> None:
        check_fields(self, _RULES)
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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PPOConfig:
        """Build from a mapping that holds every field and nothing else; 0.1 had fewer."""
        values = {"steady": False, "cost_gamma": values.get("gamma"), **values}
        wrong = sorted(set(values) ^ {f.name for f in fields(cls)})
        if wrong:
            raise UserError(f"unknown or missing numbers of PPO: {wrong}")
        return cls(**values)

    @property
    def length(self) -> int:
        """Steps of each environment in a rollout."""
        return self.rollout // self.envs


_FOREIGN: Mapping[str, Any] = {
    "gamma": 0.99, "envs": 1, "minibatch": 64, "epochs": 10, "hidden": 64, "entropy": 0.0,
    "steady": True, "dual_lr": 0.1, "dual_start": 0.0,
}  # fmt: skip
"""What `for_gymnasium` changes; the numbers that Stable-Baselines3 has come to."""

_DISCOUNT = Rule("a discount in (0, 1)", lambda v: 0 < v < 1)
_RULES: dict[str, Rule] = {
    **dict.fromkeys(("envs", "rollout", "minibatch", "epochs", "hidden", "bptt"), WHOLE),
    **dict.fromkeys(("lr", "clip", "max_grad_norm", "dual_cap"), POSITIVE),
    **dict.fromkeys(("entropy", "value_coef", "dual_lr", "dual_start"), NOT_NEGATIVE),
    "steady": TRUTH,
    **dict.fromkeys(("gamma", "cost_gamma"), _DISCOUNT),
    "gae_lambda": PROBABILITY,
}
"""What each value must be."""
