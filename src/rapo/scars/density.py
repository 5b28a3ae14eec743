"""`DensityField`: scars on a streaming mixture of a few components."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.params import FieldParams
from rapo.core.validate import whole_number
from rapo.scars.field import Array, ScarField, State
from rapo.scars.kernel import scar_cap
from rapo.scars.mixture import JOINED, absorb, answer


class DensityField(ScarField):
    """A coarse field for little time and memory, `components x (d + 4)` numbers.

    Harm joins the nearest component within a width, which moves and widens with it, or begins a new
    one; when full, the nearest two unite. It knows where harm lies, not where none does: it
    ignores visits, and its borders are soft.

    >>> field = DensityField([(0, 1), (0, 1)], width=0.1)
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
        components: int = 32,
        batch: int | None = None,
        delay: int = 0,
    ) -> None:
        super().__init__(box, params, width=width, batch=batch, delay=delay)
        self.components = whole_number("components", components, 2, 2**20)
        places = (self.rows, self.components)
        self._M = np.zeros((self.rows, self.box.dimensions, self.components))
        self._V, self._mass, self._G, self._H = (np.zeros(places) for _ in range(4))
        self._count = np.zeros(self.rows, np.int64)
        self._merges = np.zeros(self.rows, np.int64)
        self._spacing = np.full(self.rows, (JOINED * self.width) ** 2)

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Components in use, () or (batch,)."""
        return self._outside(self._count.copy())

    @property
    def merges(self) -> npt.NDArray[np.int64]:
        """How often two components had to become one, () or (batch,)."""
        return self._outside(self._merges.copy())

    @property
    def numbers(self) -> int:
        """Numbers that one episode's components take."""
        return self.components * (self.box.dimensions + 4)

    def _step(self, points: Array, shares: Array) -> None:
        p = self.params
        law = (1 - p.lam, p.alpha, p.delta, p.eta, p.tau)
        absorb(
            self._M,
            self._V,
            self._mass,
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

    def _fields(self, points: Array) -> tuple[Array, Array]:
        G, H = np.empty(points.shape[:2]), np.empty(points.shape[:2])
        answer(self._M, self._V, self._G, self._H, self._count, self.width, points, G, H)
        return G, H

    def _state(self) -> State:
        return {
            "means": self._M,
            "spreads": self._V,
            "mass": self._mass,
            "G": self._G,
            "H": self._H,
            "count": self._count,
            "spacing": self._spacing,
            "merges": self._merges,
        }

    def _take(self, state: State) -> None:
        for name, most in (("count", self.components), ("H", scar_cap(self.params))):
            if not np.all(state[name] <= most):
                raise ValueError(f"{name} must be at most {most}, got {state[name].max()}")
        for name, array in state.items():
            if not np.all(array >= 0):
                raise ValueError(f"{name} must be finite and >= 0, got {array.min()}")
        self._M, self._V, self._mass = state["means"], state["spreads"], state["mass"]
        self._G, self._H, self._count = state["G"], state["H"], state["count"]
        self._spacing, self._merges = state["spacing"], state["merges"]

    def _forget(self, rows: npt.NDArray[np.intp]) -> None:
        for array in (self._M, self._V, self._mass, self._G, self._H, self._count, self._merges):
            array[rows] = 0
        self._spacing[rows] = (JOINED * self.width) ** 2
