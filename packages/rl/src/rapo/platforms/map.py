"""`PlatformMap`: where regions and walkers of a platform are, for the page of `rapo lab`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rapo.platforms.candidates import Array, State

ABSENT = 65535
"""Both coordinates of a walker that is not on the map; all others are below."""
MARGIN = 0.03
"""Free space around a map, as a share of its extent."""


def no_walkers(state: State) -> Array:
    """(0, 2): the map shows no walkers."""
    return np.zeros((0, 2), np.uint16)


def no_load(state: State) -> Array:
    """(0,): the map does not show how full its regions are."""
    return np.zeros(0, np.uint16)


@dataclass(frozen=True)
class PlatformMap:
    """A map with R regions. Positions are shares of its width and height from the upper left."""

    kind: str
    """Shape of the regions: `discs`, `lines`, or `cells` of a grid."""
    aspect: float
    """Width over height."""
    harmful: Array
    """(R,) whether harm can be done in a region."""
    arrays: Mapping[str, Array]
    """`shapes`, (R, 3) of discs (centre and radius) or (R, 4) of lines (both ends), and `dots`
    (n, 2); or of a grid, cell by cell from the upper left, `zone` (its region or -1) and `free`."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Of a grid: `rows` and `columns`; captions `x` and `y`; `line`, the height of a limit."""
    walkers: Callable[[State], Array] = no_walkers
    """(m, 2) uint16, see `coordinates`, of the walkers in the only episode of a state."""
    load: Callable[[State], Array] = no_load
    """(R,) uint16, how full each region is in the only episode of a state."""


def coordinates(shares: Array, present: Array | bool = True) -> Array:
    """(m, 2) uint16 from positions (m, 2) as shares; `ABSENT` where `present` (m,) is False."""
    whole = np.rint(np.clip(shares, 0, 1) * (ABSENT - 1))
    return np.where(np.reshape(present, (-1, 1)), whole, ABSENT).astype(np.uint16)


def extent(points: Array) -> tuple[Array, Array]:
    """Lowest corner and size, (2,) each, of a box that holds points (n, 2) and a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    margin = MARGIN * (high - low)
    return low - margin, high - low + 2 * margin
