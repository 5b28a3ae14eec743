"""What an evaluation leaves on disk: one small Parquet file; version 0.1 wrote JSON.

A row per series (a column of the episodes, or a curve): `part`, `name`, and its numbers in `whole`
or in `values`. Sixty columns of twenty numbers would be mostly footer. Everything else is JSON in
the file's metadata.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SUFFIXES = (".parquet", ".json")
"""Of a piece, the present one first."""
PARTS = {"episodes": 6, "curves": 5}
"""Parts that hold series, and the digits that are kept of their numbers."""
_META = b"piece"
_ELEMENT = "values.list.element"


def need_pyarrow() -> None:
    """Say what to install before hours of work end at the first piece."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ValueError(
            f"pieces are Parquet files and need pyarrow; pip install 'rapo-rl[studies]' ({error})"
        ) from error


def existing(path: Path) -> Path:
    """Where a piece is: at `path`, or beside it in the older format; `path` if at neither."""
    found = (path.with_suffix(suffix) for suffix in SUFFIXES)
    return next((p for p in found if p.exists()), path)


def write_piece(path: Path, content: Mapping[str, Any]) -> None:
    """Write a piece; a kill leaves a whole one or none.

    Args:
        path: of the Parquet file.
        content: JSON values, but for `episodes` and `curves`: series (numbers or None) by name.
    """
    need_pyarrow()
    import pyarrow as pa
    from pyarrow import parquet

    rows: dict[str, list[Any]] = {"part": [], "name": [], "whole": [], "values": []}
    for part in PARTS:
        for name, series in content[part].items():
            array = np.asarray(series)
            whole = array.dtype.kind in "iu"
            rows["part"].append(part)
            rows["name"].append(name)
            rows["whole"].append(array.tolist() if whole else None)
            rows["values"].append(None if whole else _kept(series, part))
    kinds = (pa.string(), pa.string(), pa.list_(pa.int64()), pa.list_(pa.float32()))
    rest = {name: value for name, value in content.items() if name not in PARTS}
    schema = pa.schema(zip(rows, kinds, strict=True))
    data = BytesIO()
    with parquet.ParquetWriter(
        data, schema, compression="zstd", compression_level=19, use_dictionary=False,
        write_statistics=False, store_schema=False,
        column_encoding={_ELEMENT: "BYTE_STREAM_SPLIT"},
    ) as writer:  # fmt: skip
        writer.write_table(pa.table(rows, schema=schema))
        writer.add_key_value_metadata({_META: json.dumps(rest)})
    path.parent.mkdir(parents=True, exist_ok=True)
    part_file = path.with_suffix(f".{os.getpid()}.part")
    part_file.write_bytes(data.getvalue())
    part_file.replace(path)


def read_content(path: Path) -> Any:
    """What a piece of either format holds, numbers with their six or five digits.

    Raises:
        ValueError: it cannot be read.
    """
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    need_pyarrow()
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(BytesIO(path.read_bytes()))
        table = file.read()
        content = json.loads((file.metadata.metadata or {})[_META])
        content |= {part: {} for part in PARTS}
        for row in table.to_pylist():
            series = row["whole"]
            if series is None:
                series = rounded(np.array(row["values"], float), PARTS[row["part"]]).tolist()
            content[row["part"]][row["name"]] = series
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise ValueError(f"not a piece: {error}") from error
    return content


def _kept(series: Any, part: str) -> npt.NDArray[np.float32]:
    """Single precision; of curves without the bits that five digits do not need."""
    values = rounded(np.asarray(series, float), PARTS[part]).astype(np.float32)
    if part == "curves":
        bits = values.view(np.uint32)
        short = ((bits + np.uint32(1 << 5)) & np.uint32(0xFFFFFFC0)).view(np.float32)
        values = np.where(np.isfinite(values), short, values)
    return values


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
    return np.where(known & (size <= 22), np.round(values * up / down) / up * down, values)
