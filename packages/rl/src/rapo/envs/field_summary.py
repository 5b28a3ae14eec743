"""Ten numbers of the fields: what a policy can see of a memory with any number of regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.deformation import conductance
from rapo_core.params import FieldParams

SUMMARY = 10
"""Numbers of `field_summary`."""
LARGEST = 5
"""Regions whose mean stands for the head of a field."""
TOUCHED = 0.01
"""From which on a region counts as touched."""


def field_summary(
    G: npt.NDArray[Any], H: npt.NDArray[Any], params: FieldParams
) -> npt.NDArray[np.float32]:
    """(E, 10), all >= 0, of trace and scar (E, R).

    Of G, then of H: ln(1 + total), ln(1 + largest), ln(1 + mean of the five largest), share of the
    regions that are touched; then mean and least psi. Logarithms: scars grow without end.

    >>> G, H = np.array([[0.0, 1.0]]), np.array([[0.0, 0.0]])
    >>> field_summary(G, H, FieldParams()).round(2).tolist()[0][:4]
    [0.6899999976158142, 0.6899999976158142, 0.4099999964237213, 0.5]
    """
    parts = []
    for field in (np.asarray(G, np.float64), np.asarray(H, np.float64)):
        head = np.sort(field, axis=1)[:, -LARGEST:]
        sizes = np.stack([field.sum(axis=1), head[:, -1], head.mean(axis=1)], axis=1)
        parts += [np.log1p(sizes), (field > TOUCHED).mean(axis=1)[:, None]]
    psi = conductance(G, H, params)
    parts.append(np.stack([psi.mean(axis=1), psi.min(axis=1)], axis=1))
    return np.concatenate(parts, axis=1).astype(np.float32)
