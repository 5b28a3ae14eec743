"""Loaders: an edge list, a GraphML file or a networkx object becomes a `Graph`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from rapo.cascade.edges import (
    CleanEdges,
    EdgeTable,
    NodeTable,
    OnFault,
    check_probability,
    clean_edges,
    read_edges,
    read_labels,
    sort_keys,
)
from rapo.cascade.graph import Graph
from rapo.cascade.landmarks import draw_sensitive, draw_stimuli
from rapo.cascade.layout import fit_unit_square, spring_layout
from rapo.cascade.setting import Setting
from rapo.core.validate import truth, whole_number

if TYPE_CHECKING:
    import networkx

IDS_KEPT = 100_000
"""Graphs up to this size keep the original node ids in `meta["ids"]`."""

Part = Literal["all", "largest"]


def load_edges(
    path: str | Path,
    *,
    source: str = "src",
    target: str = "dst",
    probability: str | None = None,
    directed: bool = True,
    self_loops: OnFault = "error",
    duplicates: OnFault = "error",
    labels: str | Path | None = None,
    sensitive: str | Iterable[Any] | None = None,
    sensitive_part: Part = "all",
    positions: str | npt.ArrayLike | None = None,
    stimuli: int = 20,
    support: int | None = None,
    seed: int = 0,
    setting: Setting | None = None,
    scale: bool | None = None,
) -> Graph:
    """Read a CSV or TSV edge list (.gz allowed) with a header row.

    Node ids may be sparse numbers or text; nodes are numbered in their sorted order. Nodes that
    only the labels name are part of the graph.

    Args:
        path: the file.
        source: column of the edge's source.
        target: column of the edge's target.
        probability: column of p_uv in [0, 1]. None draws Beta(2, 5), times
            `setting.inside_weight` inside V_sens (unscaled, above 1 becomes 1: counted in meta).
        directed: False makes both directions of every row.
        self_loops: `"error"`, or `"drop"` to leave them out and count them in meta.
        duplicates: the same for repeated edges, of which the first is kept.
        labels: CSV or TSV file with the node id in its first column and labels after.
        sensitive: V_sens. None draws a connected ball of the setting's share;
            `"column=value"` takes the nodes with that label; or original ids; or n booleans.
        sensitive_part: `"largest"` keeps the largest connected part of a given V_sens;
            with `"all"` a disconnected one is an error.
        positions: None for a spring layout; a label that holds pairs (`"pos"`) or two labels
            (`"x,y"`), scaled into the unit square; or an array (n, 2) inside it.
        stimuli: number of stimuli, >= 1.
        support: seed nodes of a stimulus; None takes `setting.support`.
        seed: of everything drawn.
        setting: None takes `Setting.default()`.
        scale: whether to scale the probabilities to `setting.cascade_target`. None scales
            probabilities that were drawn and leaves given ones as they are.

    Raises:
        ValueError: what is wrong with the file (its line) or with an option, and what to do.
    """
    table = read_edges(path, source, target, probability, truth("directed", directed))
    return _build(
        table,
        NodeTable() if labels is None else read_labels(labels),
        self_loops=self_loops,
        duplicates=duplicates,
        sensitive=sensitive,
        sensitive_part=sensitive_part,
        positions=positions,
        stimuli=stimuli,
        support=support,
        seed=seed,
        setting=setting,
        scale=scale,
    )


def load_graphml(path: str | Path, **options: Any) -> Graph:
    """Read a GraphML file (.gz allowed); the options are those of `from_networkx`."""
    import networkx

    try:
        graph = networkx.read_graphml(path)
    except FileNotFoundError:
        raise
    except Exception as error:  # XML, gzip and networkx each have their own
        raise ValueError(f"{Path(path).name} is not a GraphML file: {error}") from error
    return from_networkx(graph, **{"name": Path(path).name, **options})


def from_networkx(
    graph: networkx.Graph[Any],
    *,
    name: str | None = None,
    probability: str | None = None,
    self_loops: OnFault = "error",
    duplicates: OnFault = "error",
    sensitive: str | Iterable[Any] | None = None,
    sensitive_part: Part = "all",
    positions: str | npt.ArrayLike | None = None,
    stimuli: int = 20,
    support: int | None = None,
    seed: int = 0,
    setting: Setting | None = None,
    scale: bool | None = None,
) -> Graph:
    """Convert any networkx graph; undirected edges become both directions.

    Node attributes are the labels and `probability` is an edge attribute; parallel edges count as
    duplicates. `name` is what `meta["source"]` and messages say, by default the graph's own. All
    other options are those of `load_edges`.
    """
    if not hasattr(graph, "is_directed"):
        raise ValueError(f"graph must be a networkx graph, got {type(graph).__name__}")
    name = name or str(graph.name) or "networkx graph"
    keys = [str(node) for node in graph.nodes]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{name} has two nodes written {twice!r}; relabel its nodes")
    columns: dict[str, dict[str, Any]] = {}
    for node, attributes in graph.nodes(data=True):
        for column, value in attributes.items():
            columns.setdefault(str(column), {})[str(node)] = value
    entries = [(str(u), str(v), data) for u, v, data in graph.edges(data=True)]
    prob = None
    if probability is not None:
        prob = np.array(
            [
                check_probability(data.get(probability), f"{name}, edge {u} -> {v}")
                for u, v, data in entries
            ]
        )
    return _build(
        EdgeTable(
            name, [e[0] for e in entries], [e[1] for e in entries], graph.is_directed(), prob
        ),
        NodeTable(keys, columns),
        self_loops=self_loops,
        duplicates=duplicates,
        sensitive=sensitive,
        sensitive_part=sensitive_part,
        positions=positions,
        stimuli=stimuli,
        support=support,
        seed=seed,
        setting=setting,
        scale=scale,
    )


def _build(
    table: EdgeTable,
    nodes: NodeTable,
    *,
    self_loops: OnFault,
    duplicates: OnFault,
    sensitive: str | Iterable[Any] | None,
    sensitive_part: Part,
    positions: str | npt.ArrayLike | None,
    stimuli: int,
    support: int | None,
    seed: int,
    setting: Setting | None,
    scale: bool | None,
) -> Graph:
    if sensitive_part not in ("all", "largest"):
        raise ValueError(f"sensitive_part must be 'all' or 'largest', got {sensitive_part!r}")
    setting = Setting.default() if setting is None else setting
    if not isinstance(setting, Setting):
        raise ValueError(f"setting must be a Setting, got {setting!r}")
    if scale is not None:
        scale = truth("scale", scale)
    seed, stimuli = whole_number("seed", seed, 0), whole_number("stimuli", stimuli, 1)
    if support is not None:
        support = whole_number("support", support, 1)
    # A stream for each purpose: naming V_sens, say, must not change the drawn probabilities.
    prob_rng, ball_rng, stimulus_rng = np.random.default_rng(seed).spawn(3)

    keys, whole = sort_keys([*table.sources, *table.targets, *nodes.keys])
    index = {key: i for i, key in enumerate(keys)}
    edges = clean_edges(table, index, self_loops, duplicates)
    neighbours = _neighbours(edges, len(keys))
    meta: dict[str, Any] = {
        "source": table.name,
        "seed": seed,
        "self_loops_dropped": edges.self_loops_dropped,
        "duplicates_dropped": edges.duplicates_dropped,
        "components": int(connected_components(neighbours, directed=False)[0]),
    }
    if len(keys) <= IDS_KEPT:
        meta["ids"] = [int(key) for key in keys] if whole else keys

    xy = _positions(positions, index, nodes, neighbours, seed)
    if sensitive is None:
        low, high = setting.sensitive_low, setting.sensitive_high
        inside = draw_sensitive(neighbours, xy, low, high, ball_rng)
    else:
        inside = _named(sensitive, index, nodes, meta)
        if sensitive_part == "largest":
            inside = _largest_part(inside, neighbours, meta)
    if scale is None:
        scale = edges.prob is None
    prob, meta["clipped_edges"] = _probabilities(edges, inside, setting, scale, prob_rng)
    size = setting.support if support is None else support
    seeds, weights = draw_stimuli(neighbours, xy, inside, size, stimuli, stimulus_rng)
    degree = np.bincount(edges.sources, minlength=len(keys))
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    targets = edges.targets.astype(np.int32)
    graph = Graph(indptr, targets, prob, xy, inside, seeds, weights, meta)
    if scale:
        from rapo.cascade.scale import scale_to_target

        graph = scale_to_target(graph, setting, seed=seed)
    return graph


def _neighbours(edges: CleanEdges, n: int) -> sparse.csr_array:
    """(n, n) undirected adjacency; the same matrix as `Graph.neighbours`."""
    ones = np.ones(len(edges.sources), np.int8)
    one_way = sparse.csr_array((ones, (edges.sources, edges.targets)), shape=(n, n))
    both = ((one_way + one_way.T) > 0).astype(np.int8).tocsr()
    both.sort_indices()
    return both


def _positions(
    positions: str | npt.ArrayLike | None,
    index: dict[str, int],
    nodes: NodeTable,
    neighbours: sparse.csr_array,
    seed: int,
) -> npt.NDArray[np.float32]:
    if positions is None:
        return spring_layout(neighbours, seed)
    if not isinstance(positions, str):
        xy = np.asarray(positions, np.float32)
        if xy.shape != (len(index), 2):
            raise ValueError(
                f"positions must have shape ({len(index)}, 2), nodes in sorted order of their ids, "
                f"got {xy.shape}"
            )
        return xy
    names = [positions] if positions in nodes.columns else positions.split(",")
    columns = [nodes.column(name.strip()) for name in names]
    points = np.empty((len(index), 2))
    for key, i in index.items():
        values = [column.get(key) for column in columns]
        point = _pair(values if len(columns) > 1 else values[0])
        if point is None:
            raise ValueError(
                f"node {key} has no position in {positions!r}, got {values}; give every node a "
                "pair of numbers, or use positions=None for a spring layout"
            )
        points[i] = point
    return fit_unit_square(points)


def _pair(value: Any) -> npt.NDArray[np.float64] | None:
    """`value` as two finite numbers, or None."""
    try:
        point = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return None
    return point if point.shape == (2,) and np.isfinite(point).all() else None


def _named(
    sensitive: str | Iterable[Any], index: dict[str, int], nodes: NodeTable, meta: dict[str, Any]
) -> npt.NDArray[np.bool_]:
    """(n,) membership of a V_sens given as `column=value`, as ids or as booleans."""
    if isinstance(sensitive, str):
        name, equals, wanted = sensitive.partition("=")
        if not equals:
            raise ValueError(
                f"sensitive={sensitive!r} is not of the form 'column=value'; "
                "give that, or a list of node ids, or a boolean per node"
            )
        column = {key: str(value).strip() for key, value in nodes.column(name.strip()).items()}
        mask = np.array([column.get(key) == wanted.strip() for key in index])
        if not mask.any():
            some = sorted(set(column.values()))[:10]
            raise ValueError(f"no node has {sensitive}; {name.strip()} takes values like {some}")
        meta["unlabelled"] = len(index) - len(column)
        return mask
    if not isinstance(sensitive, Iterable):
        raise ValueError(
            f"sensitive must be 'column=value', node ids or a boolean per node, got {sensitive!r}"
        )
    values = np.asarray(sensitive).tolist() if isinstance(sensitive, np.ndarray) else [*sensitive]
    if not values:
        raise ValueError("sensitive is an empty list; name at least one node")
    if all(isinstance(value, bool | np.bool_) for value in values):
        if len(values) != len(index):
            raise ValueError(
                f"sensitive has {len(values)} booleans for {len(index)} nodes; give one per node"
            )
        return np.array(values, np.bool_)
    unknown = [value for value in values if str(value) not in index]
    if unknown:
        raise ValueError(
            f"sensitive names {len(unknown)} unknown nodes, first {unknown[0]!r}; "
            f"use the ids of the data, such as {next(iter(index))}"
        )
    mask = np.zeros(len(index), np.bool_)
    mask[[index[str(value)] for value in values]] = True
    return mask


def _largest_part(
    inside: npt.NDArray[np.bool_], neighbours: sparse.csr_array, meta: dict[str, Any]
) -> npt.NDArray[np.bool_]:
    members = np.flatnonzero(inside)
    _, label = connected_components(neighbours[members][:, members], directed=False)
    kept = members[label == np.bincount(label).argmax()]
    meta["sensitive_left_out"] = len(members) - len(kept)
    part = np.zeros_like(inside)
    part[kept] = True
    return part


def _probabilities(
    edges: CleanEdges,
    inside: npt.NDArray[np.bool_],
    setting: Setting,
    scale: bool,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[np.float32], int]:
    """p_uv (E,) and how many of the drawn ones came out above 1 and were set to it."""
    if edges.prob is not None:
        return edges.prob.astype(np.float32), 0
    drawn = rng.beta(2, 5, size=len(edges.sources))
    drawn[inside[edges.sources] & inside[edges.targets]] *= setting.inside_weight
    if scale:  # scaling sets the common factor, so a smaller one here spares the clipping
        drawn /= max(1.0, float(drawn.max()))
    return np.minimum(drawn, 1).astype(np.float32), int((drawn > 1).sum())
