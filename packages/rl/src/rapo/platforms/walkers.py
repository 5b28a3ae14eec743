"""`CandidateReplayEnv`: walkers that pick their next place from explicit candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt

from rapo.envs.single_base import CALLED
from rapo.platforms.single import PlatformEnv
from rapo.platforms.vector import PlatformVectorEnv
from rapo.platforms.walker_platform import BLOCKS, WalkerPlatform
from rapo_core.checks import UserError, whole_number
from rapo_core.deformation import Scope, reweight, within_scope
from rapo_core.params import FieldParams

Array = npt.NDArray[Any]
_HOOKS = ("candidates", "transition", "begin", "_rows", "_moved")


class CandidateReplayEnv(PlatformEnv, ABC):
    """A platform of `walkers` slots; all walkers take the chosen action and move independently.

    For routing, ranking or recommendation: a subclass (as `TabularReplayEnv`) has `candidates` and
    `transition`, and `begin` where a state is more than a place: pure functions of one walker.
    Python is called for every walker of every step; a `BatchPlatform` is a hundred times faster.

    Step t, with `A_t` the places occupied when it begins:
    1. walkers that had finished leave. While a stimulus is on, every free slot is filled from the
       stimulus' start law, without deformation; while it is off nobody arrives;
    2. everybody moves by `reweight(P0, psi)` with `psi` from `(G_t, H_t)`;
    3. harm of the walkers in harmful places of `A_{t-D}` arrives through `HarmMemory.advance`.
    A walker has finished when its transition says so, or by chance (`leave`).

    Harm is `min(share of the slots in harmful places / saturation, 1)`. The default of 0.2 is the
    paper's 0.1 per affected with 50 walkers, and the same problem with any other number of them.

    Observation `x`, float32: distinct places occupied / places, walkers present / walkers, steps
    since the observable was reset / `horizon`, share of walkers in each of up to 8 equal ranges
    of place numbers; `xGH` appends the fields (`memory_mask` marks them). At `x*` nobody is there.

    `reset` draws a stimulus and switches it on. The environment never ends by itself: wrap it in
    `gymnasium.wrappers.TimeLimit` to train on it.

    `info` of a step: reach (distinct places occupied), sensitive_mass (walkers in harmful places),
    harm (also as `cost`), scar_mass (sum of H), gating_rate (share of the moving walkers with
    psi < 1 on some candidate), entry_nominal and entry_deformed (probability of a harmful next
    place under `P0` and under the sampled kernel, summed over walkers), odds_ratio: with `r_w` the
    factor by which the kernel changes the odds of walker w's harmful entry (Lemma 1 bounds r_w)
    and `p0_w` its nominal probability, `sum p0_w r_w / sum p0_w` over the walkers with both
    harmful and other candidates; and the other entries of `PlatformVectorEnv`. Entries that are
    undefined at a step (nobody moves) are left out.

    Args:
        actions: how many actions there are.
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

    batched_hooks: ClassVar[type | None] = None
    """The class of this package whose hooks read tables alone: its episodes may run all at once."""

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
        self.actions = whole_number("actions", actions, 1)
        self.walkers = whole_number("walkers", walkers, 1)
        self.horizon = whole_number("horizon", horizon, 1)
        if not (0 < saturation <= 1 and 0 <= leave <= 1):
            got = f"saturation={saturation}, leave={leave}"
            raise UserError(f"saturation must be in (0, 1] and leave in [0, 1], got {got}")
        if observe not in ("x", "xGH"):
            raise UserError(f"observe must be 'x' or 'xGH', got {observe!r}")
        self.starts = _laws(starts)
        self.places = self.starts.shape[1]
        self.harmful = mask_of(harmful, self.places)
        self.regions = _regions(regions, self.places)
        self.observe, self.leave = observe, float(leave)
        like = np.asarray(self.begin(1, int(self.starts[0].argmax())))
        if like.dtype.kind not in "iufb":
            raise UserError(f"a state must be a number or an array of numbers, got {like!r}")
        self.like = like
        high = np.ones(3 + min(BLOCKS, self.places), np.float32)
        high[2] = np.inf  # the clock may run past `horizon`
        self._show(
            PlatformVectorEnv(
                1,
                platform=WalkerPlatform,
                domain=self,
                observe=observe,
                schedule="external",
                autoreset_mode="Disabled",
                walkers=self.walkers,
                actions=self.actions,
                stimuli=len(self.starts),
                observed=gymnasium.spaces.Box(np.zeros_like(high), high),
                regions=int(self.regions.max()) + 1,
                harm_regions=self.regions[self.harmful],
                params=params,
                delay=delay,
                saturation=saturation,
                deformation=deformation,
            )
        )

    @abstractmethod
    def candidates(self, state: Any, action: int) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        """Places that a walker may go to, (k,) for any k >= 1, and `P0`, (k,)."""

    @abstractmethod
    def transition(self, state: Any, action: int, choice: int) -> tuple[Any, float, bool]:
        """State, reward and whether the walker has finished, once it chose the place `choice`."""

    def begin(self, stimulus: int, place: int) -> Any:  # type: ignore[override]
        """State of an arriving walker: a number, or an array of numbers of a fixed shape."""
        return place

    @property
    def scope(self) -> Scope:
        """Where the deformation applies."""
        return self.vector.engine.scope  # type: ignore[no-any-return]

    def _own_vector(self) -> Any:
        """The same walkers; the platform asks the hooks of this copy."""
        return self.vector.like(1, domain=self)

    def _runs_at_once(self) -> bool:
        """A subclass' hooks may look at anything of this environment: one episode at a time."""
        ours = self.batched_hooks
        plain = ours is not None and not any(
            name in vars(self) or getattr(type(self), name) is not getattr(ours, name)
            for name in _HOOKS
        )
        return plain and not self._overrides(CALLED)

    def _rows(self, states: Array, action: int) -> tuple[Array, Array]:
        """Candidates and `P0` of many walkers, (m, K) each; pads at the end have `P0` 0."""
        different, which = np.unique(states, axis=0, return_inverse=True)
        laws = []
        for state in different:
            ids, law = (np.asarray(part) for part in self.candidates(state, action))
            fits = ids.ndim == 1 and ids.size and ids.shape == law.shape and ids.dtype.kind in "iu"
            if not fits or ids.min() < 0 or ids.max() >= self.places:
                raise UserError(
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
        outcomes = [self.transition(state, action, place) for state, place in pairs]
        moved = np.array([state for state, _, _ in outcomes])
        if moved.shape != states.shape or not np.can_cast(moved.dtype, states.dtype, "same_kind"):
            raise UserError(f"transition turned a state like {states[0]!r} into {moved[0]!r}")
        rewards = np.array([reward for _, reward, _ in outcomes], np.float64)
        return moved, rewards, np.array([finished for _, _, finished in outcomes], np.bool_)

    def _deformed(self, places: Array, p0: Array) -> tuple[Array, Array]:
        """`psi` and the present kernel, (..., K) each, of candidates (..., K)."""
        engine = self.vector.engine
        scope = engine.scope if engine.deformed[0] else Scope("off")
        assert self.harm_memory is not None  # it has regions
        psi = self.harm_memory.conductance()
        if scope.kind == "local":  # picks regions, as `topk` picks candidates of a row
            psi = within_scope(psi, psi, scope, ~engine.memory.never_gated)[self.regions[places]]
        else:
            psi = within_scope(psi[self.regions[places]], p0, scope)
        return psi, reweight(p0, psi)


def mask_of(harmful: npt.ArrayLike, places: int) -> npt.NDArray[np.bool_]:
    """Bool (places,) from a mask or place numbers; some places must be harmful, and some not."""
    array = np.asarray(harmful)
    mask = array.dtype == np.bool_ and array.shape == (places,)
    if not mask and (array.dtype.kind not in "iu" or ((array < 0) | (array >= places)).any()):
        raise UserError(f"harmful must name places 0..{places - 1} or be a mask, got {harmful!r}")
    flags = array.copy() if mask else np.isin(np.arange(places), array)
    if flags.all() or not flags.any():
        raise UserError(f"harmful must name some of {places} places, got {int(flags.sum())}")
    return flags


def _laws(starts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    laws = np.array(starts, np.float64)
    if laws.ndim != 2 or not laws.size:
        raise UserError(f"starts must have shape (stimuli, places), got {laws.shape}")
    if not np.all(laws >= 0) or not np.allclose(laws.sum(axis=1), 1, rtol=0, atol=1e-6):
        raise UserError(f"each start law must be >= 0 and sum to 1, got sums {laws.sum(axis=1)}")
    return laws


def _regions(regions: npt.ArrayLike | None, places: int) -> npt.NDArray[np.int64]:
    array = np.arange(places) if regions is None else np.asarray(regions)
    if array.shape != (places,) or array.dtype.kind not in "iu" or array.min() < 0:
        raise UserError(f"regions must name a region >= 0 for {places} places, got {regions!r}")
    return array.astype(np.int64)
