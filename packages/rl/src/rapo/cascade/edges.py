"""Edge and label tables as they come from files: read, numbered, checked line by line.

Nodes are known by the text of their id. Ids that are all whole numbers sort as numbers, any
others as text; a node's place in that order is its number in the graph.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from rapo_core.checks import UserError

OnFault = Literal["error", "drop"]


@dataclass(frozen=True)
class EdgeTable:
    """Edges before any check: node ids as text, one entry per edge."""

    name: str
    """What the edges came from, for messages (a file name without its folder)."""
    sources: list[str]
    targets: list[str]
    directed: bool
    """False: every entry stands for both directions."""
    prob: npt.NDArray[np.float64] | None = None
    """(entries,) p_uv in [0, 1]; None if the probabilities are to be drawn."""
    lines: Sequence[int] | None = None
    """Line of each entry, the header being line 1; None if there was no text file."""

    def where(self, i: int) -> str:
        """How a message names entry `i`."""
        if self.lines is not None:
            return f"{self.name}, line {self.lines[i]}"
        return f"{self.name}, edge {self.sources[i]} -> {self.targets[i]}"


@dataclass(frozen=True)
class NodeTable:
    """Labels of nodes: nodes by the text of their id, and per column a value for some of them."""

    keys: list[str] = field(default_factory=list)
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)

    def column(self, name: str) -> dict[str, Any]:
        """Values of one column by node; an unknown column is refused with what there is."""
        if name not in self.columns:
            known = sorted(self.columns)
            raise UserError(
                f"no node label is called {name!r}, there are {known}; choose one of them, pass "
                "labels=<file> (--labels) or set node attributes"
            )
        return self.columns[name]

    def texts(self, keys: list[str]) -> dict[str, tuple[str | None, ...]]:
        """Per column the text of each node of `keys`; None where there is none."""
        columns = {}
        for name, values in self.columns.items():
            texts = [None if (v := values.get(key)) is None else str(v).strip() for key in keys]
            columns[name] = tuple(text or None for text in texts)
        return columns


@dataclass(frozen=True)
class CleanEdges:
    """Directed edges sorted by (source, target), without loops or repeats."""

    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    prob: npt.NDArray[np.float64] | None
    self_loops_dropped: int
    duplicates_dropped: int

    def neighbours(self, n: int) -> sparse.csr_array:
        """(n, n) undirected adjacency; the same matrix as `Graph.neighbours`."""
        ones = np.ones(len(self.sources), np.int8)
        one_way = sparse.csr_array((ones, (self.sources, self.targets)), shape=(n, n))
        both = ((one_way + one_way.T) > 0).astype(np.int8).tocsr()
        both.sort_indices()
        return both


def read_edges(
    path: str | Path, source: str, target: str, probability: str | None, directed: bool
) -> EdgeTable:
    """Read a CSV or TSV file (.gz allowed) with a header row; blank lines are passed over.

    Args:
        path: the file.
        source: column of the edge's source.
        target: column of the edge's target.
        probability: column of p_uv in [0, 1], or None.
        directed: whether a row is one direction or both.
    """
    name = Path(path).name
    table = _read_table(path)
    wanted = [source, target] + ([probability] if probability is not None else [])
    columns = [table.columns[_position(column, table.header, name)] for column in wanted]
    _refuse_empty_ids(columns[:2], table.lines, name)
    prob = None
    if probability is not None:
        prob = _probabilities(columns[2], table.lines, name)
    return EdgeTable(name, columns[0], columns[1], directed, prob, table.lines)


def read_labels(path: str | Path) -> NodeTable:
    """Read a CSV or TSV file (.gz allowed): node id in the first column, labels after."""
    name = Path(path).name
    table = _read_table(path)
    keys = table.columns[0]
    _refuse_empty_ids([keys], table.lines, name)
    first_line: dict[str, int] = {}
    for key, line in zip(keys, table.lines, strict=True):
        if first_line.setdefault(key, line) != line:
            raise UserError(
                f"{name}, line {line}: node {key} was labelled on line {first_line[key]}; "
                "keep one row per node"
            )
    labels = zip(table.header[1:], table.columns[1:], strict=True)
    return NodeTable(keys, {name: dict(zip(keys, cells, strict=True)) for name, cells in labels})


@dataclass(frozen=True)
class _TextTable:
    """A text table by column, every cell stripped."""

    header: list[str]
    columns: list[list[str]]
    lines: Sequence[int]
    """Line of each row in the file."""


def _read_table(path: str | Path) -> _TextTable:
    """The table in a CSV or TSV file, all rows as wide as the header."""
    path = Path(path)
    refuse_other_kind(path, "table")
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:
            text = file.read()
    except FileNotFoundError:
        raise
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        kind = "gzipped UTF-8 text" if path.suffix == ".gz" else "UTF-8 text"
        raise UserError(f"{path.name} cannot be read as {kind}: {error}") from error
    if "\0" in text:
        raise UserError(f"{path.name} holds a NUL byte; it is not a text table")
    first, _, rest = text.partition("\n")
    if not first.strip():
        raise UserError(f"{path.name} has no header row; put column names on line 1")
    delimiter = "\t" if "\t" in first else ","
    header = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    if len(set(header)) < len(header):
        raise UserError(f"{path.name} repeats a column name in {header}; rename one of them")
    split = _split_quoted if '"' in rest else _split_plain
    try:
        lines, widths, cells = split(rest, delimiter)
    except csv.Error as error:
        raise UserError(f"{path.name} is not a text table: {error}") from error
    for line, width in zip(lines, widths, strict=True):
        if width != len(header):
            raise UserError(
                f"{path.name}, line {line} has {width} fields, the header has {len(header)}; "
                "correct that line"
            )
    stripped = [cell.strip() for cell in cells]
    columns = [stripped[i :: len(header)] for i in range(len(header))]
    return _TextTable(header, columns, lines)


Split = tuple[Sequence[int], list[int], list[str]]
"""Line and width of every row that is not blank, and the cells of all of them, row by row."""


def _split_plain(text: str, delimiter: str) -> Split:
    """A table without quotes: a line is a row, a delimiter ends a cell."""
    rows = text.removesuffix("\n").split("\n") if text else []
    lines: Sequence[int] = range(2, 2 + len(rows))
    if "" in rows:
        lines = [line for line, row in zip(lines, rows, strict=True) if row]
        rows = [row for row in rows if row]
    widths = [row.count(delimiter) + 1 for row in rows]
    return lines, widths, delimiter.join(rows).split(delimiter) if rows else []


def _split_quoted(text: str, delimiter: str) -> Split:
    """A table with quotes, in which a cell may hold delimiters and line ends."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    rows = [(reader.line_num + 1, row) for row in reader if row]
    lines, widths = [line for line, _ in rows], [len(row) for _, row in rows]
    return lines, widths, [cell for _, row in rows for cell in row]


