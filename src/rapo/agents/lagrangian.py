"""Costs with budgets, and their dual variables by projected gradient ascent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Constraint:
    """`mean cost / reference <= budget`."""

    name: str
    """What the log calls it."""
    key: str
    """Entry of `info` that holds the cost of a step, (N,)."""
    reference: float
    """Mean cost of a step that counts as 1, >= 0; at 0 there is nothing to constrain."""
    budget: float
    """Largest allowed mean cost in units of the reference, > 0."""
    decay: float
    """Of the eligibility trace that carries a cost back in time, per step, in [0, 1)."""

    def __post_init__(self) -> None:
        if not isfinite(self.reference) or self.reference < 0:
            raise ValueError(f"reference of {self.name} must be >= 0, got {self.reference!r}")
        if not isfinite(self.budget) or self.budget <= 0:
            raise ValueError(
                f"budget must be a positive share of the reference cost, got {self.budget!r}"
            )
        if not 0 <= self.decay < 1:
            raise ValueError(f"decay of {self.name} must be in [0, 1), got {self.decay!r}")

    @property
    def scale(self) -> float:
        """Factor from cost to units of the reference."""
        return 1 / self.reference if self.reference > 0 else 0.0


class Duals:
    """One multiplier per constraint: `lambda <- clip(lambda + lr (cost - budget), 0, cap)`.

    Args:
        constraints: K of them.
        lr: step of the ascent, >= 0.
        start: first value, in [0, cap].
        cap: upper bound.
    """

    def __init__(
        self, constraints: Sequence[Constraint], lr: float, start: float, cap: float
    ) -> None:
        self.budgets = np.array([c.budget for c in constraints])
        self.lr, self.cap = lr, cap
        self.values = np.full(len(constraints), start)

    def ascend(self, costs: npt.NDArray[np.float64]) -> None:
        """One step from mean costs (K,) in units of the references."""
        self.values = np.clip(self.values + self.lr * (costs - self.budgets), 0, self.cap)

    def weigh(self, advantage: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Advantage of the Lagrangian from those of reward and costs, (..., 1 + K) to (...)."""
        return weighed(advantage, self.values)


def weighed(
    advantage: npt.NDArray[np.float32], duals: npt.NDArray[np.float64]
) -> npt.NDArray[np.float32]:
    """Reward minus costs by their duals (K,), over the sum of weights; (..., 1 + K) to (...)."""
    weights = np.concatenate([[1.0], -duals]) / (1 + duals.sum())
    return np.asarray(advantage @ weights.astype(np.float32))
