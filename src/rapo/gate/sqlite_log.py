"""What the writer of a file does in one transaction, and how rows of the tables become events."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rapo.gate.events import KINDS, NUMBER, Draft, Event
from rapo.gate.fold import ROW, Rows

SCHEMA, WITH_BASE = 1, 2
"""Of a log that is whole, and of one whose beginning was dropped."""
_CHUNK = 500
"""Keys of one query."""
_PIECE = 1_000_000
"""Rows of the ledger in one blob; SQLite's largest is a gigabyte."""


class Turn:
    """An open transaction of the one writer."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def tail(self, after: int) -> Iterator[Event]:
        """Nobody else appends to this file."""
        return iter(())

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key."""
        return find(self.connection, keys)

    def append(self, drafts: Sequence[Draft]) -> list[Event]:
        """Give drafts their positions and add them."""
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
        """Events after a position, those of this transaction included."""
        return read(self.connection, after, limit, kinds, newest)

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


def rows_of(pieces: Iterable[tuple[bytes]]) -> Rows:
    """The ledger from its pieces."""
    data = b"".join(piece for (piece,) in pieces)
    return np.frombuffer(data[: len(data) // ROW.itemsize * ROW.itemsize], ROW)


def read(
    connection: sqlite3.Connection, after: int, limit: int, kinds: Sequence[str], newest: bool
) -> list[Event]:
    """Up to `limit` events after a position."""
    numbers = [NUMBER[kind] for kind in kinds]
    chosen = f" AND kind IN ({','.join('?' * len(numbers))})" if numbers else ""
    order = "DESC" if newest else "ASC"
    rows = connection.execute(
        "SELECT position, kind, at, key, digest, body FROM events WHERE position > ?"
        f"{chosen} ORDER BY position {order} LIMIT ?",
        (after, *numbers, limit),
    )
    return [event_of(row) for row in rows]


def event_of(row: tuple[Any, ...]) -> Event:
    """A row of the table as an event."""
    return Event(row[0], KINDS[row[1]], *row[2:])


def find(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, Event]:
    """Events by unique key."""
    found = {}
    for start in range(0, len(keys), _CHUNK):
        part = keys[start : start + _CHUNK]
        rows = connection.execute(
            "SELECT position, kind, at, key, digest, body FROM events "
            f"WHERE key IN ({','.join('?' * len(part))})",
            part,
        )
        found.update({row[3]: event_of(row) for row in rows})
    return found
