"""Where the pieces of a results folder are: each in a file of its own, or all packed into two.

A run writes files, so that a cut one keeps what is finished. `pack` puts the pieces of evaluations
into a row per series of numbers: a thousand files become `episodes.parquet` and `curves.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rapo.experiments.pieces import (
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

PACKED = {part: f"{part}.parquet" for part in PARTS}
"""File of each part, in the folder of the pieces."""


def existing(path: Path) -> Path:
    """Where a piece is: its own file of either format, the pack of its folder, else `path`."""
    files = (path.with_suffix(suffix) for suffix in SUFFIXES)
    found = next((p for p in files if p.exists()), None)
    if found is None and path.stem in packed(path.parent):
        return path.parent / PACKED["episodes"]
    return found or path


def read_content(path: Path) -> Any:
    """What the piece of an evaluation holds, wherever it is: JSON values.

    Args:
        path: where it would be in a file of its own.

    Raises:
        ValueError: it cannot be read.
    """
    place = existing(path)
    if place == path.parent / PACKED["episodes"]:
        return packed(path.parent)[path.stem]
    return read_file(place)


class Pack(Mapping[str, Any]):
    """Contents of packed pieces by key; numbers are read when the first one is asked for.

    Args:
        folder: of the pieces.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rest: dict[str, Any] = self._read("episodes")[1]

    def __getitem__(self, key: str) -> Any:
        content = dict(self._rest[key])
        for part, (table, places) in self._series.items():
            start, stop = places.get(key, (0, 0))
            rows = table.slice(start, stop - start).to_pylist()
            content[part] = {row["name"]: series_of(row, part) for row in rows}
        return content

    def __contains__(self, key: object) -> bool:
        return key in self._rest

    def __iter__(self) -> Iterator[str]:
        return iter(self._rest)

    def __len__(self) -> int:
        return len(self._rest)

    @cached_property
    def _series(self) -> dict[str, tuple[Any, dict[str, tuple[int, int]]]]:
        """By part: its table, and first and last row but one of each key."""
        found = {}
        for part in PARTS:
            table, _ = self._read(part)
            places: dict[str, tuple[int, int]] = {}
            for row, key in enumerate(table["key"].to_pylist()):
                places[key] = (places.get(key, (row, row))[0], row + 1)
            found[part] = (table, places)
        return found

    def _read(self, part: str) -> tuple[Any, dict[str, Any]]:
        path = self.folder / PACKED[part]
        try:
            table, rest = read_table(path)
            if table.column_names != ["key", *SERIES[1:]]:
                raise ValueError(f"its columns are {', '.join(table.column_names)}")
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{path} is damaged ({error}); take it from where it was kept, or remove it and "
                "run again"
            ) from error
        return table, rest


def packed(folder: Path) -> Mapping[str, Any]:
    """Contents by key of what is packed in a folder of pieces; empty if nothing is."""
    try:
        stamps = [(folder / name).stat() for name in PACKED.values()]
    except FileNotFoundError as error:
        if (folder / PACKED["episodes"]).exists():
            raise ValueError(f"{error.filename} is missing beside {PACKED['episodes']}") from error
        return {}
    need_pyarrow()
    return _opened(folder, *((stamp.st_mtime_ns, stamp.st_size) for stamp in stamps))


@lru_cache(maxsize=4)
def _opened(folder: Path, *stamps: tuple[int, int]) -> Pack:
    """The pack of a folder, once for each state of its files."""
    return Pack(folder)


def pack(root: Path) -> tuple[int, int]:
    """Put the pieces of evaluations into the two files of a folder of results.

    Pieces in files of their own are over those that were packed before, and are removed once both
    files are whole. Pieces of rows stay as they are: there are few.

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
            if path.name not in PACKED.values():
                files.setdefault(path.stem, []).append(path)
    for key, (path, *_) in list(files.items()):
        content = _series_content(path)
        if content is None:
            del files[key]
        else:
            contents[key] = content
    if not contents:
        raise ValueError(f"{folder} holds no piece of an evaluation")
    if files:
        _write_pack(folder, contents)
        for path in (path for paths in files.values() for path in paths):
            path.unlink()
    return len(files), len(contents)


def _series_content(path: Path) -> dict[str, Any] | None:
    """What a file holds; none if that is a piece of rows."""
    try:
        if path.suffix != ".json" and "part" not in read_table(path)[0].column_names:
            return None
        content: dict[str, Any] = read_file(path)
        if path.suffix == ".json" and "rows" in content:
            return None
        if content["key"] != path.stem or not all(part in content for part in PARTS):
            raise ValueError(f"not a piece of {path.stem}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}); remove it and run again") from error
    return content


def _write_pack(folder: Path, contents: Mapping[str, Mapping[str, Any]]) -> None:
    """Both files; that of the episodes, which says what there is, comes last."""
    rest = {
        key: {name: value for name, value in contents[key].items() if name not in PARTS}
        for key in sorted(contents)
    }
    for part in reversed(PARTS):
        rows = [{"key": key, **row} for key in rest for row in series_rows(contents[key], part)]
        columns = {name: [row[name] for row in rows] for name in ("key", *SERIES[1:])}
        told = rest if part == "episodes" else {}
        write_series(folder / PACKED[part], columns, told, words=("key", "name"))
