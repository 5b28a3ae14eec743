"""The memory of a platform: regions of `HarmMemory`, or a scar field over points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rapo.platforms import kernel
from rapo.platforms.proposal import NOBODY_KNOWS, Candidates, Harmed, flags, numbers, whole
from rapo_core.checks import UserError
from rapo_core.deformation import Scope
from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

Array = npt.NDArray[Any]
_WRONG = {
    kernel.NEGATIVE: "its P0 must be >= 0, got {law}",
    kernel.NO_SUM: "its P0 must sum to 1, got {total}; divide it by its sum",
    kernel.EMPTY: "it moves and has no candidate: every P0 is 0; say who moves in `moving`",
    kernel.UNKNOWN: "its regions must be 0..{last}, or -1 for none, got {where}",
    kernel.NOWHERE: "it is harmed, and all its regions are -1; say where",
    kernel.NO_PSI: "psi of its candidates must be in (0, 1], got {psi}",
}


class ScarField(Protocol):
    """What `rapo.scars` offers of a field over points, all episodes side by side."""

    def conductance(self, points: Any) -> Any:
        """Psi (E, q) of points (E, q, d)."""
        ...

    def advance(self, points: Any, affected: Any) -> Any:
        """Remember who is affected where now, apply the harm of D steps ago; the harm (E,)."""
        ...

    def reset(self, episodes: Any = None) -> None:
        """Forget everything, or some episodes."""
        ...

    def snapshot(self) -> Any:
        """Everything that evolves, as plain arrays by name."""
        ...

    def restore(self, state: Any) -> None:
        """Take over a snapshot."""
        ...


MakeField = Callable[..., ScarField]
"""Called with `params`, `batch` and `delay`, such as `partial(rapo.scars.KernelField, box)`."""


class Turn:
    """Who draws with which keys in a step, and where the results go.

    Args:
        deformed: (E,) whether an episode is.
        keys: (E,) of the phase.
        clock: (E,).
        top: deform that many most probable candidates; 0 for all.
    """

    def __init__(self, deformed: Array, keys: Array, clock: Array, top: int) -> None:
        self.deformed, self.keys, self.clock, self.top = deformed, keys, clock, top


class RegionMemory:
    """Fields per region, (E, R).

    Args:
        episodes: E.
        regions: R.
        params: constants of the fields.
        delay: D.
        scope: where the deformation applies.
        live: regions that can ever carry harm, of which a `local` scope takes a share.
    """

    def __init__(
        self,
        episodes: int,
        regions: int,
        params: FieldParams | None,
        delay: int,
        scope: Scope,
        live: npt.ArrayLike | None = None,
    ) -> None:
        self.harm = HarmMemory(regions, params, batch=episodes, delay=delay)
        self.params = self.harm.params
        self._weights = np.array([self.params.w_G, self.params.w_H, self.params.psi_min])
        self.open_regions = np.zeros(regions, np.bool_)
        """(R,) which are never deformed."""
        if scope.kind == "local":
            known = np.arange(regions) if live is None else np.unique(live)
            order = np.random.default_rng(0).permutation(known)
            self.open_regions = ~np.isin(
                np.arange(regions), order[: int(np.ceil(scope.share * order.size - 1e-9))]
            )
        self._table = np.empty(regions + 1)

    def ruled_by(self, harm: HarmMemory, weights: tuple[float, float, float]) -> RegionMemory:
        """The same regions under another rule: its G and H, and w_G, w_H and psi_min of theirs."""
        other = copy(self)
        other.harm, other._weights = harm, np.array(weights)
        return other

    @property
    def G(self) -> Array:
        """(E, R) trace."""
        return self.harm.G

    @property
    def H(self) -> Array | None:
        """(E, R) scar."""
        return self.harm.H

    def choose(self, found: Candidates, turn: Turn) -> tuple[Array, Array]:
        """Choices (E, m) and `stats` (STATS, E) of checked candidates."""
        where = whole("the regions of candidates", found.where, 3)
        if where.ndim != 4 or where.shape[:3] != found.P0.shape:
            raise UserError(
                f"candidates() must give regions of shape {found.P0.shape} or one more axis, got "
                f"{np.shape(np.asarray(found.where))}"
            )
        choice, stats, psi = _room(found.P0)
        harmful, moving = _flags_of(found)
        wrong = kernel.choose_by_region(
            found.P0, where, harmful, moving, self.harm.G, self.harm.H, self.open_regions,
            turn.deformed, self._weights, turn.top, turn.keys, turn.clock, self._table, psi,
            choice, stats,
        )  # fmt: skip
        _refuse(wrong, self.harm.regions, found.P0, where)
        return choice, stats

    def noted(self, harmed: Harmed, shape: tuple[int, int]) -> Array:
        """Affected walkers per region, (E, R), for `advance`."""
        weight = numbers("harmed().weight", harmed.weight, shape, least=0)
        where = whole("the regions of harm", harmed.where, 2)
        if where.ndim != 3 or where.shape[:2] != shape:
            raise UserError(
                f"harmed() must give regions of shape {shape} or one more axis, got "
                f"{np.shape(harmed.where)}"
            )
        affected = np.empty(self.harm.G.shape)
        wrong = kernel.count_harm(weight, where, affected)
        _refuse(wrong, self.harm.regions, None, where)
        return affected

    def advance(self, affected: Array, per_walker: float) -> Array:
        """One step of delayed harm; what arrived, (E,)."""
        return self.harm.advance(affected * per_walker)

    def reset(self, rows: Array) -> None:
        """Forget some episodes."""
        self.harm.reset(rows)

    def snapshot(self) -> dict[str, Array]:
        """Everything that evolves."""
        return self.harm.snapshot()

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take over a snapshot; a wrong one changes nothing."""
        self.harm.restore(state)


