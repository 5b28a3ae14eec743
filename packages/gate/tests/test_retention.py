"""Erasure and compaction, in either store: the fields stay, the names and the bodies go."""

from __future__ import annotations

import pickle
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rapo_core.params import FieldParams
from rapo_gate import Gate, GateConfig, HarmReport, StoreError, retention
from rapo_gate.events import DroppedError, NewEvent
from rapo_gate.fold.snapshot import beginning, dropped, folded
from rapo_gate.fold.state import State
from rapo_gate.log.store import READ_BYTES, events_of, open_store
from rapo_gate.retention import compact, erase

NAME = "Jörg Müller-17"
REASON = "asked to be forgotten"
CONFIG = GateConfig(
    tick_seconds=60.0, D=2, D_max=20, confirm_ticks=30,
    params=FieldParams(alpha=2.0, eta=0.2),
)  # fmt: skip


class Lived:
    """A gate that has seen some traffic and reports; `now` is its clock."""

    def __init__(self, address: str) -> None:
        self.address, self.now, self._keys = address, 60_000.0, 0
        self.open(CONFIG)

    def open(self, config: GateConfig | None = None) -> Gate:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "SQLite")
            self.gate = Gate.open(self.address, config, clock=lambda: self.now)
        return self.gate

    def live(self, ticks: int) -> str:
        """Decisions, exposures and reports of three reporters; returns the last decision's id."""
        for _ in range(ticks):
            made = self.gate.decide_logged(["bad", "good"], [0.5, 0.5]).result()
            self.gate.expose(made.decision_id, ["bad"])
            for i, source in enumerate((NAME, "b", "c")):
                self._keys += 1
                key = f"{source}/{self._keys}"
                self.report(source, key, f"g{i % 2}", decision_id=made.decision_id)
            self.now += 60.0
            self.gate.tick()
        return str(made.decision_id)

    def report(self, source: str, key: str, signal: str = "g", **given: Any) -> Any:
        given = given or {"regions": ["bad"]}
        return self.gate.report([HarmReport(source, key, 1.0, signal, self.now, **given)])[0]

    def fields(self) -> tuple[str, dict[Any, Any]]:
        return self.gate.read(lambda s: s.field_hash()), self.gate.fields()

    def rewrite(self, work: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """Close the gate, do it to the store, open it again."""
        self.gate.close()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "SQLite")
            store = open_store(self.address)
        try:
            return work(store, *given, reason=REASON, clock=lambda: self.now, **more)
        finally:
            store.close()
            self.open()


@pytest.fixture(params=["sqlite", "postgresql"])
def lived(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lived]:
    address = str(tmp_path / "gate.db")
    if request.param == "postgresql":
        address = request.getfixturevalue("server").new_database()
    made = Lived(address)
    yield made
    made.gate.close()


def found_in(folder: Path, name: str) -> list[str]:
    """Files that hold a name, as it is or as JSON escapes it."""
    forms = [name.encode(), name.encode("unicode_escape").replace(b"\\xf6", b"\\u00f6")]
    forms.append(name.encode("ascii", "backslashreplace"))
    files = [f for f in folder.rglob("*") if f.is_file()]
    return [f.name for f in files if any(form in f.read_bytes() for form in forms)]


def test_an_erased_name_is_nowhere_and_the_fields_stay(lived: Lived, tmp_path: Path) -> None:
    lived.live(8)
    lived.gate.rollback(source=NAME, start=0.0, end=60_060.0, reason=f"{NAME} was wrong")
    late = lived.report(NAME, "odd", regions=["nobody knows"])
    assert late.status == "quarantined"
    before = lived.fields()
    assert before[1]["bad"].G > 0
    done = lived.rewrite(erase, NAME)
    assert lived.fields() == before
    assert done.fields == before[0] and done.events == 9
    assert lived.gate.verify()["ok"]
    assert folded(State(), lived.gate.store).field_hash() == before[0]
    events = lived.gate.events(limit=10_000)
    assert events[-1].kind == "Erasure" and events[-1].data()["reason"] == REASON
    assert not any(NAME in repr(e.data()) for e in events if e.kind != "Decision")
    assert (
        sum(e.data().get("source") == done.pseudonym for e in events if e.kind == "HarmReport") == 9
    )
    lived.gate.close()
    if "://" not in lived.address:
        assert found_in(tmp_path, NAME) == []
        assert found_in(tmp_path, done.pseudonym) == ["gate.db"]
    lived.open()


