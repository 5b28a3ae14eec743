"""The shared store: PostgreSQL holds the log, one appender at a time by an advisory lock.

Replicas append in turn. The server gives the lock back when an appender dies, and ends the session
of one that stops moving, so nobody waits for ever. A connection that was lost is made again on its
next use. When it is lost during a commit nobody knows what became of that transaction until the
lock is held again: then it is in the log, or it never will be.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from rapo_core.checks import UserError
from rapo_gate.events import NUMBER, Event
from rapo_gate.fold.ledger import Rows, joined
from rapo_gate.log.postgres_transaction import (
    APPENDER,
    SCHEMA,
    WITH_BASE,
    MaintenanceTransaction,
    Transaction,
    find,
    integrity,
    one,
    read,
    save,
)
from rapo_gate.log.session import (
    ANSWER,
    Pool,
    Session,
    checked_address,
    connect,
    is_lost,
    psycopg,
    safe_address,
)
from rapo_gate.log.store import StoreError

_KEEPER = 0x5261706F_00000002
"""Advisory lock of whoever keeps a snapshot."""
_OPEN = 0x5261706F_00000003
"""Advisory lock that everybody shares who may append, and that a rewrite needs alone."""
_VERSION = "SELECT max(schema_version) FROM rapo_gate.about"
_REWRITTEN = (
    "SELECT coalesce(max(position), 0) FROM rapo_gate.events WHERE kind IN "
    f"({NUMBER['Erasure']}, {NUMBER['Compaction']})"
)
_CHECK = 600.0
"""Seconds that a check of the whole log, or keeping a snapshot, may take."""

_TABLES = f"""
CREATE SCHEMA rapo_gate;
CREATE TABLE rapo_gate.about (schema_version integer NOT NULL);
INSERT INTO rapo_gate.about VALUES ({SCHEMA});
CREATE TABLE rapo_gate.events (
    position bigint PRIMARY KEY, kind smallint NOT NULL, at double precision NOT NULL,
    key text COLLATE "C", digest bytea NOT NULL, body bytea NOT NULL);
ALTER TABLE rapo_gate.events ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE rapo_gate.events ALTER COLUMN key SET STATISTICS 0;
CREATE UNIQUE INDEX events_by_key ON rapo_gate.events (key) WHERE key IS NOT NULL;
CREATE INDEX events_by_kind ON rapo_gate.events (kind, position) WHERE kind <> 0 AND kind <> 2;
CREATE TABLE rapo_gate.snapshots (
    position bigint PRIMARY KEY, data bytea NOT NULL, rows bigint NOT NULL);
