"""`TabularReplayEnv`: a Gymnasium environment with a transition table becomes a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.draws import derive, uniform
from rapo.platforms.walkers import Array, CandidateReplayEnv, mask_of
from rapo_core.checks import UserError
from rapo_core.deformation import SUM_TOLERANCE

Table = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]

STIMULI = 20
"""How many stimuli are drawn by default."""
SUPPORT = 4
"""How many start states a drawn stimulus has."""


class TabularReplayEnv(CandidateReplayEnv):
    """Walkers on `env.unwrapped.P`: FrozenLake, slippery CliffWalking, rainy Taxi.

    RSD runs all its episodes at once, unless a subclass overrides a method.

    The reward is the mean table reward of the walkers that moved. Entries of a row with the same
    next state are merged: probabilities add up, the reward is their mean.

    >>> import gymnasium
    >>> env = TabularReplayEnv(gymnasium.make("FrozenLake-v1", map_name="8x8"), delay=10)
    >>> x, info = env.reset(seed=0)
    >>> x, reward, terminated, truncated, info = env.step(2)
    >>> info["odds_ratio"]  # no harm has arrived yet
    1.0

    Args:
        env: any environment with a stochastic table `P[s][a] = [(prob, next, reward, terminated)]`;
            a deterministic table is refused, since nothing in it can be deformed.
        harmful: bool (states,) or state numbers; None on FrozenLake: the states from which some
            action leads to a hole.
        stimuli: their number, or (stimuli, states) start laws. Drawn ones start around a random
            state: the 4 nearest in table steps, with Dirichlet weights, among those that can be
            reached from the initial states and are neither terminal nor harmful.
        stimulus_seed: of the drawn start laws.
        options: of `CandidateReplayEnv`: walkers, delay, params, regions, deformation, observe,
            saturation, leave, horizon.

    Raises:
        ValueError: no table, a broken or a deterministic one; bad options, by name and value.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        harmful: npt.ArrayLike | None = None,
        stimuli: int | npt.ArrayLike | None = None,
        stimulus_seed: int = 0,
        **options: Any,
    ) -> None:
        self.env = env
        self._next, self._p0, self._reward, self._ends = read_table(env)
        actions, states, _ = self._next.shape
        if harmful is None:
            harmful = _beside_holes(env, self._next, self._p0)
        flags = mask_of(harmful, states)
        starts = np.asarray(STIMULI if stimuli is None else stimuli)
        if starts.ndim == 0:
            starts = self._drawn_starts(starts[()], flags, stimulus_seed)
        if starts.ndim != 2 or starts.shape[1] != states:
            raise UserError(f"stimuli must be (stimuli, {states}) start laws, got {starts.shape}")
        super().__init__(actions=actions, harmful=flags, starts=starts, **options)

    def candidates(self, state: Any, action: int) -> tuple[Array, Array]:
        """Next states and `P0`, (k,) each."""
        possible = self._p0[action, state] > 0
        return self._next[action, state, possible], self._p0[action, state, possible]

    def transition(self, state: Any, action: int, choice: int) -> tuple[Any, float, bool]:
        """The chosen state, its table reward and whether it is terminal."""
        _, rewards, ends = self._moved(np.array([state]), action, np.array([choice]))
        return choice, float(rewards[0]), bool(ends[0])

    def kernel(self, state: int, action: int) -> tuple[Array, Array, Array, Array]:
        """Next states of a row, `P0`, `psi` and the kernel that a step now samples; (k,) each."""
        places, p0 = self.candidates(state, action)
        psi, p = self._deformed(places, p0)
        return places, p0, psi, p

    def close(self) -> None:
        """Close the wrapped environment."""
        self.env.close()

    def _rows(self, states: Array, action: int) -> tuple[Array, Array]:
        return self._next[action, states], self._p0[action, states]

    def _moved(self, states: Array, action: int, places: Array) -> tuple[Array, Array, Array]:
        column = (self._next[action, states] == places[:, None]).argmax(axis=1)
        return places, self._reward[action, states, column], self._ends[action, states, column]

    def _drawn_starts(self, count: Any, harmful: Array, seed: int) -> Array:
        """Start laws (count, states) around random states; a function of the seed alone."""
        if count.dtype.kind not in "iu" or count < 1:
            raise UserError(f"stimuli must be a whole number >= 1 or start laws, got {count!r}")
        states = harmful.size
        leads = np.zeros((states, states), np.bool_)  # some action may lead from s to s'
        rows = np.broadcast_to(np.arange(states)[None, :, None], self._next.shape)
        leads[rows[self._p0 > 0], self._next[self._p0 > 0]] = True
        initial = getattr(self.env.unwrapped, "initial_state_distrib", np.ones(states))
        terminal = np.zeros(states, np.bool_)
        terminal[self._next[self._ends & (self._p0 > 0)]] = True
        usable = np.isfinite(_hops(leads, np.asarray(initial) > 0)) & ~terminal & ~harmful
        if not usable.any():
            raise UserError("no state is safe and reachable to start from; give `stimuli`")
        from_ = np.flatnonzero(usable)
        either_way = leads | leads.T
        laws = np.zeros((int(count), states))
        for z, law in enumerate(laws):
            u = uniform(derive(seed, z), 0, np.arange(1 + SUPPORT)).astype(np.float64)
            centre = from_[int(u[0] * from_.size)]
            far = _hops(either_way, np.arange(states) == centre)[from_]
            support = from_[np.argsort(far, kind="stable")[:SUPPORT]]
            weights = -np.log(1 - u[1 : 1 + support.size]) + 1e-9  # of a Dirichlet(1, .., 1)
            law[support] = weights / weights.sum()
        return laws


