"""`Effort`: how long to measure, and where progress goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Passed to every topic."""

    rounds: int = 15
    """Rounds of interleaved timing."""
    largest: int = 1_000_000
    """Nodes of the largest graph that is stepped."""
    progress: Callable[[str], object] = lambda text: None
    """Told what is going on."""