class PointMemory:
    """A scar field: candidates and harm are points of a continuous space.

    Args:
        make: of the field.
        episodes: E.
        params: constants of the fields.
        delay: D.
        scope: where the deformation applies; `local` needs regions.
    """

    G: Array | None = None
    H: Array | None = None

    def __init__(
        self,
        make: MakeField,
        episodes: int,
        params: FieldParams | None,
        delay: int,
        scope: Scope,
    ) -> None:
        if scope.kind == "local":
            raise UserError("a local scope takes a share of regions, and a scar field has none")
        self.params = FieldParams() if params is None else params
        self.field = make(params=self.params, batch=episodes, delay=delay)

    def choose(self, found: Candidates, turn: Turn) -> tuple[Array, Array]:
        """Choices (E, m) and `stats` (STATS, E) of checked candidates."""
        E, m, K = found.P0.shape
        points = np.asarray(found.where)
        if points.ndim != 4 or points.shape[:3] != (E, m, K) or points.dtype.kind != "f":
            raise UserError(
                f"candidates() must give points of shape {(E, m, K)} and one more axis, got "
                f"{points.dtype} {points.shape}"
            )
        given = np.ones((E, m, K))
        if turn.deformed.any():
            psi_of = self.field.conductance(points.reshape(E, m * K, -1))
            given = np.ascontiguousarray(np.reshape(psi_of, (E, m, K)), np.float64)
        choice, stats, psi = _room(found.P0)
        harmful, moving = _flags_of(found)
        wrong = kernel.choose_by_psi(
            found.P0, given, harmful, moving, turn.deformed, turn.top, turn.keys, turn.clock, psi,
            choice, stats,
        )  # fmt: skip
        _refuse(wrong, 0, found.P0, given)
        return choice, stats

    def noted(self, harmed: Harmed, shape: tuple[int, int]) -> Any:
        """Points (E, m, d) and weights (E, m), for `advance`."""
        weight = numbers("harmed().weight", harmed.weight, shape, least=0)
        points = np.asarray(harmed.where)
        if points.ndim != 3 or points.shape[:2] != shape or points.dtype.kind != "f":
            raise UserError(
                f"harmed() must give points of shape {shape} and one more axis, got "
                f"{points.dtype} {points.shape}"
            )
        return points.copy(), weight

    def advance(self, noted: Any, per_walker: float) -> Array:
        """One step of delayed harm; what arrived, (E,)."""
        points, weight = noted
        return np.asarray(self.field.advance(points, weight * per_walker))

    def reset(self, rows: Array) -> None:
        """Forget some episodes."""
        self.field.reset(rows)

    def snapshot(self) -> dict[str, Array]:
        """Everything that evolves."""
        return dict(self.field.snapshot())

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take over a snapshot; a wrong one changes nothing."""
        self.field.restore(state)


def _room(P0: Array) -> tuple[Array, Array, Array]:
    E, m, K = P0.shape
    return np.empty((E, m), np.int64), np.empty((kernel.STATS, E)), np.empty(K)


def _flags_of(found: Candidates) -> tuple[Array, Array]:
    """Flags of harmful candidates, perhaps none, and of moving walkers."""
    E, m, K = found.P0.shape
    harmful = NOBODY_KNOWS
    if found.harmful is not None:
        harmful = flags("candidates().harmful", found.harmful, (E, m, K))
    if found.moving is None:
        return harmful, np.ones((E, m), np.bool_)
    return harmful, flags("candidates().moving", found.moving, (E, m))


def _refuse(wrong: tuple[int, int, int], regions: int, P0: Array | None, where: Array) -> None:
    """Say what a kernel found wrong with a walker."""
    kind, e, w = wrong
    if kind == kernel.FINE:
        return
    law = np.zeros(0) if P0 is None else P0[e, w]
    shown = where[e, w].tolist()
    words = _WRONG[kind].format(
        law=law.tolist(), total=law.sum(), last=regions - 1, where=shown, psi=shown
    )
    raise UserError(f"walker {w} of episode {e}: {words}")
