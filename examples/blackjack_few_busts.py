"""Blackjack that must rarely go bust: the cost of a card is the chance that it busts the hand.

The best play takes many such chances; the budget is their sum in a game.

    rapo train SS --env Blackjack-v1 --cost blackjack_few_busts:cost --budget 0.02 --steps 4e4
"""

from __future__ import annotations

from typing import Any

CARD = 1
"""The action that takes one more card; 0 sticks."""


def cost(observation: Any, action: int, info: dict[str, Any]) -> float:
    """Chance that the card busts the hand; 0 for sticking, and with an ace that may count as 1."""
    hand, _, usable_ace = observation
    if action != CARD or usable_ace or hand <= 11:
        return 0.0
    return (13 - (21 - hand)) / 13  # of 13 ranks, 10 and three faces count 10
