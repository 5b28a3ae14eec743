"""The embedded store: SQLite with WAL and `synchronous=FULL`, one writer that owns checkpoints."""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from rapo_core.checks import UserError
from rapo_gate.events import KINDS, NUMBER, Event, NewEvent
from rapo_gate.fold.ledger import Rows, joined
from rapo_gate.log.file_lock import FileLock, files_of, make_private
from rapo_gate.log.store import READ_BYTES, BusyError, StoreError

SCHEMA, WITH_BASE = 1, 2
"""Of a log that is whole, and of one whose beginning was dropped."""
_COLUMNS = "SELECT position, kind, at, key, digest, body FROM events"
_CHUNK = 500
"""Keys of one query."""
_PIECE = 1_000_000
"""Rows of the ledger in one blob; SQLite's largest is a gigabyte."""


def _event(row: tuple[Any, ...]) -> Event:
    return Event(row[0], KINDS[row[1]], *row[2:])


class Transaction:
    """The log through one connection: an open transaction of the one writer, or a reader."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.appended = 0

    def tail(self, after: int) -> Iterator[Event]:
        """Nobody else appends to this file."""
        return iter(())

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key."""
        events = {}
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            rows = self.connection.execute(
                f"{_COLUMNS} WHERE key IN ({','.join('?' * len(part))})", part
            )
            events.update({row[3]: _event(row) for row in rows})
        return events

    def append(self, drafts: Sequence[NewEvent]) -> list[Event]:
        """Give drafts their positions and add them."""
        self.appended += len(drafts)
        last = self.connection.execute("SELECT max(position) FROM events").fetchone()[0] or 0
        events = [Event(last + 1 + i, *draft) for i, draft in enumerate(drafts)]
        self.connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
            [(e.position, NUMBER[e.kind], *e[2:]) for e in events],
        )
        return events

    def read(
        self, after: int, limit: int, kinds: Sequence[str] = (), newest: bool = False
    ) -> list[Event]:
        """Up to `limit` events after a position, those of this transaction included."""
        numbers = [NUMBER[kind] for kind in kinds]
        chosen = f" AND kind IN ({','.join('?' * len(numbers))})" if numbers else ""
        rows = self.connection.execute(
            f"{_COLUMNS} WHERE position > ?{chosen} "
            f"ORDER BY position {'DESC' if newest else 'ASC'} LIMIT ?",
            (after, *numbers, limit),
        )
        events, size = [], 0
        for row in rows:
            events.append(_event(row))
            size += len(events[-1].body)
            if size >= READ_BYTES:
                rows.close()
                break
        return events

    def replace(self, events: Sequence[Event]) -> None:
        """Give events that are there the key, digest and body of these."""
        self.connection.executemany(
            "UPDATE events SET key = ?, digest = ?, body = ? WHERE position = ?",
            [(e.key, e.digest, e.body, e.position) for e in events],
        )

    def save(self, position: int, data: bytes, rows: Rows, first_row: int) -> None:
        """Keep a snapshot, and the ledger from a row on."""
        run = self.connection.execute
        run("DELETE FROM ledger WHERE first_row >= ?", (first_row,))
        for i in range(0, rows.size, _PIECE):
            run("INSERT INTO ledger VALUES (?, ?)", (first_row + i, rows[i : i + _PIECE].tobytes()))
        run("DELETE FROM snapshots")
        run("INSERT INTO snapshots VALUES (?, ?, ?)", (position, data, first_row + rows.size))

    def keep(self, position: int, data: bytes, rows: Rows, *, base: bool = False) -> None:
        """Keep a snapshot instead of the others; or as the one that the log begins with."""
        if not base:
            self.save(position, data, rows, 0)
            return
        run = self.connection.execute
        run("CREATE TABLE IF NOT EXISTS base (first_row INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        run("DELETE FROM base")
        run("INSERT INTO base VALUES (-1, ?)", (data,))
        for i in range(0, rows.size, _PIECE):
            run("INSERT INTO base VALUES (?, ?)", (i, rows[i : i + _PIECE].tobytes()))
        run(f"PRAGMA user_version={WITH_BASE}")


APPLICATION = 0x5261706F  # "Rapo", in the file's header
SAFE_SQLITE = (3, 51, 3)
"""Older versions can corrupt a WAL that two connections reset at once; ours has one that does."""
_PATIENCE = 1.0
"""Seconds that a transaction waits for somebody else's; then the caller may try again."""
_OPENING = 10.0
"""Seconds that opening waits for that."""

_TABLES = """
CREATE TABLE events (
    position INTEGER PRIMARY KEY, kind INTEGER NOT NULL, at REAL NOT NULL,
    key TEXT, digest BLOB NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX events_by_key ON events (key) WHERE key IS NOT NULL;
CREATE INDEX events_by_kind ON events (kind, position) WHERE kind != 2;
CREATE TABLE snapshots (position INTEGER PRIMARY KEY, data BLOB NOT NULL, rows INTEGER NOT NULL);
CREATE TABLE ledger (first_row INTEGER PRIMARY KEY, rows BLOB NOT NULL);
"""


class SqliteStore:
    """A log in one file. One process writes; others may read it meanwhile.

    Args:
        address: path of the file.
        create: make the file if there is none.
        read_only: do not take the writer's place.
    """

    shared = False

    def __init__(self, address: str, *, create: bool = True, read_only: bool = False) -> None:
        self.address, self.read_only = str(address), read_only
        path = Path(address)
        if not path.exists() and (read_only or not create):
            raise FileNotFoundError(f"there is no gate at {address}; rapo-gate init makes one")
        if path.is_dir():
            raise IsADirectoryError(f"{address} is a folder; name a file for the gate")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent} for a gate")
        self._place: FileLock | None = FileLock(path, read_only=read_only)
        self._free: list[sqlite3.Connection] = []
        """Readers that nobody uses at the moment."""
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        try:
            if not read_only:
                self._writer = self._open_writer()
            with self._lent() as reader:
                self._check(reader, may_be_empty=False)
        except BaseException:
            self.close()
            raise

    def _open_writer(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < SAFE_SQLITE:
            warnings.warn(
                f"SQLite {sqlite3.sqlite_version} can damage a log that two connections checkpoint "
                "at once; this gate has one that does. Do not checkpoint the file from elsewhere.",
                stacklevel=4,
            )
        path = Path(self.address)
        if path.exists() and path.stat().st_size:
            with self._lent() as reader:  # closing a connection that may write changes files
                self._check(reader, may_be_empty=True)
        make_private(files_of(path))  # SQLite gives the database's mode to what it makes beside it
        writer = sqlite3.connect(
            self.address, _OPENING, isolation_level=None, check_same_thread=False
        )
        try:
            writer.execute("PRAGMA journal_mode=WAL")
            writer.execute("PRAGMA synchronous=FULL")
            writer.execute("PRAGMA wal_autocheckpoint=4000")
            if writer.execute("PRAGMA user_version").fetchone()[0] == 0:
                marks = f"PRAGMA application_id={APPLICATION};PRAGMA user_version={SCHEMA};"
                writer.executescript(f"BEGIN IMMEDIATE;{_TABLES}{marks}COMMIT;")
            writer.execute(f"PRAGMA busy_timeout={int(1000 * _PATIENCE)}")
        except BaseException as error:
            writer.close()
            if isinstance(error, sqlite3.Error):
                raise self._failed(error) from error
            raise
        return writer

    def _check(self, connection: sqlite3.Connection, *, may_be_empty: bool) -> None:
        """Refuse a file that is something else, before anything of it is changed."""
        try:
            mark = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise UserError(f"{self.address} is not a gate: {error}") from error
        if may_be_empty and not tables:
            return
        if mark != APPLICATION:
            raise UserError(f"{self.address} is a database of something else, not a gate")
        if version not in (SCHEMA, WITH_BASE):
            raise UserError(
                f"{self.address} has schema {version}, this version of rapo reads {WITH_BASE}"
            )

    @contextmanager
    def _lent(self) -> Iterator[sqlite3.Connection]:
        """A read-only connection for one caller at a time; it never checkpoints.

        There are as many as were ever in use at once, however many threads come and go.
        """
        try:
            reader = self._free.pop()
        except IndexError:
            uri = f"{Path(self.address).resolve().as_uri()}?mode=ro"
            reader = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            yield reader
        finally:
            self._free.append(reader)
            if self._closed:
                self._close_free()

    def _close_free(self) -> None:
        while self._free:
            try:
                self._free.pop().close()
            except IndexError:  # another thread took the last one
                return

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lent() as reader:
                yield reader
        except sqlite3.Error as error:
            raise StoreError(f"{self.address} cannot be read: {error}") from error

    @contextmanager
    def appending(
        self, after: int | None = None, keys: Sequence[str] = ()
    ) -> Iterator[Transaction]:
        """One transaction of the writer; a failure leaves the log as it was.

        Args:
            after: of no use here: nobody else appends to the file.
            keys: of no use either: looking for them costs no round trip.
        """
        writer = self._writer
        if writer is None:
            raise StoreError(f"{self.address} is open for reading only")
        try:
            writer.execute("BEGIN IMMEDIATE")
            yield Transaction(writer)
            writer.execute("COMMIT")
        except BaseException as error:
            begun = writer.in_transaction
            if begun:
                with suppress(sqlite3.Error):  # the first error is the one to tell
                    writer.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._failed(error, begun) from error
            raise

    def _failed(self, error: sqlite3.Error, begun: bool = False) -> StoreError:
        """What to tell the caller; only before a transaction has begun is it known to be `busy`."""
        code = getattr(error, "sqlite_errorcode", 0)  # not every error is SQLite's own
        if not begun and code & 0xFF == sqlite3.SQLITE_BUSY:
            return BusyError(f"{self.address}: {error}; another program is writing to the file")
        return StoreError(f"{self.address}: {error}; nothing was acknowledged")

    def read(
        self, after: int, limit: int, kinds: Sequence[str] = (), newest: bool = False
    ) -> list[Event]:
        """Up to `limit` events after a position."""
        with self._reading() as reader:
            return Transaction(reader).read(after, limit, kinds, newest)

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key."""
        with self._reading() as reader:
            return Transaction(reader).find(keys)

    def last(self) -> int:
        """Position of the newest event."""
        with self._reading() as reader:
            return int(reader.execute("SELECT max(position) FROM events").fetchone()[0] or 0)

    def save_snapshot(self, position: int, data: bytes, rows: Rows, first_row: int) -> None:
        """Keep a snapshot; the ledger's earlier rows are there already."""
        with self.appending() as turn:
            turn.save(position, data, rows, first_row)

    def load_snapshot(self) -> tuple[bytes, Rows] | None:
        """The newest snapshot and its ledger."""
        with self._reading() as reader:
            run = reader.execute
            row = run("SELECT data, rows FROM snapshots ORDER BY position DESC LIMIT 1").fetchone()
            if row is None:
                return None
            chosen = "SELECT rows FROM ledger WHERE first_row < ? ORDER BY first_row"
            return row[0], joined(run(chosen, (row[1],)))

    def load_base(self) -> tuple[bytes, Rows] | None:
        """The snapshot that the log begins with, if its beginning was dropped."""
        with self._reading() as reader:
            if reader.execute("PRAGMA user_version").fetchone()[0] != WITH_BASE:
                return None
            pieces = reader.execute("SELECT data FROM base ORDER BY first_row")
            return pieces.fetchone()[0], joined(pieces)

    def rewriting(self) -> AbstractContextManager[Transaction]:
        """One transaction of the writer; nobody else can be one."""
        return self.appending()

    def scrub(self) -> None:
        """Write the file anew and empty the WAL."""
        assert self._writer is not None
        self._close_free()
        last = time.monotonic() + _OPENING
        try:
            self._writer.execute("VACUUM")
            while self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > last:
                    raise StoreError(
                        f"somebody reads {self.address} all the time, so the files still hold what "
                        "was replaced; stop the readers and scrub it again"
                    )
                time.sleep(0.05)
        except sqlite3.Error as error:
            raise StoreError(f"{self.address} could not be written anew: {error}") from error

    def integrity(self) -> str:
        """SQLite's own check of the file, and whether positions have no gap."""
        with self._reading() as reader:
            verdict = str(reader.execute("PRAGMA integrity_check").fetchone()[0])
            count, first, last = reader.execute(
                "SELECT count(*), coalesce(min(position), 1), coalesce(max(position), 0) "
                "FROM events"
            ).fetchone()
        if verdict == "ok" and (first != 1 or count != last):
            return f"positions {first} to {last} hold {count} events: some are missing"
        return verdict

    def close(self) -> None:
        """Close every connection, the writer last, and give the place up."""
        self._closed = True
        self._close_free()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._place is not None:
            self._place.release()
            self._place = None
