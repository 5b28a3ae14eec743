"""CartPole that must keep left of a line: a cost of 1 for every step with the cart right of 0.

Carts start on both sides of it. Balancing alone crosses it in most episodes.

    rapo train SS --env CartPole-v1 --cost cartpole_left_of_line:cost --budget 25 --steps 6e4
"""

from __future__ import annotations

from typing import Any

LINE = 0.0
"""Position of the cart, in [-2.4, 2.4]; it starts within 0.05 of 0."""


def cost(observation: Any, action: int, info: dict[str, Any]) -> float:
    """1 where the cart is right of the line when the action is taken, else 0."""
    return float(observation[0] > LINE)
