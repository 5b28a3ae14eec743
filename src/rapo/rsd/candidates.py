"""`CandidateReplayEnv`: walkers that pick their next place from explicit candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.cascade.rng import STIMULUS, derive, uniform
from rapo.core.deformation import Scope, reweight, within_scope
from rapo.core.fields import HARM_PER_NODE
from rapo.core.memory import HarmMemory
from rapo.core.params import FieldParams

Array = npt.NDArray[Any]
Obs = npt.NDArray[np.float32]
Info = dict[str, Any]

BLOCKS = 8  # the observable has the share of walkers in this many equal ranges of place numbers
NOWHERE = -1  # place of a walker that is not there


class CandidateReplayEnv(gymnasium.Env[Obs, np.int64], ABC):
    """A platform of `walkers` slots; all walkers take the chosen action and move independently.

    For routing, ranking, recommendation: subclass it (as `TabularReplayEnv` does) with `candidates`
    and `transition`, and `begin` where a state is more than a place: pure functions of one walker.

    Step t, with `A_t` the places occupied when it begins:
    1. walkers that had finished leave; while a stimulus is on every free slot is filled from
       its start law (arrivals are not deformed), while it is off nobody arrives: it drains;
    2. everybody moves by `reweight(P0, psi)` with `psi` from `(G_t, H_t)`;
    3. harm of the walkers in harmful places of `A_{t-D}` arrives through `HarmMemory.advance`.
    A walker has finished when its transition says so, or by chance (`leave`).

    Harm is `min(share of the slots in harmful places / saturation, 1)`: the default of 0.2 is the
    paper's 0.1 per affected with 50 walkers, and the same problem with any other number.

    Observation `x`, float32: distinct places occupied / places, walkers present / walkers, steps
    since the observable was reset / `horizon`, share of walkers in each of up to 8 equal ranges
    of place numbers; `xGH` appends the fields (`memory_mask` marks them). At `x*` nobody is there.

    `reset` draws a stimulus and switches it on. The environment never ends by itself: wrap it in
    `gymnasium.wrappers.TimeLimit` to train on it.

    `info` of a step: reach (distinct places occupied), sensitive_mass (walkers in harmful places),
    harm (also as `cost`), scar_mass (sum of H), gating_rate (share of the moving walkers with
    psi < 1 on some candidate), entry_nominal and entry_deformed (probability of a harmful next
    place under `P0` and under the sampled kernel, summed over walkers), odds_ratio: with `r_w` the
    factor by which the kernel changes the odds of walker w's harmful entry (Lemma 1 bounds it)
    and `p0_w` its nominal probability, `sum p0_w r_w / sum p0_w` over the walkers with both
    harmful and other candidates. What is undefined at a step (nobody moves) is left out.

    Args:
        actions: number of actions.
        harmful: bool (places,), or the numbers of the harmful places.
        starts: (stimuli, places), the start law of each stimulus; rows sum to 1.
        walkers: slots.
        delay: steps D until harm arrives.
        params: constants of the fields.
        regions: (places,) region of each place, 0-based; None for one each.
        deformation: `full`, `off`, `topk:<k>` or `local[:<share>]`.
        observe: `x` or `xGH`.
        saturation: share of the slots in harmful places at which harm reaches 1, in (0, 1].
        leave: chance per step that a walker leaves after its move, in [0, 1].
        horizon: unit of the clock in `x`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's form

    def __init__(
        self,
        *,
        actions: int,
        harmful: npt.ArrayLike,
        starts: npt.ArrayLike,
        walkers: int = 50,
        delay: int = 50,
        params: FieldParams | None = None,
        regions: npt.ArrayLike | None = None,
        deformation: str | Scope = "full",
        observe: str = "x",
        saturation: float = 0.2,
        leave: float = 0.02,
        horizon: int = 500,
    ) -> None:
        self.actions = _whole("actions", actions, 1)
        self.walkers = _whole("walkers", walkers, 1)
        self.horizon = _whole("horizon", horizon, 1)
        if not (0 < saturation <= 1 and 0 <= leave <= 1):
            got = f"saturation={saturation}, leave={leave}"
            raise ValueError(f"saturation must be in (0, 1] and leave in [0, 1], got {got}")
        if observe not in ("x", "xGH"):
            raise ValueError(f"observe must be 'x' or 'xGH', got {observe!r}")
        self.scope = Scope.parse(deformation)
        self.starts = _laws(starts)
        self.stimuli, self.places = self.starts.shape
        self.harmful = mask_of(harmful, self.places)
        self.regions = _regions(regions, self.places)
        self.observe, self.leave = observe, float(leave)
        self.memory = HarmMemory(int(self.regions.max()) + 1, params, delay=delay)
        self._per_walker = 1 / (HARM_PER_NODE * saturation * self.walkers)
        self._designated = np.ones(self.places, np.bool_)
        if self.scope.kind == "local":  # a share of the regions that touch harm, as in `Cascade`
            order = np.random.default_rng(0).permutation(np.unique(self.regions[self.harmful]))
            order = order[: int(np.ceil(self.scope.share * order.size))]
            self._designated = np.isin(self.regions, order)
        self._deforms = True
        self._blocks = np.arange(self.places) * min(BLOCKS, self.places) // self.places
        x_size = 3 + min(BLOCKS, self.places)
        fields = 2 * self.memory.regions if observe == "xGH" else 0
        high = np.full(x_size + fields, np.inf, np.float32)
        high[:x_size] = 1
        high[2] = np.inf  # the clock may run past `horizon`
        self.observation_space = gymnasium.spaces.Box(np.zeros_like(high), high)
        self.action_space = gymnasium.spaces.Discrete(self.actions)
        self.memory_mask = np.arange(high.size) >= x_size if fields else None
        self._at = np.full(self.walkers, NOWHERE, np.int64)
        self._done = np.zeros(self.walkers, np.bool_)
        like = np.asarray(self.begin(1, int(self.starts[0].argmax())))
        if like.dtype.kind not in "iufb":
            raise ValueError(f"a state must be a number or an array of numbers, got {like!r}")
        self._states = np.zeros((self.walkers, *like.shape), like.dtype)
        self._key = np.zeros(2, np.uint64)  # of the episode, of the draws since the last reset
        self._count = {"seed": 0, "episode": -1, "resets": 0, "clock": 0, "stimulus": 0, "on": 0}

    @abstractmethod
    def candidates(self, state: Any, action: int) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        """Places that a walker may go to, (k,) for any k >= 1, and `P0`, (k,)."""

    @abstractmethod
    def transition(self, state: Any, action: int, choice: int) -> tuple[Any, float, bool]:
        """State, reward and whether the walker has finished, once it chose the place `choice`."""

    def begin(self, stimulus: int, place: int) -> Any:
        """State of a walker that arrives: a number or an array of numbers, always of one shape."""
        return place

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, Info]:
        """Forget everything, memory included; `options`: `stimulus` (1-based, else drawn)."""
        if set(options or {}) - {"stimulus"}:
            raise ValueError(f"reset has one option, stimulus, got {options}")
        chosen = options and _whole("stimulus", options["stimulus"], 1, self.stimuli)
        super().reset(seed=seed)
        count = self._count
        if seed is None and count["episode"] < 0:
            seed = int(self.np_random.integers(2**31))
        if seed is None:
            count.update(episode=count["episode"] + 1, resets=0)
        else:
            count.update(seed=seed, episode=0, resets=0)
        self._key[0] = derive(derive(count["seed"], 0), count["episode"])
        z = 1 + int(uniform(self._key[0], 0, STIMULUS) * np.float32(self.stimuli))
        self.memory.reset()
        self.activate(chosen or z)
        return self.reset_observable(), {"stimulus": chosen or z, "reach": 0, "sensitive_mass": 0}

    def activate(self, stimulus: int) -> None:
        """Switch a stimulus on (1-based): its walkers arrive from the next step on."""
        self._count.update(stimulus=_whole("stimulus", stimulus, 1, self.stimuli), on=1)

    def deactivate(self) -> None:
        """Switch the stimulus off: nobody arrives any more."""
        self._count["on"] = 0

    def reset_observable(self, seed: int | None = None) -> Obs:
        """Empty the platform, restart clock and draws (None: fresh ones); the memory stays."""
        key, tag = self._key[:1], self._count["resets"]
        if seed is not None:
            key, tag = derive([_whole("seed", seed, 0, 2**64 - 1)], 1), 0
        self._key[1:] = derive(key, tag)
        self._count.update(resets=self._count["resets"] + 1, clock=0)
        self._at[:], self._done[:], self._states[:] = NOWHERE, False, 0
        return self._observation()

    def set_deformation(self, on: bool) -> None:
        """Sample from the deformed kernel, or from `P0`; the fields keep evolving."""
        self._deforms = bool(on)

    def step(self, action: np.int64 | int) -> tuple[Obs, float, bool, bool, Info]:
        """One step; see the class for its order and for `info`."""
        if self._count["episode"] < 0:
            raise ValueError("call reset() before step(): there is no episode yet")
        act = _whole("action", np.asarray(action)[()], 0, self.actions - 1)
        u = uniform(self._key[1], self._count["clock"], np.arange(3 * self.walkers))
        by_move, by_start, by_leave = u.reshape(3, self.walkers)
        at, states = np.where(self._done, NOWHERE, self._at), self._states.copy()
        if self._count["on"] and (at == NOWHERE).any():
            free, z = at == NOWHERE, self._count["stimulus"]
            law = self.starts[z - 1].cumsum()
            at[free] = np.searchsorted(law / law[-1], by_start[free], side="right")
            states[free] = [self.begin(z, place) for place in at[free].tolist()]
        who = np.flatnonzero(at != NOWHERE)
        done, rewards = np.zeros(self.walkers, np.bool_), np.zeros(0)
        p0, psi, p, places = *np.zeros((3, 0, 1)), np.zeros((0, 1), np.int64)
        if who.size:
            places, p0 = self._rows(states[who], act)
            psi, p = self._deformed(places, p0)
            column = (by_move[who, None] >= p.cumsum(axis=1)[:, :-1]).sum(axis=1)
            at[who] = places[np.arange(who.size), column]
            states[who], rewards, finished = self._moved(states[who], act, at[who])
            done[who] = finished | (by_leave[who] < self.leave)
        info = _report(p0, psi, p, self.harmful[places])
        hit = self._at[self._harmed(self._at)]
        affected = np.bincount(self.regions[hit], minlength=self.memory.regions)
        harm = float(self.memory.advance(affected * self._per_walker))
        self._at, self._states, self._done = at, states, done
        self._count["clock"] += 1
        info |= {"reach": self._reach(), "sensitive_mass": int(self._harmed(at).sum())}
        info |= {"harm": harm, "cost": harm, "scar_mass": float(self.memory.H.sum())}
        reward = float(np.mean(rewards)) if rewards.size else 0.0
        return self._observation(), reward, False, False, info

    def snapshot(self) -> dict[str, Array]:
        """Everything that evolves, as plain arrays."""
        mine = {"at": self._at, "done": self._done, "states": self._states, "key": self._key}
        return {
            **{name: value.copy() for name, value in mine.items()},
            **{name: np.array(value) for name, value in self._count.items()},
            **{f"memory.{name}": value for name, value in self.memory.snapshot().items()},
        }

    def restore(self, state: Mapping[str, Array]) -> Obs:
        """Take over a `snapshot` of an environment of the same configuration; the observation."""
        mine = self.snapshot()
        if set(state) != set(mine):
            raise ValueError(f"a snapshot has {sorted(mine)}, got {sorted(state)}")
        for name, value in mine.items():
            if (shape := np.shape(state[name])) != value.shape:
                raise ValueError(f"this environment has {name} {value.shape}, got {shape}")
        at = np.array(state["at"], np.int64)
        if at.min() < NOWHERE or at.max() >= self.places:
            raise ValueError(f"at must be in -1..{self.places - 1}, got {at.min()}..{at.max()}")
        _whole("stimulus", int(state["stimulus"]), 0, self.stimuli)
        self.memory.restore({k[7:]: state[k] for k in mine if k.startswith("memory.")})
        self._at, self._done = at, np.array(state["done"], np.bool_)
        self._states = np.array(state["states"], self._states.dtype)
        self._key = np.array(state["key"], np.uint64)
        self._count = {name: int(state[name]) for name in self._count}
        return self._observation()

    def _rows(self, states: Array, action: int) -> tuple[Array, Array]:
        """Candidates and `P0` of many walkers, (m, K) each; pads at the end have `P0` 0."""
        different, which = np.unique(states, axis=0, return_inverse=True)
        laws = []
        for state in different:
            ids, law = (np.asarray(part) for part in self.candidates(state, action))
            fits = ids.ndim == 1 and ids.size and ids.shape == law.shape and ids.dtype.kind in "iu"
            if not fits or ids.min() < 0 or ids.max() >= self.places:
                raise ValueError(
                    f"candidates({state}, {action}) must give k >= 1 places 0..{self.places - 1} "
                    f"and k probabilities, got {ids} and {law}"
                )
            laws.append((ids, law))
        places, p0 = np.zeros((2, len(laws), max(ids.size for ids, _ in laws)))
        for row, (ids, law) in enumerate(laws):
            places[row, : ids.size], p0[row, : ids.size] = ids, law
        return places.astype(np.int64)[which.reshape(-1)], p0[which.reshape(-1)]

    def _moved(self, states: Array, action: int, places: Array) -> tuple[Array, Array, Array]:
        """States, rewards (m,) and finished (m,) of walkers that chose `places` (m,)."""
        pairs = zip(states, places.tolist(), strict=True)
        told = [self.transition(state, action, place) for state, place in pairs]
        moved = np.array([state for state, _, _ in told])
        if moved.shape != states.shape or not np.can_cast(moved.dtype, states.dtype, "same_kind"):
            raise ValueError(f"transition turned a state like {states[0]!r} into {moved[0]!r}")
        rewards = np.array([reward for _, reward, _ in told], np.float64)
        return moved, rewards, np.array([finished for _, _, finished in told], np.bool_)

    def _deformed(self, places: Array, p0: Array) -> tuple[Array, Array]:
        """`psi` and the kernel sampled now, (m, K) each, of candidates (m, K)."""
        scope = self.scope if self._deforms else Scope("off")
        psi = self.memory.conductance()[self.regions]
        if scope.kind == "local":  # a matter of places, `topk` one of rows
            psi = within_scope(psi, psi, scope, self._designated)[places]
        else:
            psi = within_scope(psi[places], p0, scope)
        return psi, reweight(p0, psi)

    def _harmed(self, at: Array) -> npt.NDArray[np.bool_]:
        return np.asarray((at != NOWHERE) & self.harmful[at])

    def _reach(self) -> int:
        return np.unique(self._at[self._at != NOWHERE]).size

    def _observation(self) -> Obs:
        there = self._at[self._at != NOWHERE]
        blocks = np.bincount(self._blocks[there], minlength=self._blocks[-1] + 1) / self.walkers
        clock = self._count["clock"] / self.horizon
        x = [[self._reach() / self.places, there.size / self.walkers, clock], blocks]
        fields = [self.memory.G, self.memory.H] if self.observe == "xGH" else []
        return np.concatenate([*x, *fields]).astype(np.float32)


