"""Candidate paths, grey links and stimuli of one network, as tables for the flows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from rapo.platforms.routing.setting import Setting
from rapo.platforms.routing.topology import Array, Topology, topologies
from rapo_core.checks import UserError

MODERATE = 1
"""Nominal loads are those under this action."""
TRIES, ROUNDS = 300, 40
"""Draws of a stimulus for each draw of the grey links, and draws of the grey links."""


class Demand(NamedTuple):
    """Tables with a row for each pair of nodes: the pairs of the first stimulus, then the next."""

    topology: Topology
    grey: Array
    """(R,) bool, links that lose silently."""
    links: Array
    """(rows, K, L) int32 links of every path, -1 for pads."""
    law: Array
    """(actions, rows, K) `P0`; a pad has 0."""
    stretch: Array
    """(rows, K) length over the shortest, >= 1."""
    crossings: Array
    """(rows, K) int64 grey links on a path."""
    kept: Array
    """(rows, K) share of the sent traffic that the grey links of a path let through."""
    blamed: Array
    """(rows, K, B) int32 links that a report of harm names, -1 for pads."""
    arrivals: Array
    """(stimuli, pairs) cumulative law of the pair of a new flow."""


@lru_cache(maxsize=64)
def demand_of(seed: int, setting: Setting, source: str) -> Demand:
    """The network, grey links and stimuli of a platform seed.

    Raises:
        UserError: no network, or no demand, is as the setting wants it.
    """
    rng = np.random.default_rng([seed, 64])
    networks = topologies(source, setting.nodes, setting.links_per_node)
    topology = networks[rng.integers(len(networks))]
    weight = topology.km + setting.hop_km
    pairs, gravity = _pairs(topology, setting.pool, rng)
    paths = [_paths(topology, weight, a, b, setting) for a, b in pairs]
    links = _table(paths, setting.paths)
    lengths = np.where(links >= 0, weight[links], 0).sum(axis=2)
    lengths[links[:, :, 0] < 0] = np.inf
    stretch = lengths / lengths.min(axis=1, keepdims=True)
    law = np.exp(-(stretch - 1) / np.array(setting.temperatures)[:, None, None])
    law /= law.sum(axis=2, keepdims=True)
    crossed = _crossed(links, len(topology.ends))
    grey, rows = _drawn(law[min(MODERATE, len(law) - 1)], crossed, gravity, setting, rng, topology)
    crossings = (crossed & grey).sum(axis=2)
    on_grey = np.where((links >= 0) & grey[links], links, -1)
    blamed = -np.sort(-on_grey, axis=2)[..., : max(crossings[rows].max(), 1)]
    share = gravity[rows].reshape(setting.stimuli, setting.pairs).cumsum(axis=1)
    return Demand(
        topology, grey, links[rows], law[:, rows], np.where(np.isfinite(stretch), stretch, 0)[rows],
        crossings[rows], _power(1 - setting.loss, crossings[rows]),
        (blamed if setting.blame == "link" else links)[rows], share / share[:, -1:],
    )  # fmt: skip


def _power(base: float, times: Array) -> Array:
    """`base` to whole powers by squaring, to the last bit the same on every machine."""
    result = np.ones(times.shape)
    while times.any():
        result = np.where(times % 2 == 1, result * base, result)
        base, times = base * base, times // 2
    return result


def _pairs(topology: Topology, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Pairs of nodes, drawn by gravity (the product of their degrees), and their gravity."""
    n = len(topology.place)
    degree = np.bincount(topology.ends.ravel(), minlength=n)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    gravity = degree[pairs].prod(axis=1).astype(float)
    drawn = rng.choice(len(pairs), min(count, len(pairs)), replace=False, p=gravity / gravity.sum())
    return pairs[drawn], gravity[drawn]


def _paths(
    topology: Topology, weight: Array, start: int, end: int, setting: Setting
) -> list[list[int]]:
    """Different paths as lists of links; a link of an earlier path costs more."""
    n, (a, b) = len(topology.place), topology.ends.T
    number = {(int(u), int(v)): i for i, (u, v) in enumerate(topology.ends)}
    cost, different = weight.copy(), []
    for _ in range(3 * setting.paths):
        network: Any = csr_array((cost, (a, b)), (n, n))
        before: Array = dijkstra(
            network, directed=False, indices=np.array(start), return_predecessors=True
        )[1]
        path, at = [], end
        while at != start:
            at, last = int(before[at]), at
            path.append(number[min(at, last), max(at, last)])
        cost[path] *= setting.penalty
        if path not in different:
            different.append(path)
        if len(different) == setting.paths:
            break
    return different


def _table(paths: list[list[list[int]]], count: int) -> Array:
    """(pairs, K, L) int32 links, -1 for pads."""
    longest = max(len(path) for one in paths for path in one)
    table = np.full((len(paths), count, longest), -1, np.int32)
    for i, one in enumerate(paths):
        for k, path in enumerate(one):
            table[i, k, : len(path)] = path
    return table


def _crossed(links: Array, regions: int) -> Array:
    """(pairs, K, R) bool: which links a path crosses."""
    crossed = np.zeros((*links.shape[:2], regions + 1), np.bool_)
    np.put_along_axis(crossed, links.astype(np.int64), True, axis=2)  # -1 is the last, dropped
    return crossed[..., :-1]


def _drawn(
    law: Array, crossed: Array, gravity: Array, setting: Setting, rng: np.random.Generator,
    topology: Topology,
) -> tuple[Array, Array]:  # fmt: skip
    """Grey links (R,), which are busy and have a way round, and the pairs of all stimuli."""
    exists: Array = np.asarray(law > 0)
    # A pair counts only where one of its paths goes round the link.
    way_round: Array = np.asarray((exists[..., None] & ~crossed).any(axis=1))
    busy = np.einsum("p,pk,pkr->r", gravity, law, crossed * way_round[:, None])
    count = max(2, round(setting.grey * len(busy)))
    low, high = setting.touched
    if np.count_nonzero(busy) >= count:
        for _ in range(ROUNDS):
            grey = np.zeros(len(busy), np.bool_)
            grey[rng.choice(len(busy), count, replace=False, p=busy / busy.sum())] = True
            enters = (crossed & grey).any(axis=2)
            clear = np.flatnonzero((exists & ~enters).any(axis=1))
            if len(clear) < setting.pairs:
                continue
            inside = (law * enters).sum(axis=1)
            stimuli: list[Array] = []
            for _ in range(TRIES):
                weight = gravity[clear] / gravity[clear].sum()
                rows = rng.choice(clear, setting.pairs, replace=False, p=weight)
                if low <= gravity[rows] @ inside[rows] / gravity[rows].sum() <= high:
                    stimuli.append(rows)
                if len(stimuli) == setting.stimuli:
                    return grey, np.concatenate(stimuli)
    raise UserError(
        f"{topology.name}: found no {setting.stimuli} stimuli of {setting.pairs} pairs that have a "
        f"path without {count} grey links and cross them with {low:g} to {high:g} of their flows; "
        "widen touched, or ask for fewer"
    )
