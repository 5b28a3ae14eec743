"""One program at a time in a folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rapo_core.checks import UserError


class InUseError(UserError):
    """Another program holds the folder."""


@contextmanager
def locked(out: Path, holder: str = "a training run") -> Iterator[None]:
    """Make a folder and hold it; the lock of a process that was killed is gone with the process.

    Args:
        out: the folder.
        holder: what holds the folder, as the refusal of another program will call it.

    Raises:
        InUseError: another program holds the folder; the message says which.
        UserError: `out` is a file.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            other = file.read() or "another program"
            raise InUseError(
                f"{out} is in use by {other}; wait until it ends or choose another --out"
            ) from None
        file.truncate(0)
        file.write(f"{holder} (process {os.getpid()})")
        file.flush()
        yield
