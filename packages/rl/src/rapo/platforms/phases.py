"""`PlatformPhases`: where each episode stands in exposure, decay and replay, and its keys."""

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
    PhasedEpisodes,
    enter_phases,
    schedule_of,
)
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo_core.checks import checked_phases, truth

Array = npt.NDArray[Any]
Whole = npt.NDArray[np.int64]


class PlatformPhases(PhasedEpisodes):
    """Clocks, stimuli and keys of E episodes, counted and derived as the cascade does."""

    def _make_phases(
        self,
        horizons: tuple[int, int, int],
        *,
        scheduled: bool,
        coupled: bool,
        deformed: tuple[bool, bool, bool],
    ) -> None:
        """Begin with no episode started; see `BatchPlatform` for the arguments."""
        self._episode = np.zeros((EPISODE_ROWS, self.episodes), np.int64)
        self._keys = np.zeros((2, self.episodes), np.uint64)
        self._schedule = schedule_of(
            horizons if truth("scheduled", scheduled) else None,
            coupled=truth("coupled", coupled),
            gated=checked_phases(deformed),
        )

    @property
    def clock(self) -> Whole:
        """(E,) step within the present phase."""
        return np.array(self._episode[CLOCK])

    @property
    def phase(self) -> Whole:
        """(E,) 0 exposure, 1 decay, 2 replay."""
        return np.array(self._episode[PHASE])

    @property
    def stimulus(self) -> Whole:
        """(E,) stimulus of the episode, 1-based; 0 before the episode is started."""
        return np.array(self._episode[STIMULUS])

    @property
    def stimulus_on(self) -> Whole:
        """(E,) the stimulus while it is on, else 0."""
        return np.where(self._episode[PHASE] == DECAY, 0, self._episode[STIMULUS])

    @property
    def keys(self) -> npt.NDArray[np.uint64]:
        """(E,) key of the present phase; its draws are `rng.uniform(key, clock, number)`."""
        return np.array(self._keys[PHASE_KEY])

    @property
    def deformed(self) -> npt.NDArray[np.bool_]:
        """(E,) whether the kernel is deformed in the present phase."""
        return np.asarray(self._schedule[GATED, self._episode[PHASE]] > 0)

    @property
    def coupled(self) -> bool:
        """Whether Replay reuses Exposure's draws."""
        return bool(self._schedule[TAGS, REPLAY] == self._schedule[TAGS, EXPOSURE])

    def set_deformation(self, on: bool) -> None:
        """Sample from the deformed kernel in all phases, or from `P0`; the fields evolve on."""
        self._schedule[GATED] = truth("on", on)

    def _start(self, rows: Array, keys: Array, stimuli: Array) -> None:
        """Begin Exposure of new episodes."""
        self._episode[STIMULUS, rows] = stimuli
        self._episode[ENTRIES:, rows] = 0
        self._keys[EPISODE_KEY, rows] = keys
        self._enter(rows, EXPOSURE)

    def _enter(self, rows: Array, phase: int, stimuli: Array | None = None) -> None:
        """Begin a phase; at every entry it gets other draws."""
        if stimuli is not None:
            self._episode[STIMULUS, rows] = stimuli
        enter_phases(self._episode, self._keys, self._schedule, rows, phase)

    def _count_step(self) -> tuple[bool, Array]:
        """Count a step; whether a phase is over, and the episodes whose Replay begins now."""
        self._episode[CLOCK] += 1
        phase = self._episode[PHASE].copy()
        over = (phase < REPLAY) & (self._episode[CLOCK] >= self._schedule[HORIZONS, phase])
        if not over.any():
            return False, np.zeros(0, np.int64)
        for ended in (EXPOSURE, DECAY):
            self._enter(np.flatnonzero(over & (phase == ended)), ended + 1)
        return True, np.flatnonzero(over & (phase == DECAY))

    def _phases_snapshot(self) -> dict[str, Array]:
        return {
            "clock": self.clock,
            "phase": self.phase,
            "stimulus": self.stimulus,
            "entries": self._episode[ENTRIES:].copy(),
            "keys": self._keys.copy(),
        }

    def _restore_phases(self, snapshot: Mapping[str, Array]) -> None:
        """Take over checked entries of `_phases_snapshot`."""
        self._episode[CLOCK], self._episode[PHASE] = snapshot["clock"], snapshot["phase"]
        self._episode[STIMULUS] = snapshot["stimulus"]
        self._episode[ENTRIES:] = snapshot["entries"]
        self._keys[:] = snapshot["keys"]
