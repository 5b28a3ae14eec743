"""Where the log lives: what a store must offer, opening one, and reading all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from rapo_core.checks import UserError
from rapo_gate.events import Event, NewEvent

if TYPE_CHECKING:
    from rapo_gate.fold.ledger import Rows


class StoreError(OSError):
    """The store failed; nothing of the batch in hand was acknowledged."""


class BusyError(StoreError):
    """Somebody else has the database for the moment; nothing was done, and it may be tried again.

    Unlike after a failed write, what the log holds is known.
    """


class Appending(Protocol):
    """An open transaction of the one appender; leaving it without an error commits durably."""

    appended: int
    """Events that this transaction has appended so far."""

    def tail(self, after: int) -> Iterator[Event]:
        """Events that others appended after a position, in order."""
        ...

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key, those of this transaction included."""
        ...

    def append(self, drafts: Sequence[NewEvent]) -> list[Event]:
        """Give drafts their positions and add them; a key that is taken is an error."""
        ...


class Rewriting(Appending, Protocol):
    """A transaction that may also change what is in the log; for erasure and retention alone."""

    def read(
        self, after: int, limit: int, kinds: Sequence[str] = (), newest: bool = False
    ) -> list[Event]:
        """As `Store.read`, with what this transaction changed."""
        ...

    def replace(self, events: Sequence[Event]) -> None:
        """Give events that are there the key, digest and body of these; positions stay."""
        ...

    def keep(self, position: int, data: bytes, rows: Rows, *, base: bool = False) -> None:
        """Keep a snapshot instead of the others; or as the one that the log begins with."""
        ...


class Store(Protocol):
    """An append-only log with unique keys, and room for snapshots."""

    address: str
    shared: bool
    """Whether other processes append too."""

    def appending(
        self, after: int | None = None, keys: Sequence[str] = ()
    ) -> AbstractContextManager[Appending]:
        """A transaction during which nobody else appends; for one thread at a time.

        Args:
            after: position that the caller knows the log up to, if it will ask for the tail.
            keys: what it is going to look for. Both save a shared store round trips; asking for
                other things works as well.
        """
        ...

    def read(
        self, after: int, limit: int, kinds: Sequence[str] = (), newest: bool = False
    ) -> list[Event]:
        """Up to `limit` events after a position, in order; the newest ones first if asked.

        Fewer come where their bodies have more than `READ_BYTES`, but never none.
        """
        ...

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key; from any thread."""
        ...

    def last(self) -> int:
        """Position of the newest event, 0 for an empty log."""
        ...

    def save_snapshot(self, position: int, data: bytes, rows: Rows, first_row: int) -> None:
        """Keep a snapshot and the ledger's rows from `first_row` on, replacing older snapshots."""
        ...

    def load_snapshot(self) -> tuple[bytes, Rows] | None:
        """The newest snapshot and the ledger at its position."""
        ...

    def rewriting(self) -> AbstractContextManager[Rewriting]:
        """A transaction that may change the log; `scrub` afterwards.

        Raises:
            StoreError: another process has the gate open for writing.
        """
        ...

    def load_base(self) -> tuple[bytes, Rows] | None:
        """The snapshot and ledger that the log begins with, if its beginning was dropped."""
        ...

    def scrub(self) -> None:
        """Write the files anew, so that nothing that was replaced is left in them."""
        ...

    def integrity(self) -> str:
        """`ok`, or what the database finds wrong with itself."""
        ...

    def close(self) -> None:
        """Let go of everything; may be called twice."""
        ...


READ = 5000
"""Events read at a time."""
READ_BYTES = 16 << 20
"""Bytes of bodies after which a read ends early: an event may have 2.4 MB."""


def pieces(
    log: Store | Rewriting, after: int = 0, kinds: Sequence[str] = ()
) -> Iterator[list[Event]]:
    """A log from a position on, some thousand events at a time."""
    while events := log.read(after, READ, kinds):
        yield events
        after = events[-1].position


def events_of(
    log: Store | Rewriting, after: int = 0, until: int | None = None, kinds: Sequence[str] = ()
) -> Iterator[Event]:
    """A log from a position on, up to another; of all kinds or of some."""
    for events in pieces(log, after, kinds):
        for event in events:
            if until is not None and event.position > until:
                return
            yield event


def open_store(address: str, *, create: bool = True, read_only: bool = False) -> Store:
    """The store behind a path (SQLite) or a `postgresql://` address."""
    if address.startswith(("postgresql://", "postgres://")):
        from rapo_gate.log.postgres import PostgresStore

        return PostgresStore(address, create=create, read_only=read_only)
    if "://" in address:
        scheme = address.partition("://")[0]
        raise UserError(f"a gate lives in a file or at postgresql://…, got {scheme}://…")
    from rapo_gate.log.sqlite import SqliteStore

    return SqliteStore(address, create=create, read_only=read_only)
