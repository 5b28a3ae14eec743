"""Files that are written whole or not at all, and are never overwritten unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def written_whole(path: Path | str) -> Iterator[Path]:
    """Give a name beside `path` to write to; what lies there takes the place of `path` at the end.

    A reader sees the earlier file or the new one, never a part. If the block raises, nothing of the
    new file stays. A folder that is missing is made. The name keeps the suffix of `path`, by which
    writers tell the format.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "table.csv"
    >>> with written_whole(path) as part:
    ...     _ = part.write_text("a,b")
    >>> path.read_text()
    'a,b'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def refuse_to_overwrite(*files: Path | str, force: bool = False, option: str = "--out") -> None:
    """Refuse files that cannot be written, or that exist and would be overwritten.

    Args:
        files: what is going to be written.
        force: whether files that exist may be overwritten.
        option: of the command line, by which another name is given.

    Raises:
        FileExistsError: a file exists and `force` is false, or a folder is in a file's place, or
            the other way round.
    """
    for path in map(Path, files):
        for parent in path.parents:
            if parent.exists() and not parent.is_dir():
                raise FileExistsError(f"{parent} is a file; choose another {option}")
        if path.is_dir():
            raise FileExistsError(f"{path} is a folder; choose another {option}")
        if path.exists() and not force:
            raise FileExistsError(
                f"{path} exists; choose another {option} or pass --force (in Python: force=True)"
            )
