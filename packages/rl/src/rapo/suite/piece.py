"""What one platform of the suite leaves on disk: a Parquet file; the first suites wrote JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rapo.paper.piece_folder import existing
from rapo.paper.pieces import read_rows, write_rows

_OF_RUN = ("kernel", "action")
"""What a run has once; all else it has for every episode."""


def piece_path(root: Path, key: str) -> Path:
    """Where the piece of a key is, or will be."""
    return existing(root / "pieces" / f"{key}.parquet")


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a piece; a kill leaves a whole one or none.

    Args:
        path: of the Parquet file.
        content: JSON values; `runs` holds, for each run, words, numbers and lists by episode,
            which may lie one mapping deep.
    """
    rest = {name: value for name, value in content.items() if name != "runs"}
    rest["names"] = [list(run) for run in content["runs"]]
    rows = [row for i, run in enumerate(content["runs"]) for row in _by_episode(i, run)]
    write_rows(path, {**rest, "rows": rows})


def read(path: Path) -> dict[str, Any]:
    """What was written.

    Raises:
        ValueError: it cannot be read.
    """
    content = read_rows(path)
    if "rows" in content:
        rows, names = content.pop("rows"), content.pop("names")
        content["runs"] = [
            _run([row for row in rows if row["run"] == i], named) for i, named in enumerate(names)
        ]
    return content


def _by_episode(i: int, run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row per episode of run `i`: the item of every list, and all else as it is."""
    for e in range(len(run["reach"])):
        yield {"run": i, **_item(run, e)}


def _item(values: Mapping[str, Any], e: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out[name] = _item(value, e)
        else:
            out[name] = value[e] if isinstance(value, list) else value
    return out


def _run(mine: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The rows of a run, put together again."""
    words = {name: mine[0][name] for name in names if name in _OF_RUN}
    return words | {
        name: _listed([row[name] for row in mine]) for name in names if name not in words
    }


def _listed(items: Sequence[Any]) -> Any:
    """Items of all episodes as lists."""
    if isinstance(items[0], Mapping):
        return {name: _listed([item[name] for item in items]) for name in items[0]}
    return list(items)
