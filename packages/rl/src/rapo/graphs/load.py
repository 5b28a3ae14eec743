"""Loaders: an edge list, a GraphML file or a networkx object becomes a `Graph`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from rapo.cascade.edges import (
    CleanEdges,
    EdgeTable,
    NodeTable,
    OnFault,
    check_probability,
    clean_edges,
    file_kind,
    read_edges,
    read_labels,
    refuse_other_kind,
    sort_keys,
)
from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo.graphs.edge_weights import edge_weights, stimulus_shares
from rapo.graphs.layout import given_positions, spring_layout
from rapo.graphs.scale import scale_to_target
from rapo.graphs.sensitive_set import draw_sensitive, largest_part, named_sensitive
from rapo.graphs.stimuli import draw_stimuli, stimuli_in_reach
from rapo.graphs.warnings import graph_warnings
from rapo_core.checks import UserError, truth, whole_number

if TYPE_CHECKING:
    import networkx

IDS_KEPT = 100_000
"""Graphs up to this size keep the original node ids in `meta["ids"]`."""

Part = Literal["all", "largest"]


def read_graph(path: str | Path, **options: Any) -> Graph:
    """A graph from a file of any kind that is understood.

    Args:
        path: a saved graph (.npz), a CSV or TSV edge list or a GraphML file, the latter two also
            gzipped; what it is, is told by its content.
        options: those of `load_edges` or `from_networkx`; a saved graph takes none.

    Raises:
        ValueError: what is wrong with the file or with an option, and what to do.
    """
    name, kind = Path(path).name, file_kind(path)
    if kind is None:  # empty or damaged: its name tells who should complain
        ends = name.removesuffix(".gz")
        kind = next((k for k in ("npz", "graphml") if ends.endswith(f".{k}")), "table")
    if kind == "npz":
        if options:
            raise UserError(
                f"{name} is a saved graph and takes no options, got {sorted(options)}; load the "
                "edge list it was made from anew"
            )
        graph = Graph.load(path)
        _refuse_out_of_reach(graph, name)
        return graph
    reader = load_graphml if kind == "graphml" else load_edges
    known = set(inspect.signature(from_networkx if kind == "graphml" else reader).parameters)
    unknown = sorted(set(options) - (known - {"graph", "path"}))
    if unknown:
        raise UserError(
            f"{name} is read by {reader.__name__}, which has no option {unknown}; it takes "
            f"{sorted(known - {'graph', 'path'})}"
        )
    return reader(path, **options)


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
        probability: column of p_uv in [0, 1]. None draws Beta(2, 5), times the setting's weight of
            an edge inside, into or out of V_sens. At most `setting.edge_cap`: what is above is set
            to it, counted in meta and warned about.
        directed: False makes both directions of every row.
        self_loops: `"error"`, or `"drop"` to leave them out and count them in meta.
        duplicates: the same for repeated edges, of which the first is kept.
        labels: CSV or TSV file with the node id in its first column and labels after; they stay
            in `Graph.labels`.
        sensitive: V_sens, at least two nodes. None draws a connected ball of the setting's share;
            `"column=value"` takes the nodes with that label; or original ids; or n booleans.
        sensitive_part: `"largest"` keeps the largest connected part of a given V_sens;
            with `"all"` a disconnected one is an error.
        positions: None for a spring layout; a label that holds pairs (`"pos"`) or two labels
            (`"x,y"`), scaled into the unit square; or an array (n, 2) inside it.
        stimuli: number of stimuli, >= 1.
        support: seed nodes of a stimulus; None takes `setting.loaded_support`.
        seed: of everything drawn.
        setting: None takes `Setting.default()`.
        scale: whether to scale the probabilities to `setting.cascade_target`. None scales
            probabilities that were drawn and leaves given ones as they are.

    Raises:
        ValueError: what is wrong with the file (its line) or with an option, and what to do.

    Warns:
        UserWarning: what would make the graph's results misleading: capped edges, edges that no
            gate brings below one half, given probabilities that hardly spread.
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

    refuse_other_kind(path, "graphml")
    try:
        graph = networkx.read_graphml(path)
    except FileNotFoundError:
        raise
    except Exception as error:  # XML, gzip and networkx each have their own
        raise UserError(f"{Path(path).name} is not a GraphML file: {error}") from error
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
        raise UserError(f"graph must be a networkx graph, got {type(graph).__name__}")
    name = name or str(graph.name) or "networkx graph"
    keys = [str(node) for node in graph.nodes]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UserError(f"{name} has two nodes written {twice!r}; relabel its nodes")
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
        raise UserError(f"sensitive_part must be 'all' or 'largest', got {sensitive_part!r}")
    setting = Setting.default() if setting is None else setting
    if not isinstance(setting, Setting):
        raise UserError(f"setting must be a Setting, got {setting!r}")
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
    neighbours = edges.neighbours(len(keys))
    meta: dict[str, Any] = {
        "source": table.name,
        "seed": seed,
        "self_loops_dropped": edges.self_loops_dropped,
        "duplicates_dropped": edges.duplicates_dropped,
        "components": int(connected_components(neighbours, directed=False)[0]),
    }
    if len(keys) <= IDS_KEPT:
        meta["ids"] = [int(key) for key in keys] if whole else keys

    xy = (
        spring_layout(neighbours, seed)
        if positions is None
        else given_positions(positions, index, nodes)
    )
    if sensitive is None:
        low, high = setting.sensitive_low, setting.sensitive_high
        inside = draw_sensitive(neighbours, xy, low, high, ball_rng, setting.stretch)
    else:
        inside = named_sensitive(sensitive, index, nodes)
        if isinstance(sensitive, str):
            column = nodes.column(sensitive.partition("=")[0].strip())
            meta["unlabelled"] = len(keys) - len(column)
        if sensitive_part == "largest":
            named = int(inside.sum())
            inside = largest_part(inside, neighbours)
            meta["sensitive_left_out"] = named - int(inside.sum())
        _refuse_single(inside, keys)
    if scale is None:
        scale = edges.prob is None
    prob, capped = _probabilities(edges, inside, setting, scale, prob_rng)
    meta["capped_edges"] = capped
    size = setting.loaded_support if support is None else support
    seeds, weights = draw_stimuli(
        neighbours, xy, inside, size, stimuli, stimulus_rng, stimulus_shares(setting, loaded=True)
    )
    degree = np.bincount(edges.sources, minlength=len(keys))
    indptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    targets = edges.targets.astype(np.int32)
    graph = Graph(indptr, targets, prob, xy, inside, seeds, weights, meta, nodes.texts(keys))
    _refuse_out_of_reach(graph, table.name)
    if scale:
        graph = scale_to_target(graph, setting, seed=seed)
    for remark in graph_warnings(
        graph, setting, own_probabilities=edges.prob is not None and not scale
    ):
        warnings.warn(remark, UserWarning, stacklevel=3)
    return graph


def _refuse_single(inside: npt.NDArray[np.bool_], keys: list[str]) -> None:
    """A V_sens of one node has no edge inside: nothing can spread there and be replayed."""
    if inside.sum() == 1:
        raise UserError(
            f"V_sens would be the single node {keys[int(inside.argmax())]}; name two or more that "
            "are connected, take another label value, or leave sensitive=None "
            "(no --sensitive) to draw a ball"
        )


def _refuse_out_of_reach(graph: Graph, name: str) -> None:
    if not stimuli_in_reach(graph).any():
        raise UserError(
            f"{name}: no directed path leads from any stimulus' seeds to V_sens, so that nothing "
            "could ever do harm; check the direction of the edges (source and target may be "
            "swapped), name another V_sens, or place seeds inside it"
        )


def _probabilities(
    edges: CleanEdges,
    inside: npt.NDArray[np.bool_],
    setting: Setting,
    scale: bool,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[np.float32], int]:
    """p_uv (E,) and how many of them came out above the cap and were set to it."""
    prob = edges.prob
    if prob is None:
        prob = rng.beta(2, 5, size=len(edges.sources))
        prob *= edge_weights(inside, edges.sources, edges.targets, setting)
    if scale:  # the scaling sets the common factor and caps: here only no number above 1
        return (prob / max(1.0, float(prob.max()))).astype(np.float32), 0
    cap = setting.edge_cap
    return np.minimum(prob, cap).astype(np.float32), int((prob > cap).sum())
