"""The tables of the shared log, and the appender's turn: from taking the lock to the commit.

Everybody else waits meanwhile, so a turn has three round trips to the server however much is
appended in it: one takes the lock, one brings what others appended and what the caller is going to
look for, one appends everything and commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rapo_gate.events import KINDS, NUMBER, Event, NewEvent
from rapo_gate.fold.ledger import ROW, Rows
from rapo_gate.log.session import Session
from rapo_gate.log.store import READ_BYTES, StoreError

APPENDER = 0x5261706F_00000001
"""Advisory lock of whoever appends."""
COLUMNS = "SELECT position, kind, at, key, digest, body FROM rapo_gate.events"
SCHEMA, WITH_BASE = 1, 2
"""Of a log that is whole, and of one whose beginning was dropped."""
PIECE = 1_000_000
"""Rows of the ledger in one value; PostgreSQL's largest is a gigabyte."""
CHUNK = 5000
"""Events or keys of one query."""
MOST_WAITING = 16 << 20
"""Bytes of bodies that wait for the commit; more are sent before."""

_BEGIN = (
    # Each statement must see what was committed before it: the lock is awaited in the first. Not in
    # pipeline mode, whose last message stops the server's clock for appenders that do nothing.
    "BEGIN ISOLATION LEVEL READ COMMITTED;"
    f"SELECT pg_advisory_xact_lock({APPENDER});"
    "SELECT coalesce(max(position), 0) FROM rapo_gate.events"
)


def _some(which: str, order: str = "ASC") -> str:
    """A query for events, which ends where their bodies have `READ_BYTES`; never with none."""
    return (
        "(SELECT position, kind, at, key, digest, body FROM (SELECT *, sum(octet_length(body)) "
        f"OVER (ORDER BY position {order}) - octet_length(body) AS before FROM (SELECT * FROM "
        f"rapo_gate.events WHERE {which} ORDER BY position {order} LIMIT %s) AS listed) AS sized "
        f"WHERE before < {READ_BYTES} ORDER BY position {order})"
    )


_TAIL = _some("position > %s")
_FIND = f"{COLUMNS} WHERE key = ANY(%s)"
_INSERT = (
    "INSERT INTO rapo_gate.events SELECT * FROM unnest(%b::bigint[], %b::smallint[], "
    "%b::double precision[], %b::text[], %b::bytea[], %b::bytea[])"
)


class Transaction:
    """One transaction of the one appender; made with the lock in hand.

    Args:
        session: on which it happens.
        address: of the database, for messages.
        after: position that the caller knows the log up to; None if it will not ask for the tail.
        keys: what it is going to look for; others cost a round trip each time.
    """

    def __init__(
        self, session: Session, address: str, after: int | None = None, keys: Sequence[str] = ()
    ) -> None:
        self.session, self._address, self.appended = session, address, 0
        cursor = session.execute(_BEGIN)
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        assert row is not None
        self._last = int(row[0])
        self._after, self._tail = after, list[Event]()
        self._known: dict[str, Event | None] = {}
        self._bring(list(dict.fromkeys(keys))[:CHUNK])
        self._new: list[Event] = []
        self._waiting = 0

    def _bring(self, keys: list[str]) -> None:
        """The tail and some events by their keys, in one question."""
        behind = self._after is not None and self._after < self._last
        if not keys and not behind:
            return
        query: str = _FIND
        values: list[Any] = [keys]
        if behind:
            query, values = f"{_TAIL} UNION ALL {_FIND}", [self._after, CHUNK, keys]
        self._known.update(dict.fromkeys(keys))
        for event in events_of(self.session.execute(query, values, binary=True)):
            if event.key in self._known:
                self._known[event.key] = event
            if behind and event.position == self._next():
                self._tail.append(event)

    def _next(self) -> int:
        """Position that follows what is there of the tail, which comes first and in order."""
        return self._tail[-1].position + 1 if self._tail else (self._after or 0) + 1

    def tail(self, after: int) -> Iterator[Event]:
        """Events that others appended after a position."""
        if self._last < after:
            raise StoreError(
                f"{self._address} ends at event {self._last}, but {after} was read from it "
                "before: it was replaced by an older copy; events after that are lost"
            )
        events = self._tail if self._after == after else []
        while after < self._last:
            events = events or self.read(after, CHUNK)
            yield from events
            after, events = events[-1].position, []

    def read(
        self, after: int, limit: int, kinds: Sequence[str] = (), newest: bool = False
    ) -> list[Event]:
        """Events after a position, those of this transaction included."""
        self.send()
        return read(self.session, after, limit, kinds, newest)

    def find(self, keys: Sequence[str]) -> dict[str, Event]:
        """Events by unique key, those of this transaction included."""
        unknown = [key for key in keys if key not in self._known]
        for start in range(0, len(unknown), CHUNK):
            part = unknown[start : start + CHUNK]
            self._known.update(dict.fromkeys(part))
            events = events_of(self.session.execute(_FIND, (part,), binary=True))
            self._known.update({str(e.key): e for e in events})
        there = ((key, self._known[key]) for key in keys)
        return {key: event for key, event in there if event is not None}

    def append(self, drafts: Sequence[NewEvent]) -> list[Event]:
        """Give drafts their positions; they are sent with the commit, or before if they are many.

        A key that is taken is an error then.
        """
        self.appended += len(drafts)
        events = [Event(self._last + 1 + i, *draft) for i, draft in enumerate(drafts)]
        for event in events:
            self._waiting += len(event.body)
            if event.key is not None:
                self._known[event.key] = event
        self._new += events
        self._last += len(events)
        if self._waiting > MOST_WAITING:
            self.send()
        return events

    def send(self) -> None:
        """Give the server what waits."""
        if self._new:
            new, self._new, self._waiting = self._new, [], 0
            self.session.execute(_INSERT, columns_of(new))

    def commit(self) -> None:
        """Append and commit, in one round trip; durable when it returns."""
        with self.session.pipeline():
            self.send()
            self.session.execute("COMMIT")


