"""`PhasedEpisodes`: how episodes side by side are started and moved from phase to phase."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from rapo.cascade.checks import Whole
from rapo.cascade.setting import DECAY, EXPOSURE, REPLAY
from rapo_core.checks import UserError, rows_of


class PhasedEpisodes(ABC):
    """What callers ask of an engine of RSD episodes; it is checked before anything changes.

    A subclass knows its stimuli (`check_stimuli`), and does what is asked for (`_begin_episodes`,
    `_begin_phase`).
    """

    episodes: int
    """E, how many there are."""

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
        """Begin a phase of the episodes `rows`, with other stimuli if they are given."""
