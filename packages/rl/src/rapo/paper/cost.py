"""What a reproduction costs before it is run: one-thread hours from steps and episodes."""

from __future__ import annotations

from collections.abc import Iterable

from rapo.agents.methods import METHODS
from rapo.paper.task import Task
from rapo.paper.tasks import Evaluate, Guard, Train

RATES = {"mlp": 13_000.0, "gru": 7_400.0}
"""Training steps a second of one thread on a core of its own, by network."""
EVALUATION = 1.2
"""Seconds of 20 episodes."""
SHIELDED = 35.0
"""The same behind a shield, which simulates thousands of transitions a step."""
TUNING = 110.0
"""Seconds in which a shield's threshold is found."""


def seconds(task: Task) -> float:
    """Of one thread, for the task alone."""
    if isinstance(task, Train):
        config = task.config
        return config.updates * config.ppo.rollout / RATES[config.trained.network]
    if isinstance(task, Guard):
        return TUNING
    if isinstance(task, Evaluate):
        each = EVALUATION if METHODS[task.method].shield is None else SHIELDED
        return each * task.episodes / 20
    return float(getattr(task, "seconds", 0.0))  # of a task that knows


def hours(tasks: Iterable[Task]) -> float:
    """One-thread hours of tasks, each once, without what they need."""
    return sum(seconds(task) for task in {task.key: task for task in tasks}.values()) / 3600
