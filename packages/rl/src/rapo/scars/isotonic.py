"""Isotonic regression by pooling adjacent violators: the best rising step function."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]


def isotonic(x: Array, y: Array) -> tuple[Array, Array]:
    """Knots (x sorted, fitted y) of the non-decreasing least-squares fit of y on x, (n,) each.

    Points with the same x share one fitted value.

    >>> isotonic(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0, 3.0]))[1]
    array([0. , 1.5, 1.5, 3. ])
    """
    places, group = np.unique(x, return_inverse=True)
    weight = np.bincount(group).astype(np.float64)
    value = np.bincount(group, y) / weight
    means: list[float] = []
    weights: list[float] = []
    lengths: list[int] = []
    for mean, heavy in zip(value, weight, strict=True):
        means.append(float(mean))
        weights.append(float(heavy))
        lengths.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            last, total = means.pop(), weights.pop()
            both = weights[-1] + total
            means[-1] = (means[-1] * weights[-1] + last * total) / both
            weights[-1] = both
            lengths[-2:] = [lengths[-2] + lengths[-1]]
    fitted = np.repeat(means, lengths)
    return np.sort(x), fitted[np.searchsorted(places, np.sort(x))]
