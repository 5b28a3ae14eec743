"""The phase plane: its box, its cells, and points outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.platforms.twin.reactor import Array
from rapo.platforms.twin.setting import Setting
from rapo_core.checks import UserError
from rapo_core.jit import lean_kernel


@lean_kernel
def cells_into(points: Any, box: Any, window: Any, cells: Any, out: Any) -> int:
    """Cells (n,) of points (n, 2); the first point outside the box, or -1.

    box, window: (2, 2), low and high of mol/L and K; cells: (2,). The window is divided evenly; a
    point of the box beyond the window belongs to the nearest cell at the window's edge.
    """
    for i in range(points.shape[0]):
        cell = 0
        for j in range(2):
            at = points[i, j]
            if not box[j, 0] <= at <= box[j, 1]:
                return i
            share = (at - window[j, 0]) / (window[j, 1] - window[j, 0])
            cell = cell * cells[j] + min(max(int(np.floor(share * cells[j])), 0), cells[j] - 1)
        out[i] = cell
    return -1


class Plane:
    """Cells of the plane by number, mol/L slowest.

    Args:
        setting: box, window and cells.
    """

    def __init__(self, setting: Setting) -> None:
        self.box, self.window = np.array(setting.box), np.array(setting.window)
        self.shape = np.array(setting.cells)

    @property
    def count(self) -> int:
        """Cells of the plane."""
        return int(self.shape.prod())

    def cells(self, points: Array) -> Array:
        """(...) int32 cells of points (..., 2) in mol/L and K; one outside the box is an error."""
        flat = np.ascontiguousarray(points, np.float64).reshape(-1, 2)
        out = np.empty(len(flat), np.int32)
        wrong = cells_into(flat, self.box, self.window, self.shape, out)
        if wrong >= 0:
            (c, T), (low, high) = flat[wrong], self.box.T
            raise UserError(
                f"a unit would be at {c:.4g} mol/L and {T:.4g} K, outside the declared box of "
                f"{low[0]:g}..{high[0]:g} mol/L and {low[1]:g}..{high[1]:g} K; widen `box`, or "
                "weaken the disturbance"
            )
        return out.reshape(np.shape(points)[:-1])