def test_the_files_of_an_open_store_hold_no_erased_name(tmp_path: Path) -> None:
    lived = Lived(str(tmp_path / "gate.db"))
    lived.live(3)
    lived.gate.close()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SQLite")
        store = open_store(lived.address)
    store._writer.execute("PRAGMA secure_delete=OFF")  # type: ignore[attr-defined]
    scrub, store.scrub = store.scrub, lambda: None  # type: ignore[method-assign]
    erase(store, NAME, reason=REASON)
    assert found_in(tmp_path, NAME)
    scrub()
    assert found_in(tmp_path, NAME) == []
    store.close()


def test_postgresql_keeps_no_erased_name_in_its_tables(server: Any) -> None:
    lived = Lived(server.new_database())
    lived.live(3)
    lived.gate.close()
    tables = server.folder / "pg" / "base"
    store = open_store(lived.address)
    store.scrub()
    assert found_in(tables, NAME)
    pseudonym = erase(store, NAME, reason=REASON).pseudonym
    assert found_in(tables, NAME) == []
    assert found_in(tables, pseudonym)
    store.close()


def test_keys_after_an_erasure(lived: Lived) -> None:
    lived.live(1)
    at = lived.now
    first = lived.report(NAME, "mine")
    done = lived.rewrite(erase, NAME)
    again = HarmReport(done.pseudonym, "mine", 1.0, "g", at, regions=["bad"])
    assert lived.gate.report([again])[0].duplicate
    assert lived.gate.report([again])[0].report_id == first.report_id
    other = HarmReport(done.pseudonym, "mine", 0.5, "g", at, regions=["bad"])
    assert lived.gate.report([other])[0].code == 409
    assert not lived.report(NAME, "mine").duplicate  # a stranger's


def test_what_cannot_be_erased(lived: Lived) -> None:
    lived.live(1)
    lived.gate.close()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "SQLite")
        store = open_store(lived.address)
    last = store.last()
    with pytest.raises(LookupError, match=r"no report in .* is from 'nobody'"):
        erase(store, "nobody", reason=REASON)
    with pytest.raises(ValueError, match="must not have the reporter's name"):
        erase(store, NAME, reason=f"{NAME} asked")
    with pytest.raises(ValueError, match="needs a reason"):
        erase(store, NAME, reason=" ")
    assert store.last() == last
    store.close()
    lived.open()


def test_dropped_bodies_leave_fields_keys_and_what_people_did(lived: Lived, tmp_path: Path) -> None:
    lived.live(6)
    lived.gate.override("good", 0.5, reason="a trial")
    old = lived.live(2)
    waits = lived.report("d", "odd", decision_id=old, regions=None)
    point = lived.now
    lived.now += 60 * 25
    lived.gate.tick()
    lived.live(4)
    before = lived.fields()
    with pytest.raises(ValueError, match="may still be reported"):
        lived.rewrite(compact, lived.now - 60.0)
    done = lived.rewrite(compact, point)
    assert lived.fields() == before
    found = lived.gate.verify()
    assert found["ok"] and found["replay"] == before[0]
    assert found["dropped"]["until"] == done.until and found["dropped"]["intact"]
    events = lived.gate.events(limit=10_000)
    assert [e.position for e in events] == list(range(1, len(events) + 1))
    assert events[-1].kind == "Compaction" and events[-1].data()["fields"] == done.fields
    gone = [e for e in events if not e.body]
    assert len(gone) == done.dropped > 20
    assert {e.kind for e in gone} == {"Decision", "Exposure", "HarmReport", "Tick"}
    assert max(e.position for e in gone) <= done.until
    with pytest.raises(DroppedError):
        gone[0].data()
    assert beginning(lived.gate.store).field_hash() == done.fields
    assert waits.status in ("accepted", "review")
    # Without its newest snapshot it opens from the point, and goes on as before.
    lived.gate.store.save_snapshot(10**9, b"damaged", lived.gate.engine.state.ledger.rows[:0], 0)
    lived.gate._snapshot_at, lived.gate._broken = 10**9, "no snapshot, please"
    lived.gate.close()
    with pytest.warns(UserWarning, match="cannot be read"):
        lived.open()
    assert lived.fields() == before
    lived.gate.rollback(source="b", reason="left")
    after = lived.fields()[0]
    assert after != before[0]
    again = lived.rewrite(erase, NAME)
    assert again.fields == after == lived.fields()[0]
    assert lived.gate.verify()["ok"]
    lived.gate.close()
    if "://" not in lived.address:
        assert found_in(tmp_path, NAME) == []
    lived.open()


