"""Data frames as Parquet files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from rapo_core.checks import UserError
from rapo_core.files import written_whole


def need_pyarrow() -> None:
    """Say what to install before hours of work end at the first table."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"results are Parquet files and need pyarrow: pip install 'rapo-rl[paper]' ({error})"
        ) from error


def write_table(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame with its numbers in single precision; a kill leaves a whole file or none."""
    import pyarrow as pa
    from pyarrow import parquet

    frame = frame.astype(dict.fromkeys(frame.select_dtypes("float64").columns, "float32"))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with written_whole(path) as part:
        parquet.write_table(table, part, compression="zstd", write_page_checksum=True)


def read_table(path: Path) -> pd.DataFrame:
    """Read what `write_table` wrote, with numbers in double precision.

    Raises:
        UserError: the file is damaged.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        frame = parquet.read_table(path, page_checksum_verification=True).to_pandas()
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"{path} is damaged ({error}); remove {path.parent} and run the command again"
        ) from error
    assert isinstance(frame, pd.DataFrame)
    return frame.astype(dict.fromkeys(frame.select_dtypes("float32").columns, "float64"))
