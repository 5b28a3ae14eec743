"""`Box`: the declared range of every dimension, which maps its points to the unit cube."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError

Array = npt.NDArray[np.floating[Any]]


class Box:
    """Low and high per dimension. The width of a field is a share of these sides.

    >>> Box([(0, 10), (-1, 1)]).unit(np.array([[5.0, 1.0]]), "points")
    array([[0.5, 1. ]])

    Args:
        bounds: (d, 2), a row (low, high) per dimension; or anything with `low` and `high` of
            shape (d,), such as Gymnasium's `Box`.
    """

    def __init__(self, bounds: Any) -> None:
        if hasattr(bounds, "low") and hasattr(bounds, "high"):
            bounds = np.stack([np.asarray(bounds.low), np.asarray(bounds.high)], axis=-1)
        try:
            pairs = np.array(bounds, np.float64)
        except (TypeError, ValueError):
            raise UserError(
                f"box must hold a pair (low, high) per dimension, got {bounds!r}"
            ) from None
        if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
            raise UserError(
                f"box must have shape (d, 2), a pair (low, high) per dimension, got {pairs.shape}"
            )
        fine = np.isfinite(pairs).all(axis=1) & (pairs[:, 0] < pairs[:, 1])
        fine &= np.isfinite(pairs[:, 1] - pairs[:, 0])
        if not fine.all():
            j = int(np.flatnonzero(~fine)[0])
            raise UserError(
                f"box must have finite low < high in every dimension, got {pairs[j].tolist()} in "
                f"dimension {j}"
            )
        self.low, self.high = pairs[:, 0].copy(), pairs[:, 1].copy()

    @property
    def dimensions(self) -> int:
        """The number of dimensions, >= 1."""
        return len(self.low)

    def unit(self, points: Array, name: str) -> Array:
        """Points (..., d) as shares of the sides, in [0, 1]; a point outside is an error."""
        inside = (points >= self.low) & (points <= self.high)  # NaN is outside too
        if not inside.all():
            first = tuple(int(i) for i in np.argwhere(~inside)[0])
            point, j = points[first[:-1]], first[-1]
            raise UserError(
                f"{name} must lie in the box, got {point.tolist()} at {first[:-1]}: dimension {j} "
                f"has [{self.low[j]:g}, {self.high[j]:g}]; declare a larger box or clip such points"
            )
        return np.ascontiguousarray(np.clip((points - self.low) / (self.high - self.low), 0, 1))

    def __repr__(self) -> str:
        pairs = ", ".join(f"({a:g}, {b:g})" for a, b in zip(self.low, self.high, strict=True))
        return f"Box([{pairs}])"
