"""`GridField`: the exact field on a fine grid, for few dimensions; the reference of the others."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.scars.field import REACH, Array, ScarField, State
from rapo_core.checks import UserError, whole_number
from rapo_core.fields import step_fields
from rapo_core.params import FieldParams

LARGEST = 2**22
"""Largest number of knots of an episode: 64 MB of G and H."""


class GridField(ScarField):
    """G and H on the knots of a grid over the whole box, interpolated linearly between knots.

    On the knots the field is exact. There are `resolution^d` knots, so a grid serves up to three or
    four dimensions.

    >>> field = GridField([(0, 1), (0, 1)], width=0.1)
    >>> field.deposit([[0.3, 0.5]], [1.0])
    >>> field.step()
    >>> G, H = field.fields([[0.3, 0.5], [0.8, 0.5]])
    >>> G.round(2), H
    (array([0.5, 0. ]), array([0., 0.]))
    """

    def __init__(
        self,
        box: Any,
        params: FieldParams | None = None,
        *,
        resolution: int | None = None,
        **options: Any,
    ) -> None:
        """`resolution`: knots per dimension; by default five a width, and at least 64."""
        super().__init__(box, params, **options)
        wanted = max(64, math.ceil(5 / self.width) + 1) if resolution is None else resolution
        self.resolution = whole_number("resolution", wanted, 2)
        if self.knots > LARGEST:
            raise UserError(
                f"a grid of {self.resolution}^{self.box.dimensions} = {self.knots} knots is above "
                f"{LARGEST}; give a smaller `resolution`, a larger `width`, or use KernelField"
            )
        self._G = np.zeros((self.rows, self.knots))
        self._H = np.zeros((self.rows, self.knots))

    @property
    def knots(self) -> int:
        """Number of knots of one episode."""
        return int(self.resolution**self.box.dimensions)

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Number of knots, () or (batch,)."""
        return self._outside(np.full(self.rows, self.knots, np.int64))

    @property
    def numbers(self) -> int:
        """How many numbers the grid of one episode takes."""
        return 2 * self.knots

    def _step(self, points: Array, shares: Array) -> None:
        one, inflow = np.ones(1), np.zeros(self.knots)
        for e in range(self.rows):
            inflow[:] = 0
            # sums must not depend on the caller's order of points
            for i in np.lexsort((shares[e], *points[e].T[::-1])):
                if shares[e, i] > 0:
                    self._spread(points[e, i], shares[e, i], inflow)
            G, H = self._G[e : e + 1], self._H[e : e + 1]
            step_fields(G, H, one, inflow[None], *self.params.rates, G, H)

    def _spread(self, point: Array, share: float, inflow: Array) -> None:
        """Add a deposit to the knots within its reach."""
        last, reach = self.resolution - 1, REACH * self.width
        low = np.maximum(np.ceil((point - reach) * last), 0).astype(int)
        high = np.minimum(np.floor((point + reach) * last), last).astype(int)
        squared = np.zeros(())
        for j, at in enumerate(point):
            gaps = np.arange(low[j], high[j] + 1) / last - at
            squared = squared[..., None] + gaps**2
        weight = np.where(squared <= reach**2, np.exp(-0.5 * squared / self.width**2), 0)
        window = tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))
        shape = (self.resolution,) * self.box.dimensions
        inflow.reshape(shape)[window] += share * weight

    def _fields(self, points: Array) -> tuple[Array, Array]:
        last, d = self.resolution - 1, self.box.dimensions
        corner = np.minimum((points * last).astype(np.int64), last - 1)
        part = points * last - corner
        strides = self.resolution ** np.arange(d)[::-1]
        G, H = np.zeros(points.shape[:2]), np.zeros(points.shape[:2])
        rows = np.arange(self.rows)[:, None]
        for side in product((0, 1), repeat=d):
            weight = np.where(np.array(side) == 1, part, 1 - part).prod(axis=-1)
            knot = ((corner + np.array(side)) * strides).sum(axis=-1)
            G += weight * self._G[rows, knot]
            H += weight * self._H[rows, knot]
        return G, H

    def _state(self) -> State:
        return {"G": self._G, "H": self._H}

    def _take(self, state: State) -> None:
        for name, array in state.items():
            if not np.all(array >= 0):
                raise UserError(f"{name} must be finite and >= 0, got {array.min()}")
        self._G, self._H = state["G"], state["H"]

    def _forget(self, rows: npt.NDArray[np.intp]) -> None:
        self._G[rows] = 0
        self._H[rows] = 0
