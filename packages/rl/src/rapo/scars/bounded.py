"""`BoundedField`: what fields with a limited number of places share."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rapo.scars.field import ScarField, State
from rapo_core.checks import whole_number
from rapo_core.params import FieldParams

MOST_PLACES = 2**20
"""Places an episode may have at most."""


def scar_cap(params: FieldParams) -> float:
    """Largest scar of a place, `1.5 ln(1 / psi_min) / w_H`: the floor of psi, and half as much.

    Deeper scars would not lower psi where they are, but would reach further in an interpolation.
    """
    return 1.5 * math.log(1 / params.psi_min) / params.w_H if params.w_H > 0 else math.inf


class BoundedField(ScarField):
    """G and H of places that lie where harm fell, as many an episode as there is room for.

    A point near enough to a place is no place of its own. When all are in use the two nearest
    become one, and from then on that nearness is at least their distance.

    A subclass asks for `_room` in its constructor, and adds to `_state` and `_take` where its
    places are.
    """

    def _room(self, name: str, places: int, apart: float) -> int:
        """Room for so many places an episode; their number, checked.

        Args:
            name: what the subclass calls them.
            places: how many.
            apart: widths between two of them, at least.
        """
        count = whole_number(name, places, 2, MOST_PLACES)
        self._G, self._H = np.zeros((self.rows, count)), np.zeros((self.rows, count))
        self._count = np.zeros(self.rows, np.int64)
        self._merges = np.zeros(self.rows, np.int64)
        self._apart = (apart * self.width) ** 2
        self._spacing = np.full(self.rows, self._apart)
        return count

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Places in use, () or (batch,)."""
        return self._outside(self._count.copy())

    @property
    def merges(self) -> npt.NDArray[np.int64]:
        """How often two places had to become one, () or (batch,)."""
        return self._outside(self._merges.copy())

    def _state(self) -> State:
        return {
            "G": self._G,
            "H": self._H,
            "count": self._count,
            "spacing": self._spacing,
            "merges": self._merges,
        }

    def _take(self, state: State) -> None:
        self._G, self._H, self._count = state["G"], state["H"], state["count"]
        self._spacing, self._merges = state["spacing"], state["merges"]

    def _forget(self, rows: npt.NDArray[np.intp]) -> None:
        for array in self._state().values():
            array[rows] = 0
        self._spacing[rows] = self._apart
