"""`WalkerPlatform`: functions of one walker as hooks of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rapo.platforms.candidates import Array, Candidates, Harmed, State
from rapo.platforms.platform import BatchPlatform
from rapo_core.checks import UserError

BLOCKS = 8  # the observable has the share of walkers in this many equal ranges of place numbers
NOWHERE = -1  # place of a walker that is not there
_START, _LEAVE = 1, 2  # lanes of draws


class WalkerPlatform(BatchPlatform):
    """The platform of a `CandidateReplayEnv`, which calls its functions walker by walker.

    Args:
        episodes: E.
        domain: the environment: its tables and its functions of one walker.
        options: of `BatchPlatform`.
    """

    def __init__(self, episodes: int = 1, *, domain: Any, **options: Any) -> None:
        super().__init__(episodes, **options)
        self.domain = domain
        law = domain.starts.cumsum(axis=1)
        self._starts = law / law[:, -1:]
        blocks = min(BLOCKS, domain.places)
        self._blocks = np.arange(domain.places) * blocks // domain.places
        self._count = blocks

    def rest(self, episodes: int) -> State:
        """No walker is there."""
        m, like = (episodes, self.walkers), self.domain.like
        return {
            "at": np.full(m, NOWHERE, np.int64),
            "done": np.zeros(m, np.bool_),
            "states": np.zeros((*m, *like.shape), like.dtype),
        }

    def arrive(self, state: State) -> State:
        """Finished walkers leave; while a stimulus is on, every free slot is filled."""
        at, states = np.where(state["done"], NOWHERE, state["at"]), state["states"].copy()
        by_start, on = self.draws(_START), self.stimulus_on
        for e in np.flatnonzero(on):
            free = at[e] == NOWHERE
            law = self._starts[on[e] - 1]
            at[e, free] = np.searchsorted(law, by_start[e, free], side="right")
            if free.any():
                z = int(on[e])
                states[e, free] = [self.domain.begin(z, place) for place in at[e, free].tolist()]
        return {"at": at, "done": np.zeros_like(state["done"]), "states": states}

    def candidates(self, state: State, action: Array) -> Candidates:
        """Candidates of the walkers that are there, action by action."""
        there = state["at"] != NOWHERE
        parts = [
            (who, *self.domain._rows(state["states"][who], act))
            for act, who in _by_action(action, there)
        ]
        width = max((places.shape[1] for _, places, _ in parts), default=1)
        places = np.zeros((*there.shape, width), np.int64)
        P0 = np.zeros(places.shape)
        for who, ids, law in parts:
            places[(*who, slice(0, ids.shape[1]))] = ids
            P0[(*who, slice(0, ids.shape[1]))] = law
        domain = self.domain
        return Candidates(P0, domain.regions[places], domain.harmful[places], there, places)

    def transition(
        self, state: State, action: Array, choice: Array, proposed: Candidates
    ) -> tuple[State, Array]:
        """The chosen places, the mean reward of the walkers that moved, and who has finished."""
        there = choice >= 0
        places = np.take_along_axis(proposed.items, choice.clip(0)[..., None], 2)[..., 0]
        at = np.where(there, places, NOWHERE)
        states, rewards = state["states"].copy(), np.zeros(at.shape)
        done = np.zeros(at.shape, np.bool_)
        for act, who in _by_action(action, there):
            states[who], rewards[who], done[who] = self.domain._moved(states[who], act, at[who])
        done |= there & (self.draws(_LEAVE) < self.domain.leave)
        paid = rewards.sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        return {"at": at, "done": done, "states": states}, paid

    def harmed(self, state: State) -> Harmed:
        """Walkers in harmful places."""
        there = state["at"] != NOWHERE
        regions = np.where(there, self.domain.regions[state["at"]], NOWHERE)
        return Harmed(there & self.domain.harmful[state["at"]], regions)

    def reach(self, state: State) -> Array:
        """How many places are occupied."""
        occupied = np.zeros((self.episodes, self.domain.places + 1), np.bool_)
        np.put_along_axis(occupied, state["at"] + 1, True, axis=1)
        return np.asarray(occupied[:, 1:].sum(axis=1))

    def observation(self, state: State, clock: Array) -> Array:
        """Shares of occupied places and of walkers, clock, share of walkers by range of places."""
        there = state["at"] != NOWHERE
        block = np.where(there, self._blocks[state["at"]], self._count)
        shares = np.zeros((self.episodes, self._count + 1))
        np.add.at(shares, (np.arange(self.episodes)[:, None], block), 1)
        x = [
            self.reach(state) / self.domain.places,
            there.mean(axis=1),
            clock / self.domain.horizon,
        ]
        return np.concatenate([np.stack(x, axis=1), shares[:, :-1] / self.walkers], axis=1)

    def _affected_in(self, state: State) -> Any:
        at, last = state["at"], self.domain.places - 1
        if at.min() < NOWHERE or at.max() > last:  # of a snapshot
            raise UserError(f"at must be in -1..{last}, got {at.min()}..{at.max()}")
        return super()._affected_in(state)


def _by_action(action: Array, there: Array) -> Iterator[tuple[int, tuple[Array, ...]]]:
    """Every action taken, with the indices of the episodes and walkers that take it."""
    for act in np.unique(action).tolist():
        who = np.nonzero(there & (action == act)[:, None])
        if who[0].size:
            yield act, who
