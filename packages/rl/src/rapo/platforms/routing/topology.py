"""Networks of operators: the Internet Topology Zoo, or a generated stand-in of the same shape."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from rapo.platforms.data import STAND_IN, data_path
from rapo.platforms.routing.entry import ROUTING
from rapo_core.checks import UserError

Array = npt.NDArray[Any]
STAND_INS = 24
KM_PER_DEGREE = 111.0


class Topology(NamedTuple):
    """Nodes on a map and the links between them."""

    name: str
    place: Array
    """(n, 2) degrees of longitude and latitude."""
    ends: Array
    """(R, 2) nodes of every link, the smaller first; no two links are equal."""
    km: Array
    """(R,) length of every link."""
    real: bool


def topologies(source: str, nodes: tuple[int, int], links_per_node: float) -> tuple[Topology, ...]:
    """Networks of a size whose flows have a choice; of an operator's networks the latest.

    Args:
        source: `real` or `stand-in`.
        nodes: least and largest number of nodes.
        links_per_node: least number of links per node.

    Raises:
        UserError: the data are missing or damaged, or no network fits.
    """
    networks = _stand_ins() if source == STAND_IN else _zoo(str(data_path(ROUTING.files[0])))
    low, high = nodes
    fitting = tuple(
        t for t in networks
        if low <= len(t.place) <= high and len(t.ends) >= links_per_node * len(t.place)
    )  # fmt: skip
    if not fitting:
        raise UserError(
            f"none of {len(networks)} networks has {low} to {high} nodes and {links_per_node:g} "
            "links a node; widen nodes or lower links_per_node"
        )
    return fitting


@lru_cache
def _zoo(path: str) -> tuple[Topology, ...]:
    """The networks of the file; of an operator's (Garr200902, Garr201110) the latest."""
    latest: dict[str, Topology] = {}
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                name, data = record["topology"], record["data"]
                number = {node["id"]: i for i, node in enumerate(data["nodes"])}
                shortest: dict[tuple[int, int], float] = {}
                for edge in data["edges"]:
                    a, b = sorted((number[edge["source"]], number[edge["target"]]))
                    if a != b:
                        shortest[a, b] = min(edge["dist"], shortest.get((a, b), np.inf))
                place = np.array([node["pos"] for node in data["nodes"]], float)
                ends, km = np.array(list(shortest)), np.array(list(shortest.values()), float)
                latest[name.rstrip("0123456789")] = Topology(name, place, ends, km, True)
    except (KeyError, TypeError, ValueError, OSError, EOFError) as error:
        raise UserError(f"{path} does not hold the Topology Zoo: {error!r}") from error
    return tuple(latest.values())


@lru_cache
def _stand_ins() -> tuple[Topology, ...]:
    """Random places, joined by their shortest tree and by more short links."""
    made = []
    for i in range(STAND_INS):
        rng = np.random.default_rng([2011, i])
        n = int(rng.integers(20, 81))
        place = rng.uniform((-10, 38), (28, 60), (n, 2))
        away = cdist(place, place) * KM_PER_DEGREE
        inside, links = [0], set()
        while len(inside) < n:  # Prim
            out = [j for j in range(n) if j not in inside]
            _, u, v = min((away[u, v], u, v) for u in inside for v in out)
            links.add((min(u, v), max(u, v)))
            inside.append(v)
        spread = away * rng.uniform(0.6, 1.6, away.shape)  # not only neighbours are joined
        order = sorted((spread[a, b], a, b) for a in range(n) for b in range(a + 1, n))
        for _, a, b in order:
            if len(links) >= 1.45 * n:
                break
            links.add((a, b))
        ends = np.array(sorted(links))
        made.append(Topology(f"stand-in {i}", place, ends, away[tuple(ends.T)], False))
    return tuple(made)
