"""What an evaluation leaves on disk: one small Parquet file; version 0.1 wrote JSON.

A row per series (a column of the episodes, or a curve): `part`, `name`, and its numbers in `whole`
or in `values`. Sixty columns of twenty numbers would be mostly footer. Everything else is JSON in
the file's metadata.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError

SUFFIXES = (".parquet", ".json")
"""Of a piece, the present one first."""
PARTS = {"episodes": 6, "curves": 5}
"""Parts that hold series, and the digits that are kept of their numbers."""
SERIES = ("part", "name", "whole", "values")
"""Columns of a piece of series."""
METRICS = ("RAG", "AUC_R", "SM_R", "ReplayReturn")
"""Series of episodes that a piece has whoever wrote it."""
_META = b"piece"
_ELEMENT = "values.list.element"


def need_pyarrow() -> None:
    """Say what to install before hours of work end at the first piece."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"pieces are Parquet files and need pyarrow; pip install 'rapo-rl[paper]' ({error})"
        ) from error


def write_piece(path: Path, content: Mapping[str, Any]) -> None:
    """Write a piece; a kill leaves a whole one or none.

    Args:
        path: of the Parquet file.
        content: JSON values, but for `episodes` and `curves`: series (numbers or None) by name.
    """
    rows = [row for part in PARTS for row in series_rows(content, part)]
    rest = {name: value for name, value in content.items() if name not in PARTS}
    write_series(path, {name: [row[name] for row in rows] for name in SERIES}, rest)


def series_rows(
    content: Mapping[str, Any], part: str, digits: int | None = None
) -> Iterator[dict[str, Any]]:
    """Each series of a part: `part`, `name`, and its numbers in `whole` or `values`.

    Args:
        content: of a piece.
        part: one of `PARTS`.
        digits: that are kept, at most six; default those of the part.
    """
    for name, series in content[part].items():
        array = np.asarray(series)
        whole = array.dtype.kind in "iu"
        yield {
            "part": part,
            "name": name,
            "whole": array.tolist() if whole else None,
            "values": None if whole else _kept(series, digits or PARTS[part]),
        }


def series_of(row: Mapping[str, Any], digits: int) -> list[float]:
    """The numbers of a row of `series_rows`, with so many digits."""
    if row["whole"] is not None:
        return list(row["whole"])
    values: list[float] = rounded(np.array(row["values"], float), digits).tolist()
    return values


def write_series(
    path: Path, columns: Mapping[str, Any], rest: Mapping[str, Any], words: Sequence[str] = ()
) -> None:
    """Write columns of series, and of words, of which those of `words` repeat."""
    need_pyarrow()
    import pyarrow as pa

    kinds = {"whole": pa.list_(pa.int64()), "values": pa.list_(pa.float32())}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    table = pa.table(dict(columns), schema=schema)
    write_table(
        path,
        table,
        rest,
        column_encoding={_ELEMENT: "BYTE_STREAM_SPLIT"},
        use_dictionary=list(words) or False,
    )