class MaintenanceTransaction(Transaction):
    """A turn that may change what is there."""

    def replace(self, events: Sequence[Event]) -> None:
        """Give events that are there the key, digest and body of these."""
        self.send()
        self._known.clear()
        position, _, _, key, digest, body = columns_of(events)
        self.session.execute(
            "UPDATE rapo_gate.events e SET key = n.key, digest = n.digest, body = n.body FROM "
            "unnest(%b::bigint[], %b::text[], %b::bytea[], %b::bytea[]) "
            "AS n (position, key, digest, body) WHERE e.position = n.position",
            (position, key, digest, body),
        )

    def keep(self, position: int, data: bytes, rows: Rows, *, base: bool = False) -> None:
        """Keep a snapshot instead of the others; or as the one that the log begins with."""
        run = self.session.execute
        if not base:
            save(self.session, position, data, rows, 0)
            return
        run(
            "CREATE TABLE IF NOT EXISTS rapo_gate.base "
            "(first_row bigint PRIMARY KEY, data bytea NOT NULL)"
        )
        run("DELETE FROM rapo_gate.base")
        run("INSERT INTO rapo_gate.base VALUES (-1, %b)", (data,))
        for i in range(0, rows.size, PIECE):
            values = (i, rows[i : i + PIECE].tobytes())
            run("INSERT INTO rapo_gate.base VALUES (%s, %b)", values)
        run(f"UPDATE rapo_gate.about SET schema_version = {WITH_BASE}")


def save(session: Session, position: int, data: bytes, rows: Rows, first_row: int) -> None:
    """Every replica has the same ledger; pieces that another cut elsewhere are cut to fit."""
    session.execute("DELETE FROM rapo_gate.ledger WHERE first_row >= %s", (first_row,))
    session.execute(
        "UPDATE rapo_gate.ledger SET rows = substring(rows FROM 1 FOR %s * (%s - first_row)::int) "
        "WHERE first_row + length(rows) / %s > %s",
        (ROW.itemsize, first_row, ROW.itemsize, first_row),
    )
    for i in range(0, rows.size, PIECE):
        values = (first_row + i, rows[i : i + PIECE].tobytes())
        session.execute("INSERT INTO rapo_gate.ledger VALUES (%s, %b)", values)
    session.execute("DELETE FROM rapo_gate.snapshots")
    session.execute(
        "INSERT INTO rapo_gate.snapshots VALUES (%s, %b, %s)",
        (position, data, first_row + rows.size),
    )


def columns_of(events: Sequence[Event]) -> tuple[list[Any], ...]:
    """Events as columns of the table."""
    return (
        [e.position for e in events],
        [NUMBER[e.kind] for e in events],
        [float(e.at) for e in events],
        [e.key for e in events],
        [e.digest for e in events],
        [e.body for e in events],
    )


def events_of(rows: Iterable[tuple[Any, ...]]) -> list[Event]:
    """Rows of the table as events."""
    return [Event(row[0], KINDS[row[1]], *row[2:]) for row in rows]


def read(
    session: Session, after: int, limit: int, kinds: Sequence[str], newest: bool
) -> list[Event]:
    """Up to `limit` events after a position."""
    # Numbers, not parameters: the planner must see that the partial index applies.
    numbers = ",".join(str(NUMBER[kind]) for kind in kinds)
    chosen = f" AND kind IN ({numbers})" if kinds else ""
    query = _some(f"position > %s{chosen}", "DESC" if newest else "ASC")
    return events_of(session.execute(query, (after, limit), binary=True))


def find(session: Session, keys: Sequence[str]) -> dict[str, Event]:
    """Events by unique key, in a session that appends nothing."""
    by_key: dict[str, Event] = {}
    for start in range(0, len(keys), CHUNK):
        part = list(keys[start : start + CHUNK])
        events = events_of(session.execute(_FIND, (part,), binary=True))
        by_key.update({str(e.key): e for e in events})
    return by_key


def one(session: Session, query: str) -> Any:
    """The first value of the first row."""
    row = session.execute(query).fetchone()
    assert row is not None
    return row[0]


def integrity(session: Session, seconds: float) -> str:
    """Whether positions have no gap, keys do not repeat and the indexes are whole."""
    with session.transaction(), session.patient(seconds):
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rows = session.execute(
            "SELECT count(*), coalesce(min(position), 1), coalesce(max(position), 0), count(key), "
            "count(DISTINCT key) FROM rapo_gate.events"
        ).fetchall()
        count, first, last, keys, different = rows[0]
        broken = session.execute(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid AND indrelid IN "
            "(SELECT oid FROM pg_class WHERE relnamespace = 'rapo_gate'::regnamespace)"
        ).fetchall()
    if first != 1 or count != last:
        return f"positions {first} to {last} hold {count} events: some are missing"
    if keys != different:
        return f"{keys - different} keys are there more than once"
    return f"index {broken[0][0]} is not valid" if broken else "ok"
