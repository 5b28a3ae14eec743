"""`PlatformHooks`: the functions that a platform of one's own must have, and those it may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rapo.platforms.candidates import Array, Candidates, Harmed, State
from rapo.platforms.map import PlatformMap
from rapo_core.checks import UserError


class PlatformHooks(ABC):
    """Functions of all episodes at once that remember nothing.

    A hook may look at its arguments, the platform's constants, `stimulus_on`, `clock` and `draws`.
    Anything that a hook remembered between steps would not be in a snapshot and would not replay.
    The arrays of a state are read-only.
    """

    @abstractmethod
    def rest(self, episodes: int) -> State:
        """The state `x*` of so many episodes: arrays by name, (episodes, ...) each."""

    @abstractmethod
    def candidates(self, state: State, action: Array) -> Candidates | Array:
        """The candidates of every walker under actions (E,), or `P0` (E, m, K) alone."""

    @abstractmethod
    def transition(
        self, state: State, action: Array, choice: Array, proposed: Candidates
    ) -> tuple[State, Array]:
        """The next state and the rewards (E,), once the walkers have chosen.

        Args:
            state: as `arrive` left it.
            action: (E,).
            choice: (E, m) number of the chosen candidate, -1 where a walker does not move.
            proposed: the checked candidates.
        """

    @abstractmethod
    def harmed(self, state: State) -> Harmed | tuple[Array, Array]:
        """Who is being harmed in a state, and where. The memory learns it after the delay."""

    @abstractmethod
    def reach(self, state: State) -> Array:
        """(E,) how far the stimulus reaches, >= 0."""

    @abstractmethod
    def observation(self, state: State, clock: Array) -> Array:
        """`x`, (E, d), of a state and the step within the phase, (E,). It must not show memory."""

    def arrive(self, state: State) -> State:
        """The state in which walkers choose, once walkers have come and gone; default no change."""
        return state

    def region_map(self, state: State, action: Array, candidate: Array) -> Array:
        """Where candidates (E, m, K), numbered from 0, lead, if `Candidates.where` is None.

        Regions (E, m, K), several of them (E, m, K, L) with -1 for pads, or points (E, m, K, d).
        """
        raise UserError(
            f"{type(self).__name__}: candidates() gave no regions; give `where`, or write "
            "region_map"
        )

    def sensitive_mass(self, state: State) -> Array:
        """(E,) sensitive mass now, >= 0; default the number of harmed walkers."""
        weight = np.asarray(Harmed(*self.harmed(state)).weight, np.float64)
        return np.asarray(weight.sum(axis=1))

    def report(self, state: State) -> dict[str, Array]:
        """More entries of `info`, (E,) each."""
        return {}

    def frame(self, episode: int) -> Array:
        """A picture (H, W, 3) uint8 of one episode. Without this hook there is no rendering."""
        raise NotImplementedError

    def map(self) -> PlatformMap | None:
        """Where regions and walkers are, for `rapo lab`; None for a platform without a map."""
        return None

    def describe(self) -> dict[str, Any]:
        """Plain values for the manifest: what the platform is made of."""
        return {}
