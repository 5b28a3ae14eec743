"""Whether `reset_observable(seed)` restarts all draws, even where the memory acts at once."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import numpy as np

from rapo.rsd.trial import Step, Trial, first_difference

RESTART = "the draws do not restart"
_STEPS = 30


def restart_problem(trial: Trial) -> str | None:
    """What is wrong with the draws, in words; None if nothing is.

    Two episodes of the same seeds must agree. Then a run is begun again after three steps, by the
    environment and by a copy of it whose generators have been drawn from in between: with the same
    memory and the same seed nothing but a generator that was not restarted can tell them apart.
    That a memory has changed since Exposure plays no part, so one that acts at once is no problem.
    """
    trial.start()
    first = trial.run(_STEPS)
    trial.start()
    t = first_difference(first, trial.run(_STEPS))
    if t is not None:
        return (
            f"{RESTART}: two runs with seed {trial.seed} differ at step {t}; draw from a "
            "generator that reset(seed) and reset_observable(seed) seed"
        )
    runs = _with_other_draws(trial)
    t = _without_copies(trial, first) if runs is None else first_difference(*runs)
    if t is None:
        return None
    return (
        f"{RESTART}: after reset_observable(seed) with the same seed and the same memory, step {t} "
        "differs; draw from a generator that reset_observable(seed) seeds"
    )


def _with_other_draws(trial: Trial) -> tuple[list[Step], list[Step]] | None:
    """Two runs after `again`, before one of which all generators moved on; None without a copy."""
    trial.start()
    trial.run(3)
    copied: dict[int, Any] = {}
    try:
        copied_env = deepcopy(trial.env, copied)
    except Exception:  # whatever cannot be copied
        return None
    if copied_env is trial.env:
        return None
    for thing in list(copied.values()):
        _draw_from(thing)
    runs = []
    for env in (trial.env, copied_env):
        other = Trial(env, trial.steps, trial.seed)
        other.again()
        runs.append(other.run(_STEPS))
    return runs[0], runs[1]


def _draw_from(thing: Any) -> None:
    """Move a generator on, and leave everything else alone."""
    if isinstance(thing, np.random.Generator):
        thing.random(7)
    elif isinstance(thing, np.random.RandomState):
        thing.random_sample(7)
    elif isinstance(thing, random.Random):
        thing.random()


def _without_copies(trial: Trial, first: list[Step]) -> int | None:
    """The step that differs however one looks, of an environment that cannot be copied.

    Fine is what agrees after three steps, when most memories are still empty, or in a new episode
    that another seed reset, with the global generators moved on: a generator that is not restarted
    agrees in neither.
    """
    trial.start()
    trial.run(3)
    trial.again()
    soon = first_difference(first[:3], trial.run(3))
    if soon is None:
        return None
    trial.env.reset(seed=trial.seed + 1)
    random.random()
    np.random.random()  # noqa: NPY002 (the global one is meant)
    trial.again()
    return first_difference(first, trial.run(_STEPS))
