"""`Graph`: an immutable directed network with probabilities, positions, V_sens and stimuli."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from rapo.cascade.edges import refuse_other_kind
from rapo_core.checks import UserError
from rapo_core.files import refuse_to_overwrite, written_whole

FORMAT = 1
_DIMENSIONS = {"positions": 2, "support": 2, "weights": 2}
_ARRAYS = ("indptr", "indices", "prob", "positions", "sensitive", "support", "weights")
_WIRING = ("sources", "neighbours", "_by_target")
"""Attributes that are derived from indptr and indices alone."""

Labels = Mapping[str, tuple[str | None, ...]]


def _frozen(name: str, values: Any, dtype: type) -> npt.NDArray[Any]:
    """A read-only copy; values that a whole-number dtype would round or wrap are refused."""
    raw = np.asarray(values)
    kinds, ndim = {np.bool_: "b", np.int32: "iuf"}.get(dtype, "iuf"), _DIMENSIONS.get(name, 1)
    if raw.dtype.kind not in kinds or raw.ndim != ndim:
        raise UserError(
            f"{name} must be a {ndim}-D array of {np.dtype(dtype).name}, got {raw.dtype} of "
            f"shape {raw.shape}"
        )
    array: npt.NDArray[Any] = np.array(raw, dtype=dtype, order="C")
    if dtype is np.int32 and not np.array_equal(raw, array):
        bad = raw[raw != array].flat[0]
        raise UserError(f"{name} must hold whole numbers below 2^31, got {bad}")
    array.setflags(write=False)
    return array


def _plain(meta: Any) -> dict[str, Any]:
    """A copy of `meta` that JSON can hold."""
    try:
        copy = json.loads(json.dumps(dict(meta)))
    except (TypeError, ValueError):
        raise UserError(f"meta must be a mapping of JSON values, got {meta!r}") from None
    return dict(copy)


def _labels(labels: Any, n: int) -> Labels:
    """A read-only copy in which equal values are one object, so a column costs n references."""
    if not isinstance(labels, Mapping):
        raise UserError(f"labels must map columns to a value per node, got {labels!r}")
    columns: dict[str, tuple[str | None, ...]] = {}
    for name, values in labels.items():
        column = tuple(values) if isinstance(values, Sequence | np.ndarray) else ()
        if not isinstance(name, str) or isinstance(values, str) or len(column) != n:
            raise UserError(
                f"a label column needs a name and {n} values, one per node, got {name!r}: "
                f"{values!r:.80}"
            )
        wrong = next((v for v in column if not isinstance(v, str | None)), None)
        if wrong is not None:
            raise UserError(f"values of label {name!r} must be text or None, got {wrong!r}")
        once: dict[str | None, str | None] = {}
        columns[name] = tuple(once.setdefault(value, value) for value in column)
    return MappingProxyType(columns)


def _packed(labels: Labels) -> npt.NDArray[np.uint8]:
    """Labels as the bytes of a JSON text: per column its distinct values and a number per node."""
    columns = {}
    for name, values in labels.items():
        number = {value: i for i, value in enumerate(dict.fromkeys(values))}
        columns[name] = {"values": list(number), "of": [number[value] for value in values]}
    return np.frombuffer(json.dumps(columns).encode(), np.uint8)


def _unpacked(text: npt.NDArray[np.uint8]) -> Labels:
    columns = json.loads(text.tobytes())
    return {name: tuple(c["values"][i] for i in c["of"]) for name, c in columns.items()}


def _read_only(*arrays: npt.NDArray[Any]) -> None:
    for array in arrays:
        array.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed graph in CSR form (edges sorted by source, then target).

    Two graphs are equal when their content `hash` is. Arrays are read-only.

    Raises:
        ValueError: whatever is wrong with the content, by name and value.
    """

    indptr: npt.NDArray[np.int32]
    """(n + 1,) edges of source u are indptr[u]:indptr[u + 1]."""
    indices: npt.NDArray[np.int32]
    """(E,) target of each edge."""
    prob: npt.NDArray[np.float32]
    """(E,) activation probability p_uv in [0, 1]."""
    positions: npt.NDArray[np.float32]
    """(n, 2) in the unit square."""
    sensitive: npt.NDArray[np.bool_]
    """(n,) membership of V_sens, connected in the undirected sense."""
    support: npt.NDArray[np.int32]
    """(Z, k) seed nodes of each stimulus, ascending within a row."""
    weights: npt.NDArray[np.float64]
    """(Z, k) seed distribution of each stimulus, rows sum to 1."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Where the graph came from (JSON values); not part of the hash."""
    labels: Labels = field(default_factory=dict)
    """Per column n values, text or None: what is known of the nodes; not part of the hash."""

    def __post_init__(self) -> None:
        types = (np.int32, np.int32, np.float32, np.float32, np.bool_, np.int32, np.float64)
        for name, dtype in zip(_ARRAYS, types, strict=True):
            object.__setattr__(self, name, _frozen(name, getattr(self, name), dtype))
        object.__setattr__(self, "meta", MappingProxyType(_plain(self.meta)))
        object.__setattr__(self, "labels", _labels(self.labels, self.n))
        _validate(self)

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @property
    def edges(self) -> int:
        """Number of directed edges."""
        return len(self.indices)

    @property
    def stimuli(self) -> int:
        """Number of stimuli; they are numbered 1..stimuli as in the paper."""
        return len(self.support)

    @cached_property
    def sources(self) -> npt.NDArray[np.int32]:
        """(E,) source of each edge."""
        sources = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))
        _read_only(sources)
        return sources

    @cached_property
    def incoming(
        self,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """In-edges as (indptr (n+1,), sources (E,), prob (E,)), sources ascending per node."""
        indptr = np.zeros(self.n + 1, np.int32)
        np.cumsum(np.bincount(self.indices, minlength=self.n), out=indptr[1:])
        edges = (indptr, self.sources[self._by_target], self.prob[self._by_target])
        _read_only(*edges)
        return edges

    @cached_property
    def _by_target(self) -> npt.NDArray[np.int64]:
        """(E,) the edges sorted by target; stable, so sources stay ascending."""
        return np.argsort(self.indices, kind="stable")

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """(n, n) sparse matrix of p_uv."""
        return sparse.csr_array((self.prob, self.indices, self.indptr), shape=(self.n, self.n))

    @cached_property
    def neighbours(self) -> sparse.csr_array:
        """(n, n) undirected 0/1 adjacency: hops, balls and regions ignore direction."""
        ones = sparse.csr_array(
            (np.ones(self.edges, np.int8), self.indices, self.indptr), shape=(self.n, self.n)
        )
        both = ((ones + ones.T) > 0).astype(np.int8).tocsr()
        both.sort_indices()
        _read_only(both.data, both.indices, both.indptr)
        return both

    @cached_property
    def hash(self) -> str:
        """Hex digest of the content (arrays only), the same on every machine."""
        digest = hashlib.sha256(f"rapo-graph-{FORMAT}".encode())
        for name in _ARRAYS:
            array = getattr(self, name)
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{name}{array.shape}{little.dtype.str}".encode())
            digest.update(little.tobytes())
        return digest.hexdigest()[:16]

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor: copies and unpickled graphs are read-only and checked, too
        arrays = (getattr(self, name) for name in _ARRAYS)
        return Graph, (*arrays, dict(self.meta), dict(self.labels))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        labels = f"labels {', '.join(self.labels)}, " if self.labels else ""
        return (
            f"Graph({self.n} nodes, {self.edges} edges, |V_sens| = {int(self.sensitive.sum())}, "
            f"{self.stimuli} stimuli, {labels}{self.hash})"
        )

    def replace(self, **changes: Any) -> Graph:
        """A copy with some fields changed, validated anew."""
        values = {name: getattr(self, name) for name in (*_ARRAYS, "meta", "labels")}
        if set(changes) != {"prob"}:
            return Graph(**{**values, **changes})
        # Other probabilities on the same wiring, as in every search for a factor: what they cannot
        # change is shared, which at 40,000 nodes is most of the cost.
        kept = {name: self.__dict__[name] for name in _WIRING if name in self.__dict__}
        copy = object.__new__(Graph)
        copy.__dict__.update(values, **kept, prob=_frozen("prob", changes["prob"], np.float32))
        _validate_prob(copy)
        return copy

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write to `path` (.npz); a file that exists is overwritten only with `force`."""
        path = Path(path)
        if path.suffix != ".npz":
            raise UserError(f"a graph is saved as .npz, got {path.name!r}; name it *.npz")
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        if self.labels:
            arrays["labels"] = _packed(self.labels)
        header = json.dumps({"format": FORMAT, "hash": self.hash, "meta": dict(self.meta)})
        refuse_to_overwrite(path, force=force)
        with written_whole(path) as part:
            np.savez_compressed(part, header=np.array(header), **arrays)
        return path

    @classmethod
    def load(cls, path: str | Path) -> Graph:
        """Read what `save` wrote; a changed or foreign file is refused."""
        header, arrays, labels = _read(path)
        if header["format"] != FORMAT:
            raise UserError(
                f"{path} has graph format {header['format']}, this version reads {FORMAT}"
            )
        graph = cls(**arrays, meta=header["meta"], labels=labels)
        if graph.hash != header["hash"]:
            raise UserError(f"{path} is damaged: hash {graph.hash}, expected {header['hash']}")
        return graph


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]], Labels]:
    """Header, arrays and labels of a saved graph; what cannot be read is named with its file."""
    try:
        with np.load(path, allow_pickle=False) as data:
            missing = [name for name in ("header", *_ARRAYS) if name not in data]
            content = {name: data[name] for name in data.files}
        header = None if missing else json.loads(str(content.pop("header")))
        labels = _unpacked(content["labels"]) if "labels" in content else {}
    except FileNotFoundError:
        raise
    except Exception as error:  # zip, zlib, json and NumPy each have their own
        refuse_other_kind(path, "npz")
        raise UserError(f"{path} is not a rapo graph or is damaged: {error}") from error
    if missing:
        raise UserError(f"{path} is not a rapo graph: {missing} missing")
    if not isinstance(header, dict) or not {"format", "hash", "meta"} <= set(header):
        raise UserError(f"{path} is not a rapo graph: its header is {header!r}")
    return header, {name: content[name] for name in _ARRAYS}, labels


def _validate(g: Graph) -> None:
    n = g.n
    if n < 1 or g.indptr[0] != 0 or g.indptr[-1] != g.edges or np.any(np.diff(g.indptr) < 0):
        raise UserError(
            f"indptr must rise from 0 to the number of edges ({g.edges}), got {g.indptr}"
        )
    for name, shape in (("positions", (n, 2)), ("sensitive", (n,))):
        if getattr(g, name).shape != shape:
            raise UserError(f"{name} must have shape {shape}, got {getattr(g, name).shape}")
    if g.edges and (g.indices.min() < 0 or g.indices.max() >= n):
        bad = g.indices[(g.indices < 0) | (g.indices >= n)][0]
        raise UserError(f"edge targets must be nodes 0..{n - 1}, got {bad}")
    _validate_prob(g)
    loops = np.flatnonzero(g.sources == g.indices)
    if len(loops):
        raise UserError(f"self-loop at node {g.indices[loops[0]]}; drop self-loops first")
    key = g.sources.astype(np.int64) * n + g.indices
    if np.any(np.diff(key) <= 0):
        i = int(np.flatnonzero(np.diff(key) <= 0)[0])
        raise UserError(
            f"edges must be sorted and unique; check {g.sources[i]} -> {g.indices[i]} and "
            f"{g.sources[i + 1]} -> {g.indices[i + 1]}"
        )
    if not np.all((g.positions >= 0) & (g.positions <= 1)):
        i = int(np.flatnonzero(~np.all((g.positions >= 0) & (g.positions <= 1), axis=1))[0])
        raise UserError(
            f"positions must lie in the unit square, node {i} is at {g.positions[i]}; rescale them"
        )
    _validate_sensitive(g)
    _validate_stimuli(g)


def _validate_prob(g: Graph) -> None:
    if g.prob.shape != (g.edges,):
        raise UserError(f"prob must have shape ({g.edges},), got {g.prob.shape}")
    if not np.all((g.prob >= 0) & (g.prob <= 1)):
        i = int(np.flatnonzero(~((g.prob >= 0) & (g.prob <= 1)))[0])
        raise UserError(
            f"probabilities must be in [0, 1], got {g.prob[i]} on edge "
            f"{g.sources[i]} -> {g.indices[i]}; rescale or correct the weights"
        )


def _validate_sensitive(g: Graph) -> None:
    if not g.sensitive.any():
        raise UserError("the sensitive set is empty; name at least one node")
    members = np.flatnonzero(g.sensitive)
    count, label = connected_components(g.neighbours[members][:, members], directed=False)
    if count > 1:
        sizes = sorted(np.bincount(label).tolist(), reverse=True)
        raise UserError(
            f"the sensitive set must be connected, got {count} parts of sizes {sizes[:5]}; "
            "use its largest part (sensitive_part='largest', --sensitive-part) or join them"
        )


def _validate_stimuli(g: Graph) -> None:
    if g.support.ndim != 2 or g.support.size == 0 or g.support.shape != g.weights.shape:
        raise UserError(
            f"support and weights must share a shape (stimuli, nodes), got {g.support.shape} "
            f"and {g.weights.shape}"
        )
    if g.support.min() < 0 or g.support.max() >= g.n:
        bad = g.support[(g.support < 0) | (g.support >= g.n)][0]
        raise UserError(f"stimulus seeds must be nodes 0..{g.n - 1}, got {bad}")
    if np.any(np.diff(g.support, axis=1) <= 0):
        row = int(np.flatnonzero(np.any(np.diff(g.support, axis=1) <= 0, axis=1))[0])
        raise UserError(f"seeds of stimulus {row + 1} must be ascending and distinct")
    if not np.all(g.weights >= 0) or not np.allclose(g.weights.sum(axis=1), 1, rtol=0, atol=1e-9):
        raise UserError(
            "the seed weights of every stimulus must be >= 0 and sum to 1, got sums "
            f"{g.weights.sum(axis=1).min()}..{g.weights.sum(axis=1).max()}"
        )
