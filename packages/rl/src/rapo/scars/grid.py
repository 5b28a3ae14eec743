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
"""Knots an episode may have: 64 MB of G and H."""


class GridField(ScarField):
    """G and H on the knots of a grid over the whole box, linear in between.

    On its knots it is the exact field. It has `resolution^d` of them, so it serves up to three or
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
        width: float = 0.05,
        resolution: int | None = None,
        batch: int | None = None,
        delay: int = 0,
    ) -> None:
        """`resolution`: knots per dimension; by default five a width, and 64 at least."""
        super().__init__(box, params, width=width, batch=batch, delay=delay)
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
        """Knots of one episode's grid."""
        return int(self.resolution**self.box.dimensions)

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Knots, () or (batch,)."""
        return self._outside(np.full(self.rows, self.knots, np.int64))

    @property
    def numbers(self) -> int:
        """Numbers that one episode's grid takes."""
        return 2 * self.knots

    def _step(self, points: Array, shares: Array) -> None:
        p, ones = self.params, np.ones(1)
        inflow = np.zeros(self.knots)
        for e in range(self.rows):
            inflow[:] = 0
            keys = (shares[e], *points[e].T[::-1])
            for i in np.lexsort(keys):  # an order of its own: sums must not depend on the caller's
                if shares[e, i] > 0:
                    self._spread(points[e, i], shares[e, i], inflow)
            step_fields(
                self._G[e : e + 1],
                self._H[e : e + 1],
                ones,
                inflow[None],
                1 - p.lam,
                p.alpha,
                p.delta,
                p.eta,
                p.tau,
                self._G[e : e + 1],
                self._H[e : e + 1],
            )

    def _spread(self, point: Array, share: float, inflow: Array) -> None:
        """Add a deposit to the knots within reach of it."""
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
