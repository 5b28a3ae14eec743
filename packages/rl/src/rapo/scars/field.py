"""`ScarField`: the interface of all scar fields, and the checks that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.scars.box import Box
from rapo_core.checks import UserError, checked_state, rows_of, whole_number
from rapo_core.deformation import conductance
from rapo_core.fields import HARM_PER_NODE, harm_and_shares
from rapo_core.params import FieldParams

Array = npt.NDArray[np.floating[Any]]
State = dict[str, npt.NDArray[Any]]

REACH = 3.0
"""Harm reaches this many widths and no further, so psi is exactly 1 away from harm."""
LARGEST_SHARE = 1e100
"""Largest harm of one point, so that fields never overflow."""
VISIT, NOTHING = 0.0, -1.0
"""Marks among harm shares: a visit that did no harm, and an entry without a point."""


class ScarField(ABC):
    """Trace `G` and scar `H` over points of a box, fed by delayed, attributed harm.

    The counterpart of `HarmMemory` for points instead of regions: harm at a point p adds
    `alpha share exp(-|x - p|^2 / (2 width^2))` to the trace at x, and nothing beyond three widths.
    H, then G, then psi follow the core. Distances and `width` are shares of the sides of the box.

    One system takes points (k, d); `batch=E` keeps E systems side by side, (E, k, d). `deposit` and
    `visit` collect points and `step` applies them sorted, so their order does not matter. With
    `delay=D`, `advance` takes who is where *now* and applies the harm of D steps ago, as
    `HarmMemory.advance` does.

    Args:
        box: (d, 2), (low, high) per dimension; a point outside is an error.
        params: constants of the fields.
        width: reach of a deposit as a share of the box, in (0, 1]; see `width_from`.
        batch: number of episodes, or None for one system without that axis.
        delay: D >= 0, for `advance`.

    Raises:
        ValueError: bad input, by name and value; the field stays as it was.
    """

    def __init__(
        self,
        box: Any,
        params: FieldParams | None = None,
        *,
        width: float = 0.05,
        batch: int | None = None,
        delay: int = 0,
    ) -> None:
        self.box = box if isinstance(box, Box) else Box(box)
        self.params = FieldParams() if params is None else params
        if not isinstance(self.params, FieldParams):
            raise UserError(f"params must be FieldParams, got {params!r}")
        if isinstance(width, bool) or not isinstance(width, int | float | np.number):
            raise UserError(f"width must be a number in (0, 1], got {width!r}")
        if not 1e-6 <= width <= 1:
            raise UserError(f"width must be in [1e-6, 1], a share of the box's side, got {width}")
        self.width = float(width)
        self.batch = None if batch is None else whole_number("batch", batch, 1)
        self.delay = whole_number("delay", delay, 0)
        rows, d = self.rows, self.box.dimensions
        self._points, self._shares = np.empty((rows, 0, d)), np.empty((rows, 0))
        self._then = np.empty((self.delay, rows, 0, d))
        self._affected = np.empty((self.delay, rows, 0))
        self._slot = 0  # ring index of the oldest entry, which the next `advance` applies

    @property
    def rows(self) -> int:
        """Episodes kept side by side, >= 1."""
        return self.batch or 1

    @property
    @abstractmethod
    def size(self) -> npt.NDArray[np.int64]:
        """How many places hold a field, per episode: () or (batch,)."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers the full field of one episode takes, without points that wait."""

    def deposit(self, points: npt.ArrayLike, shares: npt.ArrayLike) -> None:
        """Collect harm that has arrived; the next `step` applies it.

        Args:
            points: where the harm was caused, (k, d) or (batch, k, d).
            shares: harm times attribution weight of each point, >= 0, (k,) or (batch, k). A share
                of 0 changes nothing.
        """
        at, share = self._checked(points), self._amounts("shares", shares, points)
        if not np.all(share <= LARGEST_SHARE):
            raise UserError(f"shares must be at most {LARGEST_SHARE:g}, got {share.max()}")
        self._collect(at, np.where(share > 0, share, NOTHING))

    def visit(self, points: npt.ArrayLike) -> None:
        """Collect points that were visited without harm, (k, d) or (batch, k, d).

        Visits add no harm and take none away. A field that interpolates makes visits near harm
        places of its own, so that borders stay sharp; other fields ignore visits.
        """
        at = self._checked(points)
        self._collect(at, np.full(at.shape[:2], VISIT))

    def step(self) -> None:
        """Apply the collected points: H from the old trace, then G."""
        points, shares = self._points, self._shares
        self._step(points, shares)
        self._points, self._shares = points[:, :0], shares[:, :0]

    def advance(self, points: npt.ArrayLike, affected: npt.ArrayLike) -> Array:
        """One step of delayed harm: remember who is where now, apply what is `delay` steps old.

        Args:
            points: where everyone is now, (k, d) or (batch, k, d); k is the same in every call.
            affected: how many are harmed at each point (>= 0), (k,) or (batch, k).

        Returns:
            The harm `c_t = min(0.1 n, 1)` that arrived, with n the number affected `delay` steps
            ago; () or (batch,). Its attribution is each point's share of those n; points of that
            time where nobody was affected count as visits.
        """
        now, count = self._checked(points), self._amounts("affected", affected, points)
        if not np.isfinite(count.sum(axis=1)).all():
            raise UserError(f"affected must have a finite sum, got {count.max()} at a point")
        if self.delay:
            now, count = self._exchanged(now, count)
        harm, weights = np.empty(self.rows), np.zeros(count.shape)
        if count.shape[1]:
            harm_and_shares(np.maximum(count, 0), HARM_PER_NODE, harm, weights)
        else:
            harm[:] = 0
        self._collect(now, np.where(count > 0, harm[:, None] * weights, count))
        self.step()
        return harm if self.batch is not None else harm[0]

    def fields(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """G and H at points (q, d) or (batch, q, d), both >= 0; (q,) or (batch, q) each."""
        G, H = self._fields(self._checked(points))
        return self._outside(G), self._outside(H)

    def conductance(self, points: npt.ArrayLike) -> Array:
        """`psi` in [psi_min, 1] of points (q, d) or (batch, q, d); (q,) or (batch, q)."""
        return self._outside(self._psi(self._checked(points)))

    def reset(self, episodes: npt.ArrayLike | None = None) -> None:
        """Forget everything, or only some rows of a batch (indices or a mask)."""
        if self.batch is None and episodes is not None:
            raise UserError(f"only a batch has episodes to choose from, got {episodes!r}")
        rows = rows_of(episodes, self.rows)
        self._forget(rows)
        self._shares[rows] = NOTHING
        self._affected[:, rows] = NOTHING

    def snapshot(self) -> State:
        """Everything that evolves, as plain arrays, episodes first; `then[:, 0]` is the oldest."""
        return {
            **{name: array.copy() for name, array in self._state().items()},
            "points": self._points.copy(),
            "shares": self._shares.copy(),
            "then": np.swapaxes(np.roll(self._then, -self._slot, axis=0), 0, 1).copy(),
            "affected": np.swapaxes(np.roll(self._affected, -self._slot, axis=0), 0, 1).copy(),
        }

    def restore(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Take over a `snapshot`; one of another configuration changes nothing."""
        like = self.snapshot()
        if isinstance(state, Mapping):  # a snapshot may hold more or fewer waiting points
            for points, shares in (("points", "shares"), ("then", "affected")):
                k = np.shape(state.get(shares, ()))[-1:] or (0,)
                like[points] = np.empty((*like[points].shape[:-2], *k, self.box.dimensions))
                like[shares] = np.empty((*like[shares].shape[:-1], *k))
        taken = checked_state(state, like)
        for name in ("points", "then"):
            if not np.all((taken[name] >= 0) & (taken[name] <= 1)):
                raise UserError(f"{name} must lie in the unit cube, got {taken[name].min()}")
        self._take({name: taken[name] for name in self._state()})
        self._points, self._shares = taken["points"], taken["shares"]
        self._then = np.swapaxes(taken["then"], 0, 1).copy()
        self._affected = np.swapaxes(taken["affected"], 0, 1).copy()
        self._slot = 0

    def __repr__(self) -> str:
        batch = f" x {self.batch}" if self.batch else ""
        return (
            f"{type(self).__name__}({self.box}{batch}, width={self.width:g}, delay={self.delay}, "
            f"{self.params})"
        )

    @abstractmethod
    def _step(self, points: Array, shares: Array) -> None:
        """Apply points (E, n, d) of the unit cube; shares (E, n) > 0, `VISIT` or `NOTHING`."""

    @abstractmethod
    def _fields(self, points: Array) -> tuple[Array, Array]:
        """G and H (E, q) at points (E, q, d) of the unit cube."""

    @abstractmethod
    def _state(self) -> State:
        """The arrays that evolve, with the episode as first axis; the field's own, not copies."""

    @abstractmethod
    def _take(self, state: State) -> None:
        """Check and take over arrays of the names, shapes and dtypes of `_state`."""

    @abstractmethod
    def _forget(self, rows: npt.NDArray[np.intp]) -> None:
        """Empty the fields of these episodes."""

    def _psi(self, points: Array) -> Array:
        G, H = self._fields(points)
        return conductance(G, H, self.params)

    def _checked(self, points: npt.ArrayLike) -> Array:
        """Points as (E, k, d) of the unit cube."""
        try:
            array = np.asarray(points, np.float64)
        except (TypeError, ValueError):
            raise UserError(f"points must be an array of numbers, got {points!r}") from None
        d = self.box.dimensions
        shape = ("k", d) if self.batch is None else (self.batch, "k", d)
        fits = array.ndim == len(shape) and array.shape[-1] == d
        if not fits or (self.batch is not None and len(array) != self.batch):
            raise UserError(
                f"points must have shape ({', '.join(map(str, shape))}), got {array.shape}"
            )
        return self.box.unit(array, "points").reshape(self.rows, -1, d)

    def _amounts(self, name: str, amounts: npt.ArrayLike, points: npt.ArrayLike) -> Array:
        """Numbers >= 0, one a point, as (E, k)."""
        try:
            array = np.asarray(amounts, np.float64)
        except (TypeError, ValueError):
            raise UserError(f"{name} must be an array of numbers, got {amounts!r}") from None
        if array.shape != np.shape(points)[:-1]:
            raise UserError(
                f"{name} must have shape {np.shape(points)[:-1]}, one a point, got {array.shape}"
            )
        fine = (array >= 0) & np.isfinite(array)
        if not fine.all():
            raise UserError(f"{name} must be finite and >= 0, got {array[~fine].flat[0]}")
        return array.reshape(self.rows, array.shape[-1])

    def _collect(self, points: Array, shares: Array) -> None:
        self._points = np.concatenate([self._points, points], axis=1)
        self._shares = np.concatenate([self._shares, shares], axis=1)

    def _exchanged(self, now: Array, count: Array) -> tuple[Array, Array]:
        """The points of `delay` steps ago (`NOTHING` at first), which those of now replace."""
        k = count.shape[1]
        if self._affected.shape[2] != k:
            if self._affected.shape[2] > 0:
                raise UserError(
                    f"advance must get the same number of points every time, got {k} after "
                    f"{self._affected.shape[2]}"
                )
            self._then = np.zeros((self.delay, *now.shape))
            self._affected = np.full((self.delay, *count.shape), NOTHING)
        then, affected = self._then[self._slot].copy(), self._affected[self._slot].copy()
        self._then[self._slot], self._affected[self._slot] = now, count
        self._slot = (self._slot + 1) % self.delay
        return then, affected

    def _outside(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values[0] if self.batch is None else values
