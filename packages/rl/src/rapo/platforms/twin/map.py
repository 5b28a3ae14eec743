"""The lab's map of the twin: cells of the phase plane, and a dot for each reactor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rapo.platforms.candidates import Array, State
from rapo.platforms.map import PlatformMap, coordinates

if TYPE_CHECKING:
    from rapo.platforms.twin.platform import Twin


def twin_map(twin: Twin) -> PlatformMap:
    """Concentration to the right and temperature upwards; damage begins at a dashed line."""
    columns, rows = (int(count) for count in twin.plane.shape)
    (low_c, high_c), (low_T, high_T) = window = twin.plane.window

    def walkers(state: State) -> Array:
        here = np.stack([state["c"][0], state["T"][0]], axis=1)
        low, high = window.T
        right, up = ((here - low) / (high - low)).T
        return coordinates(np.stack([right, 1 - up], axis=1))

    # The plane numbers its cells by concentration first; a map goes row by row from the top.
    zone = np.arange(columns * rows).reshape(columns, rows).T[::-1].ravel()
    return PlatformMap(
        kind="cells",
        aspect=4 / 3,
        harmful=np.zeros(columns * rows, np.bool_),
        arrays={"zone": zone.astype(np.int32), "free": np.ones(columns * rows, np.uint8)},
        about={
            "rows": rows, "columns": columns,
            "x": f"A left, {low_c:g} to {high_c:g} mol/L", "y": f"{low_T:g} to {high_T:g} K",
            "line": float(1 - (twin.setting.damage - low_T) / (high_T - low_T)),
        },
        walkers=walkers,
    )  # fmt: skip
