"""What stands still in the picture of a source: a graph's nodes and edges, or a platform's map."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.envs.render import strongest_edges
from rapo.show.lab.sources import GraphSource, Source

Arrays = dict[str, npt.NDArray[Any]]


def scene_of(source: Source) -> tuple[dict[str, Any], Arrays]:
    """Head and arrays of the picture, see `PlatformMap` for those of a platform."""
    if isinstance(source, GraphSource):
        g = source.graph
        head = {"kind": "graph", "n": g.n, "aspect": 1.0, "ids": g.meta.get("ids")}
        return head, {
            "positions": g.positions.astype(np.float32),
            "sensitive": g.sensitive.astype(np.uint8),
            "edges": strongest_edges(g).astype(np.int32),
            "support": g.support.astype(np.int32),
        }
    drawn = source.engine.map()
    head = {"kind": drawn.kind, "aspect": drawn.aspect, **drawn.about}
    return head, {**drawn.arrays, "harmful": drawn.harmful.astype(np.uint8)}
