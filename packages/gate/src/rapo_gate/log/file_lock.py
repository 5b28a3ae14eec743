"""The writer's lock on a file: one process has it, by whatever name it came; the file is private.

Two locks stand for it. One is on `<real path>.lock`, which also says who has it. The other is on a
byte of the database itself, far beyond its end: that one is met through a hard link or a bind mount
as well, where the lock file would be another. It belongs to the open file (an "open file
description lock"), so it neither meets SQLite's own locks nor goes when SQLite closes a file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import threading
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rapo_gate.log.store import StoreError

PRIVATE = 0o600
"""Mode of every file of a gate: it holds who reported whom."""
_FAR = 1 << 62
"""The byte that is locked; SQLite's own locks are at 1 GiB."""
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, process

_guard = threading.Lock()
_users: Counter[tuple[int, int]] = Counter()
"""Stores of this process, by device and inode."""
_open: dict[tuple[int, int], list[int]] = {}
"""Descriptors that are closed with the last of them: closing any descriptor of a file drops all
POSIX locks that this process has on it, and SQLite's are among them."""


class FileLock:
    """A store's hold on a file, to be let go after its last connection was closed.

    Args:
        path: of the database; made if it is to be written and is not there.
        read_only: do not become the writer.

    Raises:
        StoreError: another store writes the file, or the file has several names.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self._lock_file: int | None = None
        self._database: int | None = None
        self._inode: tuple[int, int] | None = None
        real = Path(os.path.realpath(path))
        try:
            if read_only:
                self._join(real.stat())
            else:
                self._take(path, real)
        except BaseException:
            self.release()
            raise

    def _take(self, path: Path, real: Path) -> None:
        self._lock_file = os.open(f"{real}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._lock_file, 100).decode(errors="replace").strip()
            raise _taken(path, holder or "another process") from None
        new = not real.exists()
        with _guard:  # nobody may close a descriptor of this file between these steps
            database = os.open(real, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
            if new:
                os.fchmod(database, PRIVATE)  # whatever the umask says
            about = os.fstat(database)
            self._join_guarded(about)
            _open.setdefault((about.st_dev, about.st_ino), []).append(database)
        if not _lock(database, fcntl.F_WRLCK):
            raise _taken(path, "another process, which knows it by another name")
        self._database = database
        if about.st_nlink > 1:
            raise StoreError(
                f"{path} has {about.st_nlink} names (hard links); SQLite keeps the newest events "
                "beside one of them, so each name would see another log: keep one and remove the "
                "rest"
            )
        os.ftruncate(self._lock_file, 0)
        os.pwrite(self._lock_file, f"process {os.getpid()}".encode(), 0)

    def _join(self, about: os.stat_result) -> None:
        with _guard:
            self._join_guarded(about)

    def _join_guarded(self, about: os.stat_result) -> None:
        self._inode = (about.st_dev, about.st_ino)
        _users[self._inode] += 1

    def release(self) -> None:
        """Let go; may be called twice."""
        if self._database is not None:
            _lock(self._database, fcntl.F_UNLCK)
            self._database = None
        if self._inode is not None:
            with _guard:
                _users[self._inode] -= 1
                if not _users[self._inode]:
                    del _users[self._inode]
                    for descriptor in _open.pop(self._inode, []):
                        os.close(descriptor)
            self._inode = None
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None


def _taken(path: Path, holder: str) -> StoreError:
    return StoreError(f"{path} is being written by {holder}; use its HTTP API, or stop it first")


def _lock(descriptor: int, kind: int) -> bool:
    """Set or free the lock on the far byte; True also where the system has no such locks."""
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:  # not Linux: the lock file must do
        return True
    try:
        fcntl.fcntl(descriptor, command, struct.pack(_FLOCK, kind, os.SEEK_SET, _FAR, 1, 0))
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True


def files_of(path: Path) -> list[Path]:
    """The database and what SQLite and the gate keep beside it."""
    real = os.path.realpath(path)
    return [Path(real + end) for end in ("", "-wal", "-shm", "-journal", ".lock")]


def make_private(paths: Iterable[Path]) -> None:
    """Take every right from group and others, and say where there were any."""
    open_to_others = []
    for path in paths:
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode != PRIVATE:
                path.chmod(PRIVATE)
        except FileNotFoundError:
            continue
        except OSError as error:
            warnings.warn(
                f"{path} has mode {mode:o} and cannot be made private: {error.strerror}; "
                "run the gate as the file's owner, on a file system that has modes",
                stacklevel=5,
            )
            continue
        if mode & 0o077:
            open_to_others.append(f"{path.name} ({mode:o})")
    if open_to_others:
        warnings.warn(
            f"other users could open {', '.join(open_to_others)}; the mode is {PRIVATE:o} now",
            stacklevel=5,
        )
