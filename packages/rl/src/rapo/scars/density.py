"""`DensityField`: scars on a streaming mixture of a few components."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.scars.bounded import BoundedField, scar_cap
from rapo.scars.field import Array, State
from rapo.scars.mixture import JOINED, absorb, query_mixture
from rapo_core.checks import UserError
from rapo_core.params import FieldParams


class DensityField(BoundedField):
    """A coarse field for little time and memory: `components x (d + 4)` numbers.

    Harm joins the nearest component within a width, which moves and widens with the harm, or begins
    a new component. When all are in use the nearest two unite. The field knows where harm lies, not
    where none does: it ignores visits, and its borders are soft.

    >>> field = DensityField([(0, 1), (0, 1)], width=0.1)
    >>> for _ in range(20):
    ...     field.deposit([[0.28, 0.5], [0.32, 0.5]], [0.5, 0.5])
    ...     field.step()
    >>> int(field.size), field.conductance([[0.3, 0.5], [0.8, 0.5]]).round(2)
    (1, array([0.1, 1. ]))
    """

    def __init__(
        self, box: Any, params: FieldParams | None = None, *, components: int = 32, **options: Any
    ) -> None:
        super().__init__(
            box, params, most=components, most_name="components", apart=JOINED, **options
        )
        self.components = self._G.shape[1]
        self._M = np.zeros((self.rows, self.box.dimensions, self.components))
        self._V, self._mass = np.zeros_like(self._G), np.zeros_like(self._G)

    @property
    def numbers(self) -> int:
        """How many numbers the components of one episode take."""
        return self.components * (self.box.dimensions + 4)

    def _step(self, points: Array, shares: Array) -> None:
        absorb(
            self._M, self._V, self._mass, self._G, self._H, self._count, self._spacing,
            self._merges, points, shares, self.width, scar_cap(self.params), self.params.rates,
        )  # fmt: skip

    def _fields(self, points: Array) -> tuple[Array, Array]:
        G, H = np.empty(points.shape[:2]), np.empty(points.shape[:2])
        query_mixture(self._M, self._V, self._G, self._H, self._count, self.width, points, G, H)
        return G, H

    def _state(self) -> State:
        return {"means": self._M, "spreads": self._V, "mass": self._mass, **super()._state()}

    def _take(self, state: State) -> None:
        for name, most in (("count", self.components), ("H", scar_cap(self.params))):
            if not np.all(state[name] <= most):
                raise UserError(f"{name} must be at most {most}, got {state[name].max()}")
        for name, array in state.items():
            if not np.all(array >= 0):
                raise UserError(f"{name} must be finite and >= 0, got {array.min()}")
        self._M, self._V, self._mass = state["means"], state["spreads"], state["mass"]
        super()._take(state)