def test_a_dropped_key_is_still_taken(lived: Lived) -> None:
    lived.gate.decide_logged(["bad"], [1.0], "r-1").result()
    lived.report("a", "k")
    lived.live(1)
    lived.now += 60 * 30
    lived.gate.tick()
    lived.rewrite(compact, lived.now - 60 * 25)
    assert lived.report("a", "k").code == 409
    with pytest.raises(LookupError, match="dropped by a compaction"):
        lived.gate.decide_logged(["bad"], [1.0], "r-1").result()
    with pytest.raises(ValueError, match="nothing is left to drop"):
        lived.rewrite(compact, lived.now - 60 * 25)


def test_what_is_left_of_dropped_events_is_watched(tmp_path: Path) -> None:
    lived = Lived(str(tmp_path / "gate.db"))
    lived.live(2)
    lived.now += 60 * 30
    lived.gate.tick()
    lived.rewrite(compact, lived.now - 60 * 25)
    lived.gate.close()
    with sqlite3.connect(tmp_path / "gate.db") as connection:
        connection.execute("UPDATE events SET at = at + 1 WHERE position = 3")
    connection.close()
    found = lived.open().verify()
    assert not found["ok"] and not found["dropped"]["intact"]
    assert (dropped(lived.gate.store) or {})["until"] == found["dropped"]["until"]
    lived.gate.close()


_SHARED = (
    "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
    "WHERE l.locktype = 'advisory' AND d.datname = current_database()"
)


def test_postgresql_is_rewritten_alone(server: Any) -> None:
    psycopg = pytest.importorskip("psycopg")
    lived = Lived(server.new_database())
    lived.live(1)
    store = open_store(lived.address)
    with pytest.raises(StoreError, match=r"other replicas have .* open"):
        erase(store, NAME, reason=REASON)
    lived.gate.store._writer.close()  # as if its connection was lost meanwhile
    with psycopg.connect(lived.address, autocommit=True) as looking:
        while looking.execute(_SHARED).fetchone() != (1,):
            pass  # until the server has noticed
    erase(store, NAME, reason=REASON)
    store.close()
    rewritten = pytest.raises(StoreError, match="rewritten meanwhile; open the gate again")
    with rewritten, lived.gate.store.appending():
        pass
    lived.gate._broken = "it must be opened again"
    lived.gate.close()


@pytest.mark.parametrize("what", ["erasure", "compaction"])
def test_nothing_is_rewritten_if_the_fields_would_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    lived = Lived(str(tmp_path / "gate.db"))
    lived.live(8)
    lived.now += 60 * 25
    lived.gate.tick()
    before, last = lived.fields(), lived.gate.store.last()
    work: Callable[..., Any] = erase
    given: Any = NAME
    if what == "erasure":  # the rewritten reports weigh less
        scrubbed = retention._scrubbed
        monkeypatch.setattr(
            retention, "_scrubbed", lambda data, *names: {**scrubbed(data, *names), "harm": 0.01}
        )
    else:  # the snapshot leads elsewhere
        work, given = compact, lived.now - 60 * 22
        monkeypatch.setattr(retention, "_needed", lambda state, log: (set(), State()))
    with pytest.raises(RuntimeError, match="nothing was changed"):
        lived.rewrite(work, given)
    monkeypatch.undo()
    assert lived.fields() == before and lived.gate.verify()["ok"]
    kinds = [event.kind for event in lived.gate.events(last, 100)]
    assert "Erasure" not in kinds and "Compaction" not in kinds
    lived.gate.close()


def test_a_copy_of_before_can_be_shown_to_be_one(tmp_path: Path) -> None:
    lived = Lived(str(tmp_path / "gate.db"))
    lived.live(6)
    lived.now += 60 * 25
    lived.gate.tick()
    copy = lived.gate.events(limit=10_000)
    done = lived.rewrite(compact, lived.now - 60 * 22)
    chain = sha256()
    for event in copy[: done.until]:
        chain.update(repr(event).encode())
    assert lived.gate.events(done.event - 1, 1)[0].data()["chain"] == chain.hexdigest()
    lived.gate.close()


