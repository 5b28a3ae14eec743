"""The memory of a platform: regions of `HarmMemory`, or a scar field over points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from rapo.platforms import kernel
from rapo.platforms.candidates import (
    UNTOLD,
    Candidates,
    Harmed,
    bool_array,
    number_array,
    point_array,
    region_array,
)
from rapo_core.checks import UserError
from rapo_core.deformation import Scope
from rapo_core.memory import HarmMemory
from rapo_core.params import FieldParams

Array = npt.NDArray[Any]
_FAULTS = {
    kernel.NEGATIVE: "its P0 must be >= 0, got {law}",
    kernel.NO_SUM: "its P0 must sum to 1, got {total}; divide it by its sum",
    kernel.EMPTY: "it moves and has no candidate: every P0 is 0; say who moves in `moving`",
    kernel.UNKNOWN: "its regions must be 0..{last}, or -1 for none, got {where}",
    kernel.NOWHERE: "it is harmed, and all its regions are -1; say where",
    kernel.NO_PSI: "psi of its candidates must be in (0, 1], got {psi}",
}


class ScarField(Protocol):
    """What a platform needs of a field over points, all episodes side by side; see `rapo.scars`."""

    def conductance(self, points: Any) -> Any:
        """Psi (E, q) of points (E, q, d)."""
        ...

    def advance(self, points: Any, affected: Any) -> Any:
        """Remember who is affected where now, apply the harm of D steps ago; that harm (E,)."""
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
"""A callable with `params`, `batch` and `delay`, such as `partial(rapo.scars.KernelField, box)`."""


class Sampling(NamedTuple):
    """How the choices of a step are drawn."""

    deformed: Array
    """(E,) whether an episode's kernel is deformed."""
    keys: Array
    """(E,) keys of the present phase."""
    clock: Array
    """(E,) step within the phase."""
    top: int
    """Deform only so many of the most probable candidates; 0 for all."""


class RegionMemory:
    """Fields of regions, (E, R).

    Args:
        episodes: E.
        regions: R.
        params: constants of the fields.
        delay: D.
        scope: where the deformation applies.
        harm_regions: regions that can ever carry harm; a `local` scope deforms a share of them.
    """

    def __init__(
        self,
        episodes: int,
        regions: int,
        params: FieldParams | None,
        delay: int,
        scope: Scope,
        harm_regions: npt.ArrayLike | None = None,
    ) -> None:
        self.harm = HarmMemory(regions, params, batch=episodes, delay=delay)
        self.params = self.harm.params
        self._weights = np.array([self.params.w_G, self.params.w_H, self.params.psi_min])
        self.never_gated = np.zeros(regions, np.bool_)
        """(R,) regions that are never deformed."""
        if scope.kind == "local":
            every = np.arange(regions) if harm_regions is None else np.unique(harm_regions)
            order = np.random.default_rng(0).permutation(every)
            gated = order[: int(np.ceil(scope.share * order.size - 1e-9))]
            self.never_gated = ~np.isin(np.arange(regions), gated)
        self._table = np.empty(regions + 1)

    def ruled_by(self, harm: HarmMemory, weights: tuple[float, float, float]) -> RegionMemory:
        """The same regions under another rule: its G and H, and the w_G, w_H, psi_min they need."""
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

    def choose(self, proposed: Candidates, sampling: Sampling) -> tuple[Array, Array]:
        """Choices (E, m) and `stats` (STATS, E) of checked candidates."""
        where = region_array("the regions of candidates", proposed.where, 3)
        if where.ndim != 4 or where.shape[:3] != proposed.P0.shape:
            raise UserError(
                f"candidates() must give regions of shape {proposed.P0.shape} or one more axis, "
                f"got {np.shape(np.asarray(proposed.where))}"
            )
        choice, stats, psi = _room(proposed.P0)
        harmful, moving = _flags_of(proposed)
        fault = kernel.choose_by_region(
            proposed.P0, where, harmful, moving, self.harm.G, self.harm.H, self.never_gated,
            self._weights, *sampling, self._table, psi, choice, stats,
        )  # fmt: skip
        _refuse(fault, self.harm.regions, proposed.P0, where)
        return choice, stats

    def affected(self, harmed: Harmed, shape: tuple[int, int]) -> Array:
        """Affected walkers per region, (E, R), for `advance`."""
        weight = number_array("harmed().weight", harmed.weight, shape, least=0)
        where = region_array("the regions of harm", harmed.where, 2)
        if where.ndim != 3 or where.shape[:2] != shape:
            raise UserError(
                f"harmed() must give regions of shape {shape} or one more axis, got "
                f"{np.shape(harmed.where)}"
            )
        counts = np.empty(self.harm.G.shape)
        fault = kernel.count_harm(weight, where, counts)
        _refuse(fault, self.harm.regions, None, where)
        return counts

    def advance(self, affected: Array, per_walker: float) -> Array:
        """Take one step of delayed harm; the harm that arrived, (E,)."""
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

    def choose(self, proposed: Candidates, sampling: Sampling) -> tuple[Array, Array]:
        """Choices (E, m) and `stats` (STATS, E) of checked candidates."""
        E, m, K = proposed.P0.shape
        points = point_array("candidates()", proposed.where, (E, m, K))
        conductance = np.ones((E, m, K))
        if sampling.deformed.any():
            psi_of = self.field.conductance(points.reshape(E, m * K, -1))
            conductance = np.ascontiguousarray(np.reshape(psi_of, (E, m, K)), np.float64)
        choice, stats, psi = _room(proposed.P0)
        harmful, moving = _flags_of(proposed)
        fault = kernel.choose_by_psi(
            proposed.P0, conductance, harmful, moving, *sampling, psi, choice, stats
        )
        _refuse(fault, 0, proposed.P0, conductance)
        return choice, stats

    def affected(self, harmed: Harmed, shape: tuple[int, int]) -> Any:
        """Points (E, m, d) and weights (E, m), for `advance`."""
        weight = number_array("harmed().weight", harmed.weight, shape, least=0)
        points = point_array("harmed()", harmed.where, shape)
        return points.copy(), weight

    def advance(self, affected: Any, per_walker: float) -> Array:
        """Take one step of delayed harm; the harm that arrived, (E,)."""
        points, weight = affected
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


def _flags_of(proposed: Candidates) -> tuple[Array, Array]:
    """Which candidates are harmful (`UNTOLD` where nobody tells) and which walkers move."""
    E, m, K = proposed.P0.shape
    harmful = UNTOLD
    if proposed.harmful is not None:
        harmful = bool_array("candidates().harmful", proposed.harmful, (E, m, K))
    if proposed.moving is None:
        return harmful, np.ones((E, m), np.bool_)
    return harmful, bool_array("candidates().moving", proposed.moving, (E, m))


def _refuse(fault: tuple[int, int, int], regions: int, P0: Array | None, where: Array) -> None:
    """Raise an error for the fault that a kernel found with a walker."""
    kind, e, w = fault
    if kind == kernel.FINE:
        return
    law = np.zeros(0) if P0 is None else P0[e, w]
    shown = where[e, w].tolist()
    text = _FAULTS[kind].format(
        law=law.tolist(), total=law.sum(), last=regions - 1, where=shown, psi=shown
    )
    raise UserError(f"walker {w} of episode {e}: {text}")