def mask_of(harmful: npt.ArrayLike, places: int) -> npt.NDArray[np.bool_]:
    """Bool (places,) from a mask or from place numbers; some place must be, and some not."""
    given = np.asarray(harmful)
    mask = given.dtype == np.bool_ and given.shape == (places,)
    if not mask and (given.dtype.kind not in "iu" or ((given < 0) | (given >= places)).any()):
        raise ValueError(f"harmful must name places 0..{places - 1} or be a mask, got {harmful!r}")
    flags = given.copy() if mask else np.isin(np.arange(places), given)
    if flags.all() or not flags.any():
        raise ValueError(f"harmful must name some of {places} places, got {int(flags.sum())}")
    return flags


def _laws(starts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    laws = np.array(starts, np.float64)
    if laws.ndim != 2 or not laws.size:
        raise ValueError(f"starts must have shape (stimuli, places), got {laws.shape}")
    if not np.all(laws >= 0) or not np.allclose(laws.sum(axis=1), 1, rtol=0, atol=1e-6):
        raise ValueError(f"each start law must be >= 0 and sum to 1, got sums {laws.sum(axis=1)}")
    return laws


def _regions(regions: npt.ArrayLike | None, places: int) -> npt.NDArray[np.int64]:
    given = np.arange(places) if regions is None else np.asarray(regions)
    if given.shape != (places,) or given.dtype.kind not in "iu" or given.min() < 0:
        raise ValueError(f"regions must name a region >= 0 for {places} places, got {regions!r}")
    return given.astype(np.int64)


def _report(p0: Array, psi: Array, p: Array, harmful: Array) -> Info:
    """What the kernel does to harmful entry; all (m, K)."""
    inside, outside = (p0 * harmful).sum(axis=1), (p0 * ~harmful).sum(axis=1)
    both = (inside > 0) & (outside > 0)
    passed, kept = (p0 * psi * harmful).sum(axis=1), (p0 * psi * ~harmful).sum(axis=1)
    nominal = inside[both]
    weighted = nominal * ((passed[both] / nominal) / (kept[both] / outside[both]))
    told = {"entry_nominal": float(inside.sum()), "entry_deformed": float((p * harmful).sum())}
    if both.any():
        told["odds_ratio"] = float(weighted.sum() / nominal.sum())
    if len(p0):
        told["gating_rate"] = float(np.mean(((psi < 1) & (p0 > 0)).any(axis=1)))
    return told


def _whole(name: str, value: Any, least: int, most: float = np.inf) -> int:
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        upto = f"in {least}..{most}" if most < np.inf else f">= {least}"
        raise ValueError(f"{name} must be a whole number {upto}, got {value!r}")
    return int(value)
