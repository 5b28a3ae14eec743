"""Edge and label tables as they come from files: read, numbered, checked line by line.

Nodes are known by the text of their id. Ids that are all whole numbers sort as numbers, any
others as text; a node's place in that order is its number in the graph.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

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
    lines: list[int] | None = None
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
            raise ValueError(
                f"no node label is called {name!r}, there are {known}; choose one of them, pass "
                "labels=<file> or set node attributes"
            )
        return self.columns[name]


@dataclass(frozen=True)
class CleanEdges:
    """Directed edges sorted by (source, target), without loops or repeats."""

    sources: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    prob: npt.NDArray[np.float64] | None
    self_loops_dropped: int
    duplicates_dropped: int


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
    header, rows = _read_table(path)
    wanted = [source, target] + ([probability] if probability is not None else [])
    at = [_position(column, header, name) for column in wanted]
    ends: tuple[list[str], list[str]] = ([], [])
    prob: list[float] = []
    for line, row in rows:
        for end, place in zip(ends, at[:2], strict=True):
            end.append(_node_id(row[place], f"{name}, line {line}"))
        if probability is not None:
            prob.append(check_probability(row[at[2]], f"{name}, line {line}"))
    given = None if probability is None else np.array(prob)
    return EdgeTable(name, *ends, directed, given, [line for line, _ in rows])


def read_labels(path: str | Path) -> NodeTable:
    """Read a CSV or TSV file (.gz allowed): node id in the first column, labels after."""
    name = Path(path).name
    header, rows = _read_table(path)
    first_line: dict[str, int] = {}
    columns: dict[str, dict[str, Any]] = {column: {} for column in header[1:]}
    for line, row in rows:
        key = _node_id(row[0], f"{name}, line {line}")
        if key in first_line:
            raise ValueError(
                f"{name}, line {line}: node {key} was labelled on line {first_line[key]}; "
                "keep one row per node"
            )
        first_line[key] = line
        for column, value in zip(header[1:], row[1:], strict=True):
            columns[column][key] = value
    return NodeTable(list(first_line), columns)


def _read_table(path: str | Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Header and (line, fields) of every row, all rows as wide as the header."""
    path = Path(path)
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except FileNotFoundError:
        raise
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        kind = "gzipped UTF-8 text" if path.suffix == ".gz" else "UTF-8 text"
        raise ValueError(f"{path.name} cannot be read as {kind}: {error}") from error
    if "\0" in text:
        raise ValueError(f"{path.name} holds a NUL byte; it is not a text table")
    first, _, rest = text.partition("\n")
    if not first.strip():
        raise ValueError(f"{path.name} has no header row; put column names on line 1")
    delimiter = "\t" if "\t" in first else ","
    header = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    if len(set(header)) < len(header):
        raise ValueError(f"{path.name} repeats a column name in {header}; rename one of them")
    reader = csv.reader(io.StringIO(rest), delimiter=delimiter)
    rows = [(reader.line_num + 1, [c.strip() for c in row]) for row in reader if row]
    for line, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path.name}, line {line} has {len(row)} fields, the header has {len(header)}; "
                "correct that line"
            )
    return header, rows


def _position(column: str, header: list[str], name: str) -> int:
    if column not in header:
        raise ValueError(
            f"{name} has no column {column!r}, its header is {header}; name the right column or "
            "add a header row (fields are separated by commas or tabs, comments are not allowed)"
        )
    return header.index(column)


def _node_id(text: str, where: str) -> str:
    if not text:
        raise ValueError(f"{where}: the node id is empty; every row needs one")
    return text


def check_probability(value: Any, where: str) -> float:
    """`value` as a probability; anything that is not a number in [0, 1] is refused."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number <= 1:  # also refuses NaN
        raise ValueError(
            f"{where}: a probability must be a number in [0, 1], got {value!r}; rescale or "
            "correct the weights, or leave probability=None to draw them"
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
            raise ValueError(f"{option} must be 'error' or 'drop', got {value!r}")
    n = len(index)
    u = np.array([index[key] for key in table.sources], np.int64)
    v = np.array([index[key] for key in table.targets], np.int64)
    loops = np.flatnonzero(u == v)
    if len(loops) and self_loops == "error":
        i = int(loops[0])
        raise ValueError(
            f"{table.where(i)}: node {table.sources[i]} points to itself ({len(loops)} self-loops "
            "in all); pass self_loops='drop' to leave them out"
        )
    entry = np.flatnonzero(u != v)
    pair = u * n + v if table.directed else np.minimum(u, v) * n + np.maximum(u, v)
    kept = entry[np.sort(np.unique(pair[entry], return_index=True)[1])]
    repeats = np.setdiff1d(entry, kept)
    if len(repeats) and duplicates == "error":
        i = int(repeats[0])
        first = int(kept[pair[kept] == pair[i]][0])
        raise ValueError(
            f"{table.where(i)} repeats {table.where(first)} ({len(repeats)} duplicates in all); "
            "pass duplicates='drop' to keep the first of each"
        )
    if not len(kept):
        raise ValueError(f"{table.name} holds no edge between two nodes; a cascade needs some")
    u, v = u[kept], v[kept]
    prob = None if table.prob is None else table.prob[kept]
    if not table.directed:
        u, v = np.concatenate([u, v]), np.concatenate([v, u])
        prob = None if prob is None else np.concatenate([prob, prob])
    order = np.argsort(u * n + v)
    return CleanEdges(
        u[order], v[order], None if prob is None else prob[order], len(loops), len(repeats)
    )
