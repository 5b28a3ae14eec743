"""`BoundedField`: what fields with a limited number of centres share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.scars.field import ScarField, State
from rapo_core.checks import whole_number
from rapo_core.params import FieldParams

MOST_CENTRES = 2**20
"""Largest number of centres of an episode."""


def scar_cap(params: FieldParams) -> float:
    """Largest scar of a centre, `1.5 ln(1 / psi_min) / w_H`: 1.5 times what brings psi to psi_min.

    A deeper scar would not lower psi where it is, but would reach further in an interpolation.
    """
    return 1.5 * math.log(1 / params.psi_min) / params.w_H if params.w_H > 0 else math.inf


class BoundedField(ScarField):
    """G and H at centres that lie where harm fell, up to a fixed number in every episode.

    A point near a centre becomes no centre of its own. When all centres are in use the two nearest
    merge. From then on no point becomes a centre that is nearer to one than those two were.

    A subclass adds the positions of its centres to `_state` and `_take`.

    Args:
        box: see `ScarField`.
        params: constants of the fields.
        most: centres of an episode, at least 2.
        most_name: what the subclass calls `most`.
        apart: distance in widths within which a point becomes no centre of its own.
        options: of `ScarField`.
    """

    def __init__(
        self,
        box: Any,
        params: FieldParams | None,
        *,
        most: int,
        most_name: str,
        apart: float,
        **options: Any,
    ) -> None:
        super().__init__(box, params, **options)
        count = whole_number(most_name, most, 2, MOST_CENTRES)
        self._G, self._H = np.zeros((self.rows, count)), np.zeros((self.rows, count))
        self._count = np.zeros(self.rows, np.int64)
        self._merges = np.zeros(self.rows, np.int64)
        self._apart = (apart * self.width) ** 2
        self._spacing = np.full(self.rows, self._apart)

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """Centres in use, () or (batch,)."""
        return self._outside(self._count.copy())

    @property
    def merges(self) -> npt.NDArray[np.int64]:
        """How often two centres have merged, () or (batch,)."""
        return self._outside(self._merges.copy())

    def _state(self) -> State:
        spread = {"count": self._count, "spacing": self._spacing, "merges": self._merges}
        return {"G": self._G, "H": self._H, **spread}

    def _take(self, state: State) -> None:
        self._G, self._H, self._count = state["G"], state["H"], state["count"]
        self._spacing, self._merges = state["spacing"], state["merges"]

    def _forget(self, rows: npt.NDArray[np.intp]) -> None:
        for array in self._state().values():
            array[rows] = 0
        self._spacing[rows] = self._apart
