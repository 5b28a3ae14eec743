"""`KernelField`: scars on a sparse dictionary of centres, in any number of dimensions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rapo.scars.bounded import BoundedField, scar_cap
from rapo.scars.dictionary import NOVELTY, learn, query
from rapo.scars.field import Array, State
from rapo_core.checks import UserError
from rapo_core.params import FieldParams


class FullWarning(UserWarning):
    """All centres of a field are in use, so its nearest two merge."""


class KernelField(BoundedField):
    """The default field: a sparse dictionary of centres, `centres x (d + 2)` numbers.

    A point more than half a width from every centre becomes a centre, so centres lie where harm
    fell and, by `visit`, around it. A new centre begins with the fields of its position, or with 0
    after a visit. Every deposit brings a centre what it brings to the centre's position. A query is
    a mean over centres under a kernel a third as wide, and 0 a width away from all centres.
    When all are in use the two nearest merge and keep the larger scar; the field counts merges and
    warns of the first.

    >>> field = KernelField([(0, 1), (0, 1)], width=0.1)
    >>> for _ in range(20):
    ...     field.deposit([[0.3, 0.5]], [1.0])
    ...     field.step()
    >>> field.conductance([[0.3, 0.5], [0.8, 0.5]]).round(2)
    array([0.1, 1. ])
    """

    def __init__(
        self, box: Any, params: FieldParams | None = None, *, centres: int = 128, **options: Any
    ) -> None:
        super().__init__(box, params, most=centres, most_name="centres", apart=NOVELTY, **options)
        self.centres = self._G.shape[1]
        self._C = np.zeros((self.rows, self.box.dimensions, self.centres))
        self._warned = False

    @property
    def numbers(self) -> int:
        """How many numbers the centres of one episode take."""
        return self.centres * (self.box.dimensions + 2)

    def places(self, episode: int = 0) -> tuple[Array, Array, Array]:
        """Centres (n, d) of an episode in the box's own units, with their G and H (n,)."""
        n = self._count[episode]
        at = self.box.low + (self.box.high - self.box.low) * self._C[episode, :, :n].T
        return at, self._G[episode, :n].copy(), self._H[episode, :n].copy()

    def _step(self, points: Array, shares: Array) -> None:
        p = self.params
        law = (*p.rates, p.w_G, p.w_H, p.psi_min)
        learn(
            self._C, self._G, self._H, self._count, self._spacing, self._merges, points, shares,
            self.width, scar_cap(p), law,
        )  # fmt: skip
        if not self._warned and self._merges.any():
            self._warned = True
            warnings.warn(
                f"all {self.centres} centres are in use: from now on the two nearest merge, and "
                "scars lose detail; more `centres` or a larger `width` would keep it",
                FullWarning,
                stacklevel=3,
            )

    def _fields(self, points: Array) -> tuple[Array, Array]:
        G, H = np.empty(points.shape[:2]), np.empty(points.shape[:2])
        query(self._C, self._G, self._H, self._count, self.width, points, G, H)
        return G, H

    def _coverage(self, points: Array) -> Array:
        """(E, q) in [0, 1]: how near points are to harmed centres, 0 away from all of them."""
        harmed = ((self._G > 0) | (self._H > 0)).astype(np.float64)
        near, ignored = np.empty(points.shape[:2]), np.empty(points.shape[:2])
        query(self._C, harmed, harmed, self._count, self.width, points, near, ignored)
        return near

    def _state(self) -> State:
        return {"centres": self._C, **super()._state()}

    def _take(self, state: State) -> None:
        for name, most in (("count", self.centres), ("G", np.inf), ("H", scar_cap(self.params))):
            if not np.all((state[name] >= 0) & (state[name] <= most)):
                bad = state[name].min() if np.any(state[name] < 0) else state[name].max()
                raise UserError(f"{name} must be in [0, {most}], got {bad}")
        self._C = state["centres"]
        super()._take(state)