CREATE TABLE rapo_gate.ledger (first_row bigint PRIMARY KEY, rows bytea NOT NULL);
"""
T = TypeVar("T")


class PostgresStore:
    """A log in the schema `rapo_gate` of a PostgreSQL database, which any number of gates share.

    Args:
        address: `postgresql://user:password@host:port/database`.
        create: make the tables if there are none.
        read_only: append nothing.
    """

    shared = True

    def __init__(self, address: str, *, create: bool = True, read_only: bool = False) -> None:
        self._settings = checked_address(address)
        self.address, self.read_only = safe_address(self._settings), read_only
        self._turn = threading.Lock()
        self._writer: Session | None = None
        self._closed = False
        self._readers = Pool(self._connect)
        self._rewritten: int | None = None
        """Position of the newest rewrite when this store was opened."""
        try:
            self._ask(lambda session: self._open(session, create and not read_only))
            if not read_only:
                self._writer = self._join()
        except BaseException:
            self.close()
            raise

    # --- opening

    def _open(self, session: Session, create: bool) -> None:
        encoding = one(session, "SHOW server_encoding")
        if encoding != "UTF8":
            raise UserError(f"{self.address} has the encoding {encoding}; a gate needs UTF8")
        if one(session, "SHOW fsync") != "on":
            warnings.warn(
                f"{self.address} runs with fsync off: a power cut can lose what was acknowledged",
                stacklevel=5,
            )
        if create and not self._is_there(session):
            with session.transaction():
                session.execute(f"SELECT pg_advisory_xact_lock({APPENDER})")
                if not self._is_there(session):  # another replica may have been faster
                    session.execute(_TABLES)
        if not self._is_there(session):
            raise FileNotFoundError(f"there is no gate at {self.address}; rapo-gate init makes one")

    def _is_there(self, session: Session) -> bool:
        """Whether the tables are there, and are ours."""
        # Asked of the catalogue itself: to_regnamespace may answer from before the lock was held.
        if not one(session, "SELECT count(*) FROM pg_namespace WHERE nspname = 'rapo_gate'"):
            return False
        ours = "schemaname = 'rapo_gate' AND tablename = 'about'"
        if not one(session, f"SELECT count(*) FROM pg_tables WHERE {ours}"):
            raise UserError(f"{self.address} has a schema rapo_gate of something else, not a gate")
        version = one(session, _VERSION)
        if version not in (SCHEMA, WITH_BASE):
            raise UserError(
                f"{self.address} has schema {version}, this version of rapo reads {WITH_BASE}"
            )
        return True

    # --- appending

    @contextmanager
    def appending(
        self, after: int | None = None, keys: Sequence[str] = ()
    ) -> Iterator[Transaction]:
        """One transaction of the one appender; waits its turn for some seconds.

        Args:
            after: position that the caller knows the log up to, if it will ask for the tail.
            keys: what it is going to look for.

        Raises:
            StoreError: the log is out of reach. If the connection went while committing, the
                events may be in the log: look for their keys before appending them again.
        """
        if self.read_only:
            raise StoreError(f"{self.address} is open for reading only")
        if not self._turn.acquire(timeout=ANSWER):
            raise StoreError(f"{self.address}: another thread of this process is still appending")
        try:
            turn = self._begin(after, keys)
            with self._undone_on_error():
                yield turn
                turn.commit()
        finally:
            self._turn.release()

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Roll back what fails; a connection that fails is let go."""
        try:
            yield
        except psycopg.Error as error:
            self._let_go()
            raise self._failed(error) from error
        except BaseException:
            self._undo()
            raise

    def _begin(self, after: int | None, keys: Sequence[str]) -> Transaction:
        """Hold the lock, on a new connection if the one at hand was lost meanwhile."""
        while True:
            kept = self._writer
            try:
                session = self._writer = kept or self._join()
                return Transaction(session, self.address, after, keys)
            except psycopg.errors.LockNotAvailable as error:
                self._let_go()
                raise StoreError(f"{self.address}: another appender keeps the log") from error
            except psycopg.Error as error:
                lost = kept is not None and is_lost(kept)
                self._let_go()
                if not lost:
                    raise self._failed(error) from error

    def _join(self) -> Session:
        """A session among those that may append: no rewrite goes on as long as it lasts."""
        session = self._connect()
        try:
            if not one(session, f"SELECT pg_try_advisory_lock_shared({_OPEN})"):
                raise StoreError(f"{self.address} is being rewritten; wait until that is done")
            newest = one(session, _REWRITTEN)
            if self._rewritten not in (None, newest):
                raise StoreError(f"{self.address} was rewritten meanwhile; open the gate again")
            self._rewritten = newest
        except BaseException:
            session.close()
            raise
        return session

    # --- rewriting

    @contextmanager
    def rewriting(self) -> Iterator[MaintenanceTransaction]:
        """One transaction that may change the log, while no other gate is open for writing."""
        if self.read_only:
            raise StoreError(f"{self.address} is open for reading only")
        session = self._writer = self._writer or self._join()
        if not one(session, f"SELECT pg_try_advisory_lock({_OPEN})"):
            raise StoreError(f"other replicas have {self.address} open; stop them first")
        try:
            with self._undone_on_error():
                turn = MaintenanceTransaction(session, self.address)
                with session.patient(_CHECK):
                    session.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                    yield turn
                    turn.commit()
        finally:
            if self._writer is not None:
                session.execute(f"SELECT pg_advisory_unlock({_OPEN})")
        self._rewritten = one(session, _REWRITTEN)

    def scrub(self) -> None:
        """Write the tables anew. The server's own log and its backups keep what they have."""

        def vacuum(session: Session) -> None:
            session.execute(f"SET statement_timeout = {int(_CHECK * 1000)}")
            with session.slow(_CHECK):
                for table in ("events", "snapshots", "ledger", "base"):
                    if table != "base" or one(session, _VERSION) == WITH_BASE:
                        session.execute(f"VACUUM (FULL, ANALYZE) rapo_gate.{table}")
                with suppress(psycopg.errors.InsufficientPrivilege):  # then it is the server's turn
                    session.execute("CHECKPOINT")
            session.execute(f"SET statement_timeout = {int(ANSWER * 1000)}")

        self._ask(vacuum)

    def _undo(self) -> None:
        try:
            if self._writer is not None:
                self._writer.execute("ROLLBACK")
        except psycopg.Error:
            self._let_go()  # the server rolls back by itself

    def _let_go(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    # --- reading

    def read(
        self, after: int, limit: int, kinds: Sequence[str] = (), newest: bool = False
    ) -> list[Event]:
        """Up to `limit` events after a position."""
        return self._ask(lambda session: read(session, after, limit, kinds, newest))

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key."""
        return self._ask(lambda session: find(session, keys)) if keys else {}

    def last(self) -> int:
        """Position of the newest event."""
        query = "SELECT coalesce(max(position), 0) FROM rapo_gate.events"
        return int(self._ask(lambda session: one(session, query)))

    def integrity(self) -> str:
        """Whether positions have no gap, keys do not repeat and the indexes are whole."""
        return self._ask(lambda session: integrity(session, _CHECK))

    # --- snapshots

    def save_snapshot(self, position: int, data: bytes, rows: Rows, first_row: int) -> None:
        """Keep a snapshot unless another replica kept a newer one."""
        if self.read_only:
            raise StoreError(f"{self.address} is open for reading only")

        def keep(session: Session) -> None:
            with session.transaction(), session.patient(_CHECK):
                session.execute(f"SELECT pg_advisory_xact_lock({_KEEPER})")
                newest = one(session, "SELECT max(position) FROM rapo_gate.snapshots")
                if newest is None or newest < position:
                    save(session, position, data, rows, first_row)

        self._ask(keep)

    def load_snapshot(self) -> tuple[bytes, Rows] | None:
        """The newest snapshot and its ledger, both of the same moment."""

        def load(session: Session) -> tuple[bytes, Rows] | None:
            with session.transaction(), session.patient(_CHECK):
                session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                kept = session.execute(
                    "SELECT data, rows FROM rapo_gate.snapshots ORDER BY position DESC LIMIT 1",
                    binary=True,
                ).fetchone()
                if kept is None:
                    return None
                pieces = session.execute(
                    "SELECT rows FROM rapo_gate.ledger WHERE first_row < %s ORDER BY first_row",
                    (kept[1],),
                    binary=True,
                )
                return kept[0], joined(pieces)

        return self._ask(load)

    def load_base(self) -> tuple[bytes, Rows] | None:
        """The snapshot that the log begins with, if its beginning was dropped."""

        def load(session: Session) -> tuple[bytes, Rows] | None:
            if one(session, _VERSION) != WITH_BASE:
                return None
            with session.transaction(), session.patient(_CHECK):
                query = "SELECT data FROM rapo_gate.base ORDER BY first_row"
                data, *rows = session.execute(query, binary=True)
            return data[0], joined(rows)

        return self._ask(load)

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        self._let_go()
        self._readers.close()

    def _connect(self) -> Session:
        if self._closed:
            raise StoreError(f"{self.address} was closed")
        return connect(self._settings, self.read_only)

    def _ask(self, question: Callable[[Session], T]) -> T:
        try:
            return self._readers.ask(question)
        except psycopg.Error as error:
            raise self._failed(error) from error

    def _failed(self, error: psycopg.Error) -> StoreError:
        reason = " ".join(str(error).split()) or type(error).__name__
        return StoreError(f"{self.address}: {reason}")