_KINDS = {
    "npz": ("a saved graph", "rapo.Graph.load"),
    "graphml": ("a GraphML file", "rapo.load_graphml"),
    "table": ("a CSV edge list", "rapo.load_edges"),
}
"""What a file may hold, in words, and what loads it."""


def file_kind(path: str | Path) -> str | None:
    """`npz`, `graphml` or `table` by what a file holds, gzipped or not; None for none of them."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(4096)
        if start[:2] == b"\x1f\x8b":
            with gzip.open(path) as unpacked:
                start = unpacked.read(4096)
    except FileNotFoundError:
        raise
    except (EOFError, OSError, zlib.error):
        return None
    if start[:4] == b"PK\x03\x04":  # a zip; its first entry's name begins at byte 30
        return "npz" if b".npy" in start[30:100] else None
    if start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<":
        return "graphml" if b"<graphml" in start else None
    text = start.decode("utf-8", "ignore").partition("\n")[0]
    return "table" if ("," in text or "\t" in text) and "\0" not in text else None


def refuse_other_kind(path: str | Path, wanted: str) -> None:
    """Name what a file is if it is of another kind than `wanted`, and what loads it."""
    kind = file_kind(path)
    if kind not in (None, wanted):
        name = Path(path).name
        what, loader = _KINDS[str(kind)]
        saved = f" or `rapo graph {name} --out net.npz`" if wanted == "npz" else ""
        raise UserError(f"{name} is {what}, not {_KINDS[wanted][0]}; load it with {loader}{saved}")


def _position(column: str, header: list[str], name: str) -> int:
    if column not in header:
        raise UserError(
            f"{name} has no column {column!r}, its header is {header}; name the right column "
            "(--source, --target, --probability) or add a header row (fields are separated by "
            "commas or tabs, comments are not allowed)"
        )
    return header.index(column)


def _refuse_empty_ids(columns: list[list[str]], lines: Sequence[int], name: str) -> None:
    empty = [column.index("") for column in columns if "" in column]
    if empty:
        raise UserError(
            f"{name}, line {lines[min(empty)]}: the node id is empty; every row needs one"
        )


def _probabilities(cells: list[str], lines: Sequence[int], name: str) -> npt.NDArray[np.float64]:
    """(rows,) numbers in [0, 1]; the first cell that is none is named by its line."""
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        numbers = np.array([np.nan])
    if not np.all((numbers >= 0) & (numbers <= 1)):
        for cell, line in zip(cells, lines, strict=True):
            check_probability(cell, f"{name}, line {line}")
    return numbers


def check_probability(value: Any, where: str) -> float:
    """`value` as a probability; anything that is not a number in [0, 1] is refused."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number <= 1:  # also refuses NaN
        raise UserError(
            f"{where}: a probability must be a number in [0, 1], got {value!r}; rescale or "
            "correct the weights, or leave probability=None (no --probability) to draw them"
        )
    return number


