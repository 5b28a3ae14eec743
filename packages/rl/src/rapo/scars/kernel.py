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
    """A field holds as many places as it may, so its nearest two merge."""


class KernelField(BoundedField):
    """The default field: a sparse dictionary of centres, `centres x (d + 2)` numbers.

    A point more than half a width from every centre becomes one, so they lie where harm fell and,
    by `visit`, around it. A centre begins with what the field says where it is (0 for a visit), and
    gets from every deposit what its place gets. A query is a mean over centres under a kernel a
    third as wide, and 0 a width away from all.
    When full, the two nearest merge and the larger scar stays; the field counts that and warns.

    >>> field = KernelField([(0, 1), (0, 1)], width=0.1)
    >>> for _ in range(20):
    ...     field.deposit([[0.3, 0.5]], [1.0])
    ...     field.step()
    >>> field.conductance([[0.3, 0.5], [0.8, 0.5]]).round(2)
    array([0.1, 1. ])
    """

    def __init__(
        self,
        box: Any,
        params: FieldParams | None = None,
        *,
        width: float = 0.05,
        centres: int = 128,
        batch: int | None = None,
        delay: int = 0,
    ) -> None:
        super().__init__(box, params, width=width, batch=batch, delay=delay)
        self.centres = self._room("centres", centres, NOVELTY)
        self._C = np.zeros((self.rows, self.box.dimensions, self.centres))
        self._warned = False

    @property
    def numbers(self) -> int:
        """Numbers that one episode's centres and their fields take."""
        return self.centres * (self.box.dimensions + 2)

    def places(self, episode: int = 0) -> tuple[Array, Array, Array]:
        """Centres (n, d) in the box's own units, with their G and H (n,)."""
        n = self._count[episode]
        sides = self.box.high - self.box.low
        return (
            self.box.low + sides * self._C[episode, :, :n].T,
            self._G[episode, :n].copy(),
            self._H[episode, :n].copy(),
        )

    def _step(self, points: Array, shares: Array) -> None:
        p = self.params
        law = (1 - p.lam, p.alpha, p.delta, p.eta, p.tau, p.w_G, p.w_H, p.psi_min)
        learn(
            self._C,
            self._G,
            self._H,
            self._count,
            self._spacing,
            self._merges,
            points,
            shares,
            self.width,
            scar_cap(p),
            law,
        )
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
        """How near the centres that know of harm are, in [0, 1], (E, q); 0 away from them."""
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
