"""Data frames as Parquet files: one for each frame of a job, or one for a frame of all jobs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pandas as pd

from rapo_core.checks import UserError
from rapo_core.files import written_whole

JOBS, ARCHIVE = "jobs", "archive"
"""Folders of the results: a folder for each job, and the frames of all jobs below each other."""


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


def job_table(root: Path, key: str, name: str) -> pd.DataFrame | None:
    """A frame of a job, from the folder of the job or from the archive; None if it is in neither.

    Args:
        root: folder of the results.
        key: of the job.
        name: of the frame.
    """
    path = root / JOBS / key / f"{name}.parquet"
    if path.exists():
        return read_table(path)
    path = root / ARCHIVE / f"{name}.parquet"
    if not path.exists():
        return None
    return _by_job(path, path.stat().st_mtime_ns).get(key)


@lru_cache(maxsize=8)
def _by_job(path: Path, modified: int) -> dict[str, pd.DataFrame]:
    """The frames in a file of the archive, by job; the file is read once for each of its states."""
    groups = read_table(path).groupby("job", sort=False)
    return {str(key): part.drop(columns="job").reset_index(drop=True) for key, part in groups}


def archive(root: Path) -> int:
    """Write each frame of all jobs below each other to a file in `archive`, to be kept.

    Frames that were archived before stay, unless the folder of their job holds them again.

    Args:
        root: folder of the results.

    Returns:
        How many jobs the archive holds.

    Raises:
        UserError: there is nothing to archive.
    """
    paths = sorted(root.glob(f"{JOBS}/*/*.parquet"))
    if not paths:
        raise UserError(f"{root / JOBS} holds no frames of jobs; nothing was archived")
    keys: set[str] = set()
    for name in sorted({path.stem for path in paths}):
        frames = {path.parent.name: read_table(path) for path in paths if path.stem == name}
        file = root / ARCHIVE / f"{name}.parquet"
        if file.exists():
            frames = {**_by_job(file, file.stat().st_mtime_ns), **frames}
        keys |= set(frames)
        parts = [frame.assign(job=key) for key, frame in sorted(frames.items())]
        whole = pd.concat(parts, ignore_index=True)
        write_table(file, whole[["job", *whole.columns.drop("job")]])
    return len(keys)
