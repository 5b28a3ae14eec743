"""A clock for simulations: the gate takes any function that tells Unix seconds."""

from __future__ import annotations


class SimulatedClock:
    """Unix seconds that go on when they are told to.

    >>> clock = SimulatedClock(100.0); clock.now += 60; clock()
    160.0
    """

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time."""
        return self.now
