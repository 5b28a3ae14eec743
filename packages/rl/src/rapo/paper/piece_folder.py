"""Where the pieces of a results folder are: each in a file of its own, or all packed into one.

A run writes files, so that a cut one keeps what is finished. `pack` puts the pieces of evaluations
into one table with a row per series of numbers; what is no series is in its metadata, by key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapo.paper.pieces import (
    METRICS,
    PARTS,
    SERIES,
    SUFFIXES,
    need_pyarrow,
    read_file,
    read_table,
    series_of,
    series_rows,
    write_series,
)
from rapo_core.checks import UserError

PACK = "packed.parquet"
"""Name of the file, in the folder of the pieces."""
PACK_REMEDY = "take the file from where it was kept, or remove it and run again"


class DamagedPackError(UserError):
    """A pack cannot be read."""


def existing(path: Path) -> Path:
    """Where a piece is: its own file of either format, the pack of its folder, else `path`."""
    files = (path.with_suffix(suffix) for suffix in SUFFIXES)
    found = next((p for p in files if p.exists()), None)
    if found is None and path.stem in packed(path.parent):
        return path.parent / PACK
    return found or path


def read_content(path: Path) -> Any:
    """What the piece of an evaluation holds, wherever it is: JSON values.

    Args:
        path: where it would be in a file of its own.

    Raises:
        ValueError: it cannot be read.
    """
    place = existing(path)
    if place == path.parent / PACK:
        return packed(path.parent)[path.stem]
    return read_file(place)


class Pack(Mapping[str, Any]):
    """Contents of packed pieces by key.

    Args:
        path: of the file.

    Raises:
        DamagedPackError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._table, self._pieces = read_table(path)
            if tuple(self._table.column_names) != ("key", *SERIES):
                raise UserError(f"its columns are {', '.join(self._table.column_names)}")
            self._places = _places(self._table)
        except (OSError, ValueError) as error:
            raise DamagedPackError(f"{path} is damaged ({error}); {PACK_REMEDY}") from error

    def __getitem__(self, key: str) -> Any:
        content = dict(self._pieces[key])
        for part, digits in {**PARTS, **content.get("digits", {})}.items():
            start, stop = self._places.get((part, key), (0, 0))
            rows = self._table.slice(start, stop - start).to_pylist()
            content[part] = {row["name"]: series_of(row, digits) for row in rows}
        return content

    def __contains__(self, key: object) -> bool:
        return key in self._pieces

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)


def _places(table: Any) -> dict[tuple[str, str], tuple[int, int]]:
    """First row of each part of a piece, by part and key, and the row after its last."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    parts, keys = (table[name].to_pylist() for name in ("part", "key"))
    for row, place in enumerate(zip(parts, keys, strict=True)):
        first, after = found.get(place, (row, row))
        if after != row:
            raise UserError(f"rows of {place[1]} do not stand together")
        found[place] = (first, row + 1)
    return found


def packed(folder: Path) -> Mapping[str, Any]:
    """Contents by key of what is packed in a folder of pieces; empty if nothing is.

    Raises:
        DamagedPackError: it cannot be read.
    """
    path = folder / PACK
    try:
        stamp = path.stat()
    except FileNotFoundError:
        return {}
    need_pyarrow()
    return _opened(path, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=4)
def _opened(path: Path, modified: int, size: int) -> Pack:
    """A pack, once for each state of its file."""
    return Pack(path)


def pack(root: Path) -> tuple[int, int]:
    """Put the pieces of evaluations of a folder of results into one file.

    Pieces in files of their own are over those that were packed before, and are removed once that
    is whole. Pieces of rows stay as they are: there are few.

    Args:
        root: folder of the results.

    Returns:
        Pieces that were in files of their own, and all that are packed now.

    Raises:
        ValueError: one is damaged, or there is none; nothing has changed then.
    """
    folder = root / "pieces"
    contents = dict(packed(folder))
    files: dict[str, list[Path]] = {}
    for suffix in SUFFIXES:
        for path in sorted(folder.glob(f"*{suffix}")):
            if path.name != PACK:
                files.setdefault(path.stem, []).append(path)
    for key, (path, *_) in list(files.items()):
        content = _content_of(path)
        if content is None:
            del files[key]
        else:
            contents[key] = content
    if not contents:
        raise UserError(
            f"{folder} holds no piece of an evaluation; what rapo reproduce makes of the paper's "
            "studies can be packed, other results are few files"
        )
    if files:
        _write_pack(folder, contents)
        for paths in files.values():
            for path in reversed(paths):  # the present format last: it is over the older one
                path.unlink()
    return len(files), len(contents)


def _content_of(path: Path) -> dict[str, Any] | None:
    """What a file holds, checked; none if it is no piece of an evaluation."""
    try:
        if path.suffix != ".json" and "part" not in read_table(path)[0].column_names:
            return None
        content: dict[str, Any] = read_file(path)
        if not isinstance(content, dict) or "episodes" not in content:
            return None
        if content["key"] != path.stem:
            raise UserError(f"not a piece of {path.stem}")
        lacking = [name for name in METRICS if name not in content["episodes"]]
        if lacking:
            raise UserError(f"no column {lacking[0]}")
        if len({len(series) for series in content["episodes"].values()}) != 1:
            raise UserError("columns of different lengths")
        if path.suffix == ".json":  # its curves have more digits than those of today
            content["digits"] = dict.fromkeys(PARTS, max(PARTS.values()))
        for part in PARTS:
            list(_rows(content, part))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(f"{path} is damaged ({error}); remove it and run again") from error
    return content


def _rows(content: Mapping[str, Any], part: str) -> Iterator[dict[str, Any]]:
    return series_rows(content, part, content.get("digits", {}).get(part))


def _write_pack(folder: Path, contents: Mapping[str, Mapping[str, Any]]) -> None:
    """One part after the other, so that like numbers are neighbours."""
    keys = sorted(contents)
    rows = [{"key": key, **row} for part in PARTS for key in keys
            for row in _rows(contents[key], part)]  # fmt: skip
    columns = {name: [row[name] for row in rows] for name in ("key", *SERIES)}
    plain = {
        key: {name: value for name, value in contents[key].items() if name not in PARTS}
        for key in keys
    }
    write_series(folder / PACK, columns, plain, words=("key", "part", "name"))
