"""`Phases`: where each episode of a platform stands in exposure, decay and replay, and its keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.phases import (
    CLOCK,
    ENTRIES,
    EPISODE_KEY,
    EPISODE_ROWS,
    GATED,
    HORIZONS,
    PHASE,
    PHASE_KEY,
    STIMULUS,
    TAGS,
    enter_phases,
    schedule_of,
)
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo_core.checks import UserError, check_episodes, checked_phases, truth

Array = npt.NDArray[Any]
Whole = npt.NDArray[np.int64]


class Phases:
    """Clocks, stimuli and keys of E episodes, counted and derived as the cascade does.

    Args:
        episodes: E.
        horizons: steps of the phases.
        scheduled: whether a phase ends by itself.
        coupled: whether Replay reuses Exposure's draws.
        deformed: in which phases the kernel is.
    """

    def __init__(
        self,
        episodes: int,
        horizons: tuple[int, int, int],
        *,
        scheduled: bool,
        coupled: bool,
        deformed: tuple[bool, bool, bool],
    ) -> None:
        self._episode = np.zeros((EPISODE_ROWS, episodes), np.int64)
        self._keys = np.zeros((2, episodes), np.uint64)
        self._schedule = schedule_of(
            horizons if truth("scheduled", scheduled) else None,
            coupled=truth("coupled", coupled),
            gated=checked_phases(deformed),
        )

    @property
    def clock(self) -> Whole:
        """(E,) step within the phase."""
        return np.array(self._episode[CLOCK])

    @property
    def phase(self) -> Whole:
        """(E,) 0 exposure, 1 decay, 2 replay."""
        return np.array(self._episode[PHASE])

    @property
    def stimulus(self) -> Whole:
        """(E,) 1-based; 0 before an episode is started."""
        return np.array(self._episode[STIMULUS])

    @property
    def stimulus_on(self) -> Whole:
        """(E,) the stimulus, 0 while it is off."""
        return np.where(self._episode[PHASE] == DECAY, 0, self._episode[STIMULUS])

    @property
    def keys(self) -> npt.NDArray[np.uint64]:
        """(E,) of the present phase."""
        return np.array(self._keys[PHASE_KEY])

    @property
    def deformed(self) -> npt.NDArray[np.bool_]:
        """(E,) whether the kernel is deformed in the present phase."""
        return np.asarray(self._schedule[GATED, self._episode[PHASE]] > 0)

    @property
    def coupled(self) -> bool:
        """Whether Replay reuses Exposure's draws."""
        return bool(self._schedule[TAGS, REPLAY] == self._schedule[TAGS, EXPOSURE])

    def deform(self, on: bool) -> None:
        """In all phases, or in none."""
        self._schedule[GATED] = truth("on", on)

    def start(self, rows: Array, keys: Array, stimuli: Array) -> None:
        """Begin Exposure of new episodes."""
        self._episode[STIMULUS, rows] = stimuli
        self._episode[ENTRIES:, rows] = 0
        self._keys[EPISODE_KEY, rows] = keys
        self.enter(rows, EXPOSURE)

    def enter(self, rows: Array, phase: int, stimuli: Array | None = None) -> None:
        """Begin a phase; entered again, it has draws of its own."""
        if stimuli is not None:
            self._episode[STIMULUS, rows] = stimuli
        enter_phases(self._episode, self._keys, self._schedule, rows, phase)

    def advance(self) -> tuple[bool, Array]:
        """Count a step; whether some phase is over, and the episodes whose Replay begins now."""
        self._episode[CLOCK] += 1
        phase = self._episode[PHASE].copy()
        over = (phase < REPLAY) & (self._episode[CLOCK] >= self._schedule[HORIZONS, phase])
        if not over.any():
            return False, np.zeros(0, np.int64)
        for ended in (EXPOSURE, DECAY):
            rows = np.flatnonzero(over & (phase == ended))
            self.enter(rows, ended + 1)
        return True, np.flatnonzero(over & (phase == DECAY))

    def snapshot(self) -> dict[str, Array]:
        """Everything that evolves."""
        return {
            "clock": self.clock,
            "phase": self.phase,
            "stimulus": self.stimulus,
            "entries": self._episode[ENTRIES:].copy(),
            "keys": self._keys.copy(),
        }

    def check(self, state: Mapping[str, Array], stimuli: int) -> None:
        """Refuse what `restore` could not take over."""
        check_episodes(state, stimuli)

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take over a checked `snapshot`."""
        self._episode[CLOCK], self._episode[PHASE] = state["clock"], state["phase"]
        self._episode[STIMULUS] = state["stimulus"]
        self._episode[ENTRIES:] = state["entries"]
        self._keys[:] = state["keys"]


def choices_of(name: str, given: npt.ArrayLike, count: int, first: int, last: int) -> Whole:
    """(count,) whole numbers in first..last, from one or one per episode."""
    values = np.asarray(given)
    whole = values.dtype.kind in "iu" and values.shape in ((), (count,))
    if not whole or np.any((values < first) | (values > last)):
        raise UserError(f"{name} must be a whole number in {first}..{last}, got {given!r}")
    return np.broadcast_to(values, (count,)).astype(np.int64)
