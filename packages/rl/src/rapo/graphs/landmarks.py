"""Landmarks of a graph: balls, V_sens, stimuli and seed scores, drawn or loaded graph alike."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from rapo.cascade.edges import NodeTable
from rapo_core.checks import UserError

if TYPE_CHECKING:
    from rapo.cascade.graph import Graph


def grow_ball(
    neighbours: sparse.csr_array, positions: npt.NDArray[np.floating], centre: int, size: int
) -> npt.NDArray[np.int32]:
    """A connected set of `size` nodes around `centre`; an ellipse in stretched coordinates.

    The set grows over its frontier, the node nearest to the centre first (ties by node id), so it
    is connected by construction.

    Args:
        neighbours: (n, n) undirected adjacency, as `Graph.neighbours`.
        positions: (n, 2) coordinates.
        centre: node id in 0..n-1.
        size: number of nodes, >= 1.

    Returns:
        (size,) node ids, ascending.

    Raises:
        ValueError: when the component of `centre` is smaller than `size`.
    """
    n = neighbours.shape[0]
    if size < 1:
        raise UserError(f"a ball holds at least 1 node, got size {size}; ask for 1 or more")
    if not 0 <= centre < n:
        raise UserError(f"centre must be a node 0..{n - 1}, got {centre}")
    indptr, indices = neighbours.indptr, neighbours.indices
    distance = np.hypot(*(np.asarray(positions, np.float64) - positions[centre]).T)
    seen = np.zeros(n, np.bool_)
    seen[centre] = True
    heap: list[tuple[float, int]] = [(0.0, int(centre))]
    ball: list[int] = []
    while heap and len(ball) < size:
        _, node = heapq.heappop(heap)
        ball.append(node)
        around = indices[indptr[node] : indptr[node + 1]]
        fresh = around[~seen[around]]
        seen[fresh] = True
        for item in zip(distance[fresh].tolist(), fresh.tolist(), strict=True):
            heapq.heappush(heap, item)
    if len(ball) < size:
        raise UserError(
            f"a ball of {size} nodes does not fit: the component of node {centre} has {len(ball)}; "
            "ask for a smaller ball or choose a centre in a larger component"
        )
    return np.sort(np.array(ball, np.int32))


def draw_sensitive(
    neighbours: sparse.csr_array,
    positions: npt.NDArray[np.floating],
    low: float,
    high: float,
    rng: np.random.Generator,
    stretch: float = 1.0,
) -> npt.NDArray[np.bool_]:
    """V_sens as a connected ball that holds a share of the nodes drawn uniformly from [low, high].

    The centre is drawn among the nodes of the largest component. The count stays inside
    [low * n, high * n]; on a graph so small that no whole number lies there, it is the whole number
    nearest to the drawn share, at least 1.

    Args:
        neighbours: (n, n) undirected adjacency.
        positions: (n, 2) coordinates.
        low: smallest share, 0 < low <= high.
        high: largest share, <= 1.
        rng: source of randomness.
        stretch: length over breadth, >= 1; more than 1 grows an ellipse along a drawn direction.

    Returns:
        (n,) membership.
    """
    if not 0 < low <= high <= 1:
        raise UserError(f"shares must satisfy 0 < low <= high <= 1, got low {low}, high {high}")
    n = neighbours.shape[0]
    count = _share_to_count(rng.uniform(low, high), low, high, n)
    _, label = connected_components(neighbours, directed=False)
    sizes = np.bincount(label)
    largest = np.flatnonzero(label == sizes.argmax())
    if len(largest) < count:
        raise UserError(
            f"V_sens of {count} nodes ({low:.0%} to {high:.0%} of {n}) does not fit: the largest "
            f"component has {len(largest)}; lower the share or name the sensitive nodes"
        )
    mask = np.zeros(n, np.bool_)
    centre = int(rng.choice(largest))
    if stretch > 1:
        positions = _stretched(positions, stretch, rng.uniform(0, math.pi))
    mask[grow_ball(neighbours, positions, centre, count)] = True
    return mask


def _stretched(
    positions: npt.NDArray[np.floating], stretch: float, angle: float
) -> npt.NDArray[np.float64]:
    """Coordinates (n, 2) in which an ellipse of that length over breadth and angle is a ball."""
    along = np.array([math.cos(angle), math.sin(angle)])
    across = np.array([-along[1], along[0]])
    axes = np.stack([along / math.sqrt(stretch), across * math.sqrt(stretch)], axis=1)
    return np.asarray(np.asarray(positions, np.float64) @ axes)


def _share_to_count(share: float, low: float, high: float, n: int) -> int:
    """Nodes for a drawn share; 1e-9 keeps 0.07 * 100 = 7.000000000000001 from asking for 8."""
    least, most = math.ceil(low * n - 1e-9), math.floor(high * n + 1e-9)
    count = round(share * n)
    if least <= most:
        count = min(max(count, least), most)
    return max(count, 1)


def named_sensitive(
    sensitive: str | Iterable[Any], index: dict[str, int], nodes: NodeTable
) -> npt.NDArray[np.bool_]:
    """(n,) membership of a V_sens given as `column=value`, as ids or as a boolean per node.

    Args:
        sensitive: what was asked for.
        index: number of each node by the text of its id.
        nodes: the labels.
    """
    if isinstance(sensitive, str):
        name, equals, wanted = sensitive.partition("=")
        if not equals:
            raise UserError(
                f"sensitive={sensitive!r} is not of the form 'column=value'; "
                "give that, or a list of node ids, or a boolean per node"
            )
        column = {key: str(value).strip() for key, value in nodes.column(name.strip()).items()}
        mask = np.array([column.get(key) == wanted.strip() for key in index])
        if not mask.any():
            some = sorted(set(column.values()))[:10]
            raise UserError(
                f"no node has {sensitive}; {name.strip()} takes values like {some}, choose one"
            )
        return mask
    if not isinstance(sensitive, Iterable):
        raise UserError(
            f"sensitive must be 'column=value', node ids or a boolean per node, got {sensitive!r}"
        )
    values = np.asarray(sensitive).tolist() if isinstance(sensitive, np.ndarray) else [*sensitive]
    if not values:
        raise UserError("sensitive is an empty list; name at least one node")
    if all(isinstance(value, bool | np.bool_) for value in values):
        if len(values) != len(index):
            raise UserError(
                f"sensitive has {len(values)} booleans for {len(index)} nodes; give one per node"
            )
        return np.array(values, np.bool_)
    unknown = [value for value in values if str(value) not in index]
    if unknown:
        raise UserError(
            f"sensitive names {len(unknown)} unknown nodes, first {unknown[0]!r}; "
            f"use the ids of the data, such as {next(iter(index))}"
        )
    mask = np.zeros(len(index), np.bool_)
    mask[[index[str(value)] for value in values]] = True
    return mask


def largest_part(
    inside: npt.NDArray[np.bool_], neighbours: sparse.csr_array
) -> npt.NDArray[np.bool_]:
    """The largest connected part of a set of nodes, both (n,) membership."""
    members = np.flatnonzero(inside)
    part = np.zeros_like(inside)
    if len(members):
        _, label = connected_components(neighbours[members][:, members], directed=False)
        part[members[label == np.bincount(label).argmax()]] = True
    return part


def draw_stimuli(
    neighbours: sparse.csr_array,
    positions: npt.NDArray[np.floating],
    sensitive: npt.NDArray[np.bool_],
    support: int,
    count: int,
    rng: np.random.Generator,
    shares: tuple[float, float] | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Fixed seed distributions around nodes of V_sens with Dirichlet(1) weights.

    Centres are drawn from V_sens without replacement; once all were used, the draw starts over.

    Args:
        neighbours: (n, n) undirected adjacency.
        positions: (n, 2) coordinates.
        sensitive: (n,) membership of V_sens, at least one node.
        support: seed nodes of a stimulus, >= 1.
        count: number of stimuli Z, >= 1.
        rng: source of randomness.
        shares: None for the ball around the centre; a pair (low, high) splits the seeds into those
            nearest to the centre inside V_sens and those nearest outside, the share inside uniform
            over stimuli between the two, cut to [0, 1].

    Returns:
        Seed nodes (Z, k), ascending rows, and weights (Z, k), rows sum to 1. k is `support`, or the
        size of V_sens' component (the smallest one, if it lies in several) when that is smaller.
    """
    if support < 1 or count < 1:
        raise UserError(
            f"a stimulus needs at least 1 seed and there must be at least 1 stimulus, "
            f"got support {support}, count {count}"
        )
    members = np.flatnonzero(sensitive)
    if not len(members):
        raise UserError("the sensitive set is empty; name at least one node to draw stimuli from")
    _, label = connected_components(neighbours, directed=False)
    k = min(support, int(np.bincount(label)[label[members]].min()))
    rounds = math.ceil(count / len(members))
    centres = np.concatenate([rng.permutation(members) for _ in range(rounds)])[:count]
    if shares is None:
        seeds = np.stack([grow_ball(neighbours, positions, int(c), k) for c in centres])
    else:
        wanted = np.clip(rng.uniform(*shares, count), 0, 1) * k
        seeds = _split_seeds(positions, sensitive, label, centres, np.rint(wanted).astype(int), k)
    return seeds, rng.dirichlet(np.ones(k), size=count)


