"""`PlatformHooks`: what a platform of one's own must say, and what it may."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rapo.platforms.map import PlatformMap
from rapo.platforms.proposal import Array, Candidates, Harmed, State
from rapo_core.checks import UserError


class PlatformHooks(ABC):
    """Functions of all episodes at once, without a memory of their own.

    They may look at their arguments, the platform's constants, `stimulus_on`, `clock` and `draws`.
    What they remembered between steps would not be in a snapshot and would not replay; the arrays
    of a state are read-only.
    """

    @abstractmethod
    def rest(self, episodes: int) -> State:
        """`x*` of so many episodes: arrays by name, (episodes, ...) each."""

    @abstractmethod
    def candidates(self, state: State, action: Array) -> Candidates | Array:
        """What each walker may choose from, or `P0` (E, m, K) alone; `action` is (E,)."""

    @abstractmethod
    def transition(
        self, state: State, action: Array, choice: Array, found: Candidates
    ) -> tuple[State, Array]:
        """The next state and the rewards (E,), once the walkers made their choice.

        Args:
            state: as `arrive` left it.
            action: (E,).
            choice: (E, m) number of the chosen candidate, -1 where a walker does not move.
            found: what `candidates` gave.
        """

    @abstractmethod
    def harmed(self, state: State) -> Harmed | tuple[Array, Array]:
        """Who is being harmed in a state, and where; hidden until the delay is over."""

    @abstractmethod
    def reach(self, state: State) -> Array:
        """(E,) how far the stimulus reaches, >= 0."""

    @abstractmethod
    def observation(self, state: State, clock: Array) -> Array:
        """`x`, (E, d), of a state and the step within the phase (E,); nothing of the memory."""

    def arrive(self, state: State) -> State:
        """The state in which walkers choose: who comes, who goes; `stimulus_on` says what is on."""
        return state

    def region_map(self, state: State, action: Array, candidate: Array) -> Array:
        """Where candidates (E, m, K), numbered from 0, lead; for `candidates` that do not say.

        Regions (E, m, K), several of them (E, m, K, L) with -1 for pads, or points (E, m, K, d).
        """
        raise UserError(
            f"{type(self).__name__}: candidates() tells no regions; give `where`, or write "
            "region_map"
        )

    def sensitive_mass(self, state: State) -> Array:
        """(E,) how much is in harm's way now, >= 0; default the number of harmed walkers."""
        weight = np.asarray(Harmed(*self.harmed(state)).weight, np.float64)
        return np.asarray(weight.sum(axis=1))

    def report(self, state: State) -> dict[str, Array]:
        """More entries of `info`, (E,) each."""
        return {}

    def frame(self, episode: int) -> Array:
        """A picture (H, W, 3) uint8 of one episode; a platform without one is not rendered."""
        raise NotImplementedError

    def map(self) -> PlatformMap | None:
        """Where regions and walkers are, for `rapo lab`; None for a platform without a map."""
        return None

    def describe(self) -> dict[str, Any]:
        """What a manifest should say of the platform."""
        return {}
