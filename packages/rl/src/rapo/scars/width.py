"""The rule for a field's width: the spread of what one step can choose from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.scars.box import Box
from rapo_core.checks import UserError
from rapo_core.deformation import SUM_TOLERANCE


def width_from(candidates: npt.ArrayLike, box: Any, law: npt.ArrayLike | None = None) -> float:
    """The width that tells one step's candidates apart: their spread, as a share of the box.

    A wider field gives all candidates of a step the same psi, and a common psi changes no choice; a
    narrower one needs more harm and more centres to cover the same ground.

    Args:
        candidates: (..., K, d) points that K >= 2 candidates of each choice lead to.
        box: (d, 2), as for the field.
        law: (K,) or (..., K) probabilities of candidates; default all equal. A candidate that is
            hardly ever taken need not be told apart.

    Returns:
        Root mean square distance of candidates from the mean of their choice, in the box's sides.

    >>> width_from([[[4.0], [6.0]], [[7.0], [9.0]]], box=[(0, 10)])
    0.1
    """
    bounds = box if isinstance(box, Box) else Box(box)
    array = np.asarray(candidates, np.float64)
    d = bounds.dimensions
    if array.ndim < 2 or array.shape[-1] != d or array.shape[-2] < 2 or array.size == 0:
        raise UserError(
            f"candidates must have shape (..., K, {d}) with K >= 2 to choose from, got "
            f"{array.shape}"
        )
    points = bounds.unit(array, "candidates")
    weights = _checked_law(law, array.shape[:-1])[..., None]
    away = points - (weights * points).sum(axis=-2, keepdims=True)
    spread = float(np.sqrt((weights * away**2).sum(axis=(-2, -1)).mean()))
    if spread == 0:
        raise UserError("candidates must differ, got the same point for all of a choice")
    return spread


def _checked_law(
    law: npt.ArrayLike | None, shape: tuple[int, ...]
) -> npt.NDArray[np.floating[Any]]:
    """Probabilities of a shape (..., K), equal ones if none are given."""
    if law is None:
        return np.full(shape, 1 / shape[-1])
    array = np.asarray(law, np.float64)
    sums = array.sum(axis=-1)
    if array.shape[-1:] != shape[-1:] or not (
        np.all(array >= 0) and np.all(np.abs(sums - 1) <= SUM_TOLERANCE)
    ):
        raise UserError(
            f"law must hold {shape[-1]} probabilities that sum to 1, got {np.shape(law)} with sums "
            f"{np.unique(sums)}"
        )
    return np.broadcast_to(array, shape)
