"""The lab's map of routing: routers where they stand, links as lines, as thick as they are full."""

from __future__ import annotations

import numpy as np

from rapo.platforms.candidates import Array, State
from rapo.platforms.map import ABSENT, PlatformMap, extent
from rapo.platforms.routing.demand import Demand


def routing_map(demand: Demand) -> PlatformMap:
    """A line for each link and a dot for each router, north up."""
    topology = demand.topology
    flipped = topology.place * [1, -1]
    # A degree of longitude is shorter than one of latitude.
    projected = flipped * [np.cos(np.deg2rad(np.abs(flipped[:, 1]).mean())), 1]
    low, size = extent(projected)
    dots = (projected - low) / size

    def load(state: State) -> Array:
        return np.asarray(np.minimum(state["load"][0], ABSENT), np.uint16)

    return PlatformMap(
        kind="lines",
        aspect=float(size[0] / size[1]),
        harmful=demand.grey,
        arrays={
            "shapes": dots[topology.ends].reshape(-1, 4).astype(np.float32),
            "dots": dots.astype(np.float32),
        },
        load=load,
    )
