"""The lab's map of the warehouse: the floor cell by cell, and the robots on it."""

from __future__ import annotations

import numpy as np

from rapo.platforms.candidates import Array, State
from rapo.platforms.map import PlatformMap, coordinates
from rapo.platforms.warehouse.orders import Orders


def warehouse_map(orders: Orders) -> PlatformMap:
    """The zones of the floor; shelves are cells that are not free."""
    rows, columns = orders.floor.free.shape

    def walkers(state: State) -> Array:
        row, route, step = (state[name][0] for name in ("row", "route", "at"))
        y, x = np.divmod(orders.cells[row, route, step], columns)
        return coordinates(np.stack([(x + 0.5) / columns, (y + 0.5) / rows], axis=1), step >= 0)

    return PlatformMap(
        kind="cells",
        aspect=columns / rows,
        harmful=orders.hazard,
        arrays={
            "zone": orders.zone_of.astype(np.int32),
            "free": orders.floor.free.ravel().astype(np.uint8),
        },
        about={"rows": rows, "columns": columns},
        walkers=walkers,
    )