def test_every_call_of_the_library_answers_after_a_compaction(lived: Lived) -> None:
    """What needs a dropped body says so in one sentence, item by item; the rest goes on."""
    old = lived.gate.decide_logged(["bad", "good"], [0.5, 0.5], "old").result().decision_id
    future = HarmReport("a", "first", 1.0, "g", lived.now + 59, regions=["bad"])
    first = lived.gate.report([future])[0].report_id
    lived.now += 60 * 20 + 10
    lived.gate.tick()
    lived.rewrite(compact, lived.now - 60 * 20)
    gate, now = lived.gate, lived.now
    recent = gate.decide_logged(["bad", "good"], [0.5, 0.5]).result().decision_id
    reports = [
        HarmReport("a", "1", 1.0, "g", now, recent),
        HarmReport("a", "2", 1.0, "g", now, old),
        future,
        HarmReport("a", "3", 1.0, "g", now, regions=["bad"]),
    ]
    batches = [gate.report(reports), gate.report_logged(reports).result()]
    for batch, codes in zip(batches, ([200, 410, 410, 200], [200, 410, 410, 200]), strict=True):
        assert [r.code for r in batch] == codes, batch
        assert all("was dropped by a compaction" in str(r.error) for r in batch if r.code == 410)
    dropped_ones: list[Callable[[], Any]] = [
        lambda: gate.decide(["bad", "good"], [0.5, 0.5], "old"),
        lambda: gate.decide_logged(["bad", "good"], [0.5, 0.5], "old").result(),
        lambda: gate.expose(old, ["bad"]),
        lambda: gate.expose_logged(old, ["bad"]).result(),
        lambda: gate.explain(old),
    ]
    for call in dropped_ones:
        with pytest.raises(DroppedError) as raised:
            call()
        assert str(raised.value).count("was dropped by a compaction") == 1
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    why = {"reason": "test", "dry_run": True}
    calls: dict[str, Callable[[], Any]] = {
        "confirm": lambda: gate.confirm([first], **why),
        "override": lambda: gate.override("bad", 0.5, **why),
        "allow": lambda: gate.allow("bad", **why),
        "rollback": lambda: gate.rollback([first], **why),
        "set_mode": lambda: gate.set_mode("enforce", **why),
        "configure": lambda: gate.configure({"min_sources": 4}, **why),
        "label": lambda: gate.label({"bad": {"group": "g"}}, **why),
        "fields": gate.fields, "chain": lambda: gate.chain("bad"), "bias": gate.bias,
        "queue": gate.queue, "reporters": gate.reporters, "events": gate.events,
        "read": lambda: gate.read(lambda s: s.tick), "health": gate.health, "flush": gate.flush,
        "tick": gate.tick, "snapshot": gate.snapshot, "verify": gate.verify,
    }  # fmt: skip
    for call in calls.values():
        call()
    assert gate.explain(recent)["candidates"] == 2 and gate.verify()["ok"]
    tried = {"report", "report_logged", "decide", "decide_logged", "expose", "expose_logged"}
    left = {"open", "close", "act", "explain", "config"}
    assert {n for n in dir(Gate) if not n.startswith("_")} == {*calls, *tried, *left}


def test_a_read_is_bounded_by_bytes(lived: Lived, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event may have 2.4 MB: five thousand of them would not fit the memory."""
    store = lived.gate.store
    lived.gate.flush()
    first = store.last()
    body = b"x" * (READ_BYTES // 3)
    with store.appending() as log:
        log.append([NewEvent("Erasure", 0.0, None, b"", body)] * 8)
        if lived.address.startswith("postgresql"):
            assert len(log.read(first, 100)) == 4
    assert [e.position - first for e in store.read(first, 100)] == [1, 2, 3, 4]
    newest = store.read(first, 100, ("Erasure",), newest=True)
    assert [e.position - first for e in newest] == [8, 7, 6, 5]
    assert len(list(events_of(store, first))) == 8
    with store.appending(first) as log:
        tail = list(log.tail(first))
    assert len(tail) == (8 if store.shared else 0)