TabularReplayEnv.batched_hooks = TabularReplayEnv


def read_table(env: gymnasium.Env[Any, Any]) -> tuple[Array, Array, Array, Array]:
    """The table as arrays (actions, states, K): next state, `P0`, reward, terminated.

    K is the largest number of distinct next states; shorter rows end in pads with `P0` 0.

    Raises:
        ValueError: there is no table, it is not one, or it is deterministic.
    """
    table: Table | None = getattr(env.unwrapped, "P", None)
    if table is None:
        raise UserError(f"{env} has no transition table: `env.unwrapped.P` is missing")
    states, actions = len(table), len(next(iter(table.values())))
    merged = {}
    for s, a in np.ndindex(states, actions):
        try:
            merged[a, s] = _merged(table[s][a], states)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"P[{s}][{a}] of {env} is no row of a table: {error}") from None
    width = max(len(row) for row in merged.values())
    if width < 2:
        raise UserError(
            f"{env} is deterministic: no state and action have two next states, so there is "
            "nothing to deform; make it stochastic (is_slippery=True, is_rainy=True)"
        )
    shape = actions, states, width
    next_, p0, reward = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
    ends = np.zeros(shape, np.bool_)
    for (a, s), row in merged.items():
        for k, (state, (p, weighted, end)) in enumerate(row.items()):
            next_[a, s, k], p0[a, s, k], ends[a, s, k] = state, p, end
            reward[a, s, k] = weighted / p
    return next_, p0, reward, ends


def _merged(
    row: Sequence[tuple[float, int, float, bool]], states: int
) -> dict[int, tuple[float, float, bool]]:
    """Next state -> probability, probability times reward, terminated."""
    merged: dict[int, tuple[float, float, bool]] = {}
    for p, state, reward, end in row:
        if not p >= 0 or not 0 <= state < states:
            raise UserError(f"probability {p} of next state {state}")
        if p == 0:
            continue
        sum_p, weighted, ended = merged.get(int(state), (0.0, 0.0, bool(end)))
        if ended != bool(end):
            raise UserError(f"next state {state} both terminated and not")
        merged[int(state)] = (sum_p + float(p), weighted + float(p) * float(reward), ended)
    total = sum(p for p, _, _ in merged.values())
    if abs(total - 1) > SUM_TOLERANCE:
        raise UserError(f"probabilities sum to {total}")
    return merged


def _beside_holes(env: gymnasium.Env[Any, Any], next_: Array, p0: Array) -> Array:
    """Bool (states,): not a hole, and some action leads into one."""
    letters = getattr(env.unwrapped, "desc", None)
    holes = None if letters is None else np.asarray(letters).ravel() == b"H"
    if holes is None or holes.size != next_.shape[1] or not holes.any():
        raise UserError(f"{env} has no holes to tell which states are harmful; give `harmful`")
    return np.asarray((holes[next_] & (p0 > 0)).any(axis=(0, 2)) & ~holes)


def _hops(leads: Array, sources: Array) -> Array:
    """Steps from the nearest source to each state (states,), inf where there is no way."""
    hops = np.where(sources, 0.0, np.inf)
    front, steps = sources.copy(), 0
    while front.any():
        steps += 1
        front = leads[front].any(axis=0) & np.isinf(hops)
        hops[front] = steps
    return hops
