"""Phases of the episodes of an engine: clocks, keys and the RSD schedule inside the kernels.

`PhasedEpisodes` is what callers ask of an engine whose episodes go through the phases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import mix
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo_core.checks import UserError, rows_of
from rapo_core.jit import inlined, lean_kernel

Whole = npt.NDArray[np.int64]

CLOCK, PHASE, STIMULUS, INJECTING, ENTRIES = range(5)
"""Rows of the (8, E) int64 array `episode`: step within the phase, phase, stimulus (1-based, 0 for
none), the injection code that the backend has written (see `injection_code`), and from ENTRIES on
how often each of the three phases was entered."""
EPISODE_ROWS = ENTRIES + 3

EPISODE_KEY, PHASE_KEY = range(2)
"""Rows of the (2, E) uint64 array `keys`: key of the episode, key of its present phase."""

HORIZONS, TAGS, GATED = range(3)
"""Rows of the (3, 3) int64 array `schedule`, a column per phase: steps until the next phase, the
counter that makes the phase key from the episode key, and whether the kernel is deformed."""

SLOT, FIRST, END, EPISODES, RECORDING = range(5)
"""Entries of the (5,) int64 array `thread_state`: slot of the delay ring that is D steps old, first
and end of the rows (or blocks of rows) that the thread runs, number of episodes, and whether the
thread records which nodes are active."""

FOREVER = np.iinfo(np.int64).max
"""Horizon of a phase that ends only when the caller says so."""


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
    """Start a phase: set the clock to 0 and take the phase's draws, new ones at each entry."""
    episode[PHASE, e] = phase
    episode[CLOCK, e] = 0
    key = mix(keys[EPISODE_KEY, e], schedule[TAGS, phase])
    entries = episode[ENTRIES + phase, e]
    keys[PHASE_KEY, e] = mix(key, entries) if entries > 0 else key
    episode[ENTRIES + phase, e] += 1


@lean_kernel
def enter_phases(episode: Any, keys: Any, schedule: Any, rows: Any, phase: int) -> None:
    """`enter_phase` for the episodes `rows`."""
    for e in rows:
        enter_phase(episode, keys, schedule, e, phase)


@inlined
def advance_clock(episode: Any, keys: Any, schedule: Any, e: int) -> Any:
    """Count a step, and move to the next phase when the present one is over.

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


class PhasedEpisodes(ABC):
    """An engine of RSD episodes: checks what callers ask for before anything changes.

    A subclass knows its stimuli (`check_stimuli`) and changes its state in `_begin_episodes` and
    `_begin_phase`.
    """

    episodes: int
    """E, the number of episodes."""

    def start(
        self,
        keys: npt.ArrayLike,
        stimuli: npt.ArrayLike,
        episodes: npt.ArrayLike | None = None,
        *,
        keep_memory: bool = False,
    ) -> None:
        """Begin new RSD episodes: Exposure at clock 0, state at rest, memory forgotten.

        Args:
            keys: uint64 keys, one per started episode.
            stimuli: 1-based stimulus of each.
            episodes: indices to start; default all.
            keep_memory: leave fields and delay buffer as they are.
        """
        rows = self.rows_of(episodes)
        self._begin_episodes(rows, keys, self.check_stimuli(stimuli, len(rows)), keep_memory)

    def enter(
        self,
        phase: int,
        episodes: npt.ArrayLike | None = None,
        *,
        stimuli: npt.ArrayLike | None = None,
    ) -> None:
        """Move episodes to the start of a phase; memory stays.

        Exposure and Replay put the observable state to rest and switch the stimulus on, Decay only
        switches it off. Entered again, a phase has draws of its own. `stimuli` replaces the
        stimulus (1-based).
        """
        if phase not in (EXPOSURE, DECAY, REPLAY):
            raise UserError(f"phase must be 0, 1 or 2, got {phase!r}")
        rows = self.rows_of(episodes)
        z = None if stimuli is None else self.check_stimuli(stimuli, len(rows))
        self._begin_phase(rows, phase, z)

    def rows_of(self, episodes: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
        """Episode indices from indices, a mask or None for all."""
        return rows_of(episodes, self.episodes)

    @abstractmethod
    def check_stimuli(self, stimuli: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
        """(count,) 1-based stimuli from one or one per episode; an unknown one is an error."""

    @abstractmethod
    def _begin_episodes(
        self, rows: Whole, keys: npt.ArrayLike, stimuli: Whole, keep_memory: bool
    ) -> None:
        """Begin Exposure of the episodes `rows` with unchecked keys and checked stimuli."""

    @abstractmethod
    def _begin_phase(self, rows: Whole, phase: int, stimuli: Whole | None) -> None:
        """Begin a phase of the episodes `rows`, with other stimuli unless `stimuli` is None."""