def sort_keys(keys: Iterable[str]) -> tuple[list[str], bool]:
    """Distinct keys in node order, and whether they are whole numbers.

    "7" is a whole number, "07" is not: read as numbers the two would become one node.
    """
    distinct = set(keys)
    whole = all(key.removeprefix("-").isdecimal() and str(int(key)) == key for key in distinct)
    return (sorted(distinct, key=int) if whole else sorted(distinct)), whole


def clean_edges(
    table: EdgeTable, index: dict[str, int], self_loops: OnFault, duplicates: OnFault
) -> CleanEdges:
    """Directed edges by node number; loops and repeats are refused, or dropped and counted.

    Of repeats the first is kept. Without direction, a -> b and b -> a repeat each other.
    """
    for option, value in (("self_loops", self_loops), ("duplicates", duplicates)):
        if value not in ("error", "drop"):
            raise UserError(f"{option} must be 'error' or 'drop', got {value!r}")
    n = len(index)
    u = np.array([index[key] for key in table.sources], np.int64)
    v = np.array([index[key] for key in table.targets], np.int64)
    loops = np.flatnonzero(u == v)
    if len(loops) and self_loops == "error":
        i = int(loops[0])
        raise UserError(
            f"{table.where(i)}: node {table.sources[i]} points to itself ({len(loops)} self-loops "
            "in all); pass self_loops='drop' (--drop) to leave them out"
        )
    entry = np.flatnonzero(u != v)
    pair = u * n + v if table.directed else np.minimum(u, v) * n + np.maximum(u, v)
    kept = entry[np.sort(np.unique(pair[entry], return_index=True)[1])]
    repeats = np.setdiff1d(entry, kept)
    if len(repeats) and duplicates == "error":
        i = int(repeats[0])
        first = int(kept[pair[kept] == pair[i]][0])
        raise UserError(
            f"{table.where(i)} repeats {table.where(first)} ({len(repeats)} duplicates in all); "
            "pass duplicates='drop' (--drop) to keep the first of each"
        )
    if not len(kept):
        raise UserError(f"{table.name} holds no edge between two nodes; a cascade needs some")
    u, v = u[kept], v[kept]
    prob = None if table.prob is None else table.prob[kept]
    if not table.directed:
        u, v = np.concatenate([u, v]), np.concatenate([v, u])
        prob = None if prob is None else np.concatenate([prob, prob])
    order = np.argsort(u * n + v)
    return CleanEdges(
        u[order], v[order], None if prob is None else prob[order], len(loops), len(repeats)
    )