def write_table(path: Path, table: Any, rest: Mapping[str, Any], **options: Any) -> None:
    """A table with JSON in its metadata; a kill leaves a whole file or none."""
    from pyarrow import parquet

    data = BytesIO()
    with parquet.ParquetWriter(
        data,
        table.schema,
        compression="zstd",
        compression_level=19,
        write_statistics=False,
        store_schema=False,
        write_page_checksum=True,
        **{"use_dictionary": False, **options},
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({_META: json.dumps(rest)})
    path.parent.mkdir(parents=True, exist_ok=True)
    part_file = path.with_suffix(f".{os.getpid()}.part")
    part_file.write_bytes(data.getvalue())
    part_file.replace(path)


def read_table(path: Path) -> tuple[Any, dict[str, Any]]:
    """Table and metadata of a piece."""
    need_pyarrow()
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(BytesIO(path.read_bytes()), page_checksum_verification=True)
        content: dict[str, Any] = json.loads((file.metadata.metadata or {})[_META])
        return file.read(), content
    except (pa.ArrowException, OSError, KeyError, TypeError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise UserError(f"not a piece: {error}") from error


def read_file(path: Path) -> Any:
    """What a piece in a file of its own holds, numbers with their six or five digits.

    Raises:
        ValueError: it cannot be read.
    """
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    table, content = read_table(path)
    try:
        content |= {part: {} for part in PARTS}
        for row in table.to_pylist():
            content[row["part"]][row["name"]] = series_of(row, PARTS[row["part"]])
    except (KeyError, TypeError) as error:
        raise UserError(f"not a piece: {error}") from error
    return content


def _kept(series: Any, digits: int) -> npt.NDArray[np.float32]:
    """Single precision; without the bits that five digits do not need, if that is what is kept."""
    values = rounded(np.asarray(series, float), digits).astype(np.float32)
    if digits < 6:
        bits = values.view(np.uint32)
        short = ((bits + np.uint32(1 << 5)) & np.uint32(0xFFFFFFC0)).view(np.float32)
        values = np.where(np.isfinite(values), short, values)
    return values


def write_rows(path: Path, content: Mapping[str, Any]) -> None:
    """Write a piece whose `rows` are nested JSON values, numbers with all their digits.

    A line of the file is a leaf of the rows, such as `means.RAG`, with its numbers over them; words
    and truth values are with all else in the metadata. A row without a leaf has None there.
    """
    need_pyarrow()
    import pyarrow as pa

    rows = [dict(_leaves(row)) for row in content["rows"]]
    series = {name: [row.get(name) for row in rows] for row in rows for name in row}
    lines: dict[str, list[Any]] = {"name": [], "whole": [], "values": []}
    words = {}
    for name, values in series.items():
        kinds = {type(value) for value in values if value is not None}
        if not kinds or not kinds <= {int, float}:
            words[name] = values
            continue
        lines["name"].append(name)
        lines["whole"].append(values if kinds == {int} else None)
        lines["values"].append(None if kinds == {int} else values)
    types = (pa.string(), pa.list_(pa.int64()), pa.list_(pa.float64()))
    rest = {name: value for name, value in content.items() if name != "rows"}
    rest |= {"order": list(series), "words": words}
    write_table(path, pa.table(lines, schema=pa.schema(zip(lines, types, strict=True))), rest)


def read_rows(path: Path) -> dict[str, Any]:
    """What `write_rows` wrote, or the JSON of before.

    Raises:
        ValueError: it cannot be read.
    """
    if path.suffix == ".json":
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    table, content = read_table(path)
    try:
        order, series = content.pop("order"), content.pop("words")
        for line in table.to_pylist():
            series[line["name"]] = line["values"] if line["whole"] is None else line["whole"]
        columns = [series[name] for name in order]
    except KeyError as error:
        raise UserError(f"not a piece: {error}") from error
    content["rows"] = [
        _nested(dict(zip(order, leaves, strict=True))) for leaves in zip(*columns, strict=True)
    ]
    return content


def _leaves(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _nested(leaves: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in leaves.items():
        *parents, leaf = name.split(".")
        place = out
        for parent in parents:
            place = place.setdefault(parent, {})
        place[leaf] = value
    return out


def rounded(values: npt.NDArray[np.float64], digits: int) -> npt.NDArray[np.float64]:
    """Numbers with so many significant digits, as `float(f"{v:.6g}")` has six.

    >>> rounded(np.array([0.6499999762, 123456789.0, -0.0, np.nan]), 6).tolist()
    [0.65, 123457000.0, -0.0, nan]
    """
    known = np.isfinite(values) & (values != 0)
    size = np.zeros_like(values)
    size[known] = digits - 1 - np.floor(np.log10(np.abs(values[known])))
    up, down = 10.0 ** np.maximum(size, 0), 10.0 ** np.maximum(-size, 0)
    # powers of ten are exact up to 22, so one division gives the nearest number
    exact = size <= 22
    out = np.where(known & exact, np.round(values * up / down) / up * down, values)
    out[~exact] = [float(f"{value:.{digits}g}") for value in values[~exact]]
    return out