def _split_seeds(
    positions: npt.NDArray[np.floating],
    sensitive: npt.NDArray[np.bool_],
    label: npt.NDArray[np.int32],
    centres: npt.NDArray[np.int64],
    inside: npt.NDArray[np.int64],
    k: int,
) -> npt.NDArray[np.int32]:
    """(Z, k) the nearest nodes of each centre's component, `inside` (Z,) of them in V_sens.

    Where one side has too few nodes the other makes up for them.
    """
    seeds = np.empty((len(centres), k), np.int32)
    for row, centre, wanted in zip(seeds, centres, inside, strict=True):
        reached = np.flatnonzero(label == label[centre])
        gaps = np.hypot(*(np.asarray(positions[reached], np.float64) - positions[centre]).T)
        nearest = reached[np.argsort(gaps, kind="stable")]
        within = sensitive[nearest]
        most, rest = int(within.sum()), int((~within).sum())
        take = min(max(int(wanted), k - rest), most)
        row[:] = np.sort(np.r_[nearest[within][:take], nearest[~within][: k - take]])
    return seeds


def stimuli_in_reach(graph: Graph) -> npt.NDArray[np.bool_]:
    """(Z,) whether a directed path of positive probability leads from a stimulus to V_sens.

    Seeds of weight 0 are never injected and do not count; a seed inside V_sens is there already.
    """
    carries, members = graph.prob > 0, np.flatnonzero(graph.sensitive)
    # Against the direction of edges, from a node beyond the last that leads to all of V_sens.
    start = np.concatenate([graph.indices[carries], np.full(len(members), graph.n)])
    end = np.concatenate([graph.sources[carries], members])
    backwards = sparse.csr_array(
        (np.ones(len(start), np.int8), (start, end)), shape=(graph.n + 1, graph.n + 1)
    )
    reaches = np.zeros(graph.n + 1, np.bool_)
    reaches[breadth_first_order(backwards, graph.n, return_predecessors=False)] = True
    injected = reaches[graph.support] & (graph.weights > 0)
    return np.asarray(injected.any(axis=1), np.bool_)
