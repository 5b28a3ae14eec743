"""Costs with budgets, and their dual variables by projected gradient ascent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError, whole_number


@dataclass(frozen=True)
class Constraint:
    """`mean cost / reference <= budget`."""

    name: str
    """Name of the cost in logs."""
    key: str
    """Entry of `info` that holds the cost of a step, (N,)."""
    reference: float
    """Mean cost of a step that counts as 1, >= 0; a reference of 0 constrains nothing."""
    budget: float
    """Largest allowed mean cost in units of the reference, >= 0; a budget of 0 lets the dual rise
    only."""
    decay: float
    """Decay per step of the eligibility trace that carries a cost back in time, in [0, 1)."""
    lag: int = 0
    """Steps between an action and the first cost it can cause, >= 0; credit begins there."""
    retained: float = 0.0
    """Share of the last step's cost that is still part of this one's, in [0, 1).

    G keeps 1 - lambda of itself, so charging G at every step would charge one harm many times. The
    learner pays the increase alone, `(c_t - retained c_{t-1}) / (1 - gamma retained)`. Its
    discounted sum is that of the cost, but for what was there before the first step.
    """

    def __post_init__(self) -> None:
        if not isfinite(self.reference) or self.reference < 0:
            raise UserError(f"reference of {self.name} must be >= 0, got {self.reference!r}")
        if not isfinite(self.budget) or self.budget < 0:
            raise UserError(
                f"budget must be a share >= 0 of the reference cost, got {self.budget!r}"
            )
        for name in ("decay", "retained"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise UserError(f"{name} of {self.name} must be in [0, 1), got {value!r}")
        whole_number(f"lag of {self.name}", self.lag, 0)

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
