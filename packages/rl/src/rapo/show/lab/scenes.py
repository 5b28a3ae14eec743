"""What is drawn of a place: a graph with its nodes and edges, or the regions of a platform.

A platform is drawn as its regions on its own map, with walkers as dots: claims of the feed in their
clusters, links of the network on its map, zones of the floor, cells of the phase plane.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.platforms.feed import Feed
from rapo.platforms.feed.picture import places
from rapo.platforms.routing import Routing
from rapo.platforms.twin import Twin
from rapo.platforms.warehouse import Warehouse
from rapo.show.lab.sources import GraphSource, PlatformSource, Source

Array = npt.NDArray[Any]
EDGES = 20_000
"""Edges that are drawn, the strongest first: more would be a grey square."""
AWAY = 65535
"""Place of a walker that is not on the map; others are whole numbers below, over each side."""


def scene_of(source: Source) -> tuple[dict[str, Any], dict[str, Array]]:
    """Head and arrays of the still part of the picture."""
    if isinstance(source, GraphSource):
        return _graph(source)
    return _platform(source.engine)


def _graph(source: GraphSource) -> tuple[dict[str, Any], dict[str, Array]]:
    g = source.graph
    strongest = np.argsort(-g.prob, kind="stable")[:EDGES]
    edges = np.stack([g.sources[strongest], g.indices[strongest]], axis=1).astype(np.int32)
    head = {"kind": "graph", "n": g.n, "aspect": 1.0, "ids": g.meta.get("ids")}
    return head, {
        "positions": g.positions.astype(np.float32),
        "sensitive": g.sensitive.astype(np.uint8),
        "edges": edges,
        "support": g.support.astype(np.int32),
    }


def _platform(engine: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    if isinstance(engine, Feed):
        at, centre, radius = places(engine.claims, engine.setting.regions)
        low, size = _frame(np.concatenate([centre - radius[:, None], centre + radius[:, None]]))
        discs = np.column_stack([_onto(centre, low, size), radius / size.max()])
        harmful = np.bincount(engine.region[engine.claims.false], minlength=len(radius)) > 0
        dots = _onto(at, low, size).astype(np.float32)
        arrays = {"shapes": discs.astype(np.float32), "harmful": _flags(harmful), "dots": dots}
        return _head("discs", size), arrays
    if isinstance(engine, Routing):
        place = engine.demand.topology.place * [1, -1]
        stretched = place * [np.cos(np.deg2rad(np.abs(place[:, 1]).mean())), 1]
        low, size = _frame(stretched)
        points = _onto(stretched, low, size)
        lines = points[engine.demand.topology.ends].reshape(-1, 4)
        return _head("lines", size), {"shapes": lines.astype(np.float32),
                                      "harmful": _flags(engine.demand.grey),
                                      "dots": points.astype(np.float32)}  # fmt: skip
    if isinstance(engine, Warehouse):
        o = engine.orders
        rows, columns = o.floor.free.shape
        head = {**_head("cells", np.array([columns, rows])), "rows": rows, "columns": columns}
        return head, {"zone": o.zone_of.astype(np.int32), "harmful": _flags(o.hazard),
                      "free": _flags(o.floor.free.ravel())}  # fmt: skip
    assert isinstance(engine, Twin)
    columns, rows = (int(k) for k in engine.plane.shape)
    # Cells are numbered by mol/L first; the map has mol/L to the right and K upwards.
    zone = np.arange(columns * rows).reshape(columns, rows).T[::-1].ravel()
    (low_c, high_c), (low_T, high_T) = engine.plane.window
    head = {
        **_head("cells", np.array([4, 3])), "rows": rows, "columns": columns,
        "x": f"A left, {low_c:g} to {high_c:g} mol/L", "y": f"{low_T:g} to {high_T:g} K",
        "line": float(1 - (engine.setting.damage - low_T) / (high_T - low_T)),
    }  # fmt: skip
    return head, {"zone": zone.astype(np.int32), "harmful": np.zeros(columns * rows, np.uint8),
                  "free": np.ones(columns * rows, np.uint8)}  # fmt: skip


class Walkers:
    """Where the walkers of a platform are on its map, and how full its regions are.

    Args:
        source: the platform.
    """

    def __init__(self, source: PlatformSource) -> None:
        engine = source.engine
        if isinstance(engine, Feed):
            at, centre, radius = places(engine.claims, engine.setting.regions)
            edges = np.concatenate([centre - radius[:, None], centre + radius[:, None]])
            self._places = _whole(_onto(at, *_frame(edges)))

    def at(self, engine: Any) -> Array:
        """(m, 2) uint16 of the only episode; a walker that is away is `AWAY` twice."""
        state = engine.state
        if isinstance(engine, Feed):
            item = state["item"][0]
            spot = self._places[item]
            return np.where(item[:, None] >= 0, spot, AWAY).astype(np.uint16)
        if isinstance(engine, Warehouse):
            row, route, step = (state[name][0] for name in ("row", "route", "at"))
            cell = engine.orders.cells[row, route, step]
            rows, columns = engine.orders.floor.free.shape
            y, x = np.divmod(cell, columns)
            spot = _whole(np.stack([(x + 0.5) / columns, (y + 0.5) / rows], axis=1))
            return np.where((step >= 0)[:, None], spot, AWAY).astype(np.uint16)
        if isinstance(engine, Twin):
            low, high = engine.plane.window.T
            here = np.stack([state["c"][0], state["T"][0]], axis=1)
            x, y = ((here - low) / (high - low)).T
            return _whole(np.stack([x, 1 - y], axis=1))
        return np.full((0, 2), AWAY, np.uint16)

    def load(self, engine: Any) -> Array:
        """(R,) uint16 flows on links; nothing elsewhere, where dots tell."""
        if isinstance(engine, Routing):
            return np.asarray(np.minimum(engine.state["load"][0], AWAY), np.uint16)
        return np.zeros(0, np.uint16)


def _head(kind: str, size: Array) -> dict[str, Any]:
    return {"kind": kind, "aspect": float(size[0] / size[1])}


def _frame(points: Array) -> tuple[Array, Array]:
    """Lowest corner and size of what holds all points, with a little room around."""
    low, high = points.min(axis=0), points.max(axis=0)
    room = 0.03 * (high - low)
    return low - room, high - low + 2 * room


def _onto(points: Array, low: Array, size: Array) -> Array:
    """Points as shares of the sides of the map."""
    return np.asarray((points - low) / size)


def _whole(shares: Array) -> Array:
    return np.asarray(np.rint(np.clip(shares, 0, 1) * (AWAY - 1)), np.uint16)


def _flags(values: Array) -> Array:
    return np.asarray(values).astype(np.uint8)
