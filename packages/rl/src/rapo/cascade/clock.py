"""Phases, clocks and keys of the episodes of an engine: the RSD schedule inside the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import mix
from rapo.cascade.setting import DECAY, REPLAY
from rapo_core.jit import inlined, lean_kernel

CLOCK, PHASE, STIMULUS, INJECTING, ENTRIES = range(5)
"""Rows of the (8, E) int64 array `episode`: step within the phase, phase, stimulus (1-based, 0 for
none), the injection code that the backend has laid out (see `injection_code`), and from ENTRIES on
how often each of the three phases was entered."""
EPISODE_ROWS = ENTRIES + 3

EPISODE_KEY, PHASE_KEY = range(2)
"""Rows of the (2, E) uint64 array `keys`: key of the episode, and of its present phase."""

HORIZONS, TAGS, GATED = range(3)
"""Rows of the (3, 3) int64 array `schedule`, a column per phase: steps until the next phase, the
counter that turns the episode key into the phase key, and whether the kernel is deformed."""

SLOT, FIRST, END, EPISODES = range(4)
"""Elements of the (4,) int64 array `turn` of a thread: slot of the delay ring that is D steps old,
first and end of the rows (or blocks of rows) that it runs, and how many episodes there are."""

FOREVER = np.iinfo(np.int64).max
"""Horizon of a phase that only its caller ends."""


def schedule_of(
    horizons: tuple[int, int, int] | None, *, coupled: bool, gated: Sequence[bool]
) -> npt.NDArray[np.int64]:
    """The (3, 3) schedule; without horizons phases end when the caller says so."""
    schedule = np.zeros((3, 3), np.int64)
    schedule[HORIZONS] = FOREVER if horizons is None else horizons
    schedule[TAGS] = (0, 1, 0) if coupled else (0, 1, 2)
    schedule[GATED] = gated
    return schedule


@inlined
def injection_code(episode: Any, e: int, action: int) -> Any:
    """0 when nothing is injected, else 1 + 3 (stimulus - 1) + action."""
    if episode[PHASE, e] == DECAY or episode[STIMULUS, e] == 0:
        return 0
    return 3 * (episode[STIMULUS, e] - 1) + action + 1


@inlined
def enter_phase(episode: Any, keys: Any, schedule: Any, e: int, phase: int) -> None:
    """Start a phase: clock to 0, draws of that phase, new ones whenever it is entered again."""
    episode[PHASE, e] = phase
    episode[CLOCK, e] = 0
    key = mix(keys[EPISODE_KEY, e], schedule[TAGS, phase])
    again = episode[ENTRIES + phase, e]
    keys[PHASE_KEY, e] = mix(key, again) if again > 0 else key
    episode[ENTRIES + phase, e] += 1


@lean_kernel
def enter_phases(episode: Any, keys: Any, schedule: Any, rows: Any, phase: int) -> None:
    """`enter_phase` for the episodes `rows`."""
    for e in rows:
        enter_phase(episode, keys, schedule, e, phase)


@inlined
def advance_clock(episode: Any, keys: Any, schedule: Any, e: int) -> Any:
    """Count a step; move to the next phase when this one is over.

    Returns:
        Whether Replay begins now, so that the observable state must be reset.
    """
    episode[CLOCK, e] += 1
    phase = episode[PHASE, e]
    if phase == REPLAY or episode[CLOCK, e] < schedule[HORIZONS, phase]:
        return False
    enter_phase(episode, keys, schedule, e, phase + 1)
    return phase + 1 == REPLAY


@inlined
def first_unknown(actions: Any) -> Any:
    """Index of the first action outside 0..2, or -1."""
    for e in range(actions.size):
        if actions[e] < 0 or actions[e] > 2:
            return e
    return -1
