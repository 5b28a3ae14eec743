"""The file: one writer, no foreign ones, damage, a full disk, opening again."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import until

from rapo_core.checks import UserError
from rapo_gate import Gate, GateConfig, StoreError
from rapo_gate.fold.fold import ROW

Make = Callable[..., Any]


def test_a_second_writer_is_refused(make: Make) -> None:
    platform = make()
    with pytest.raises(StoreError, match="being written by process"):
        platform.open()
    with Gate.open(platform.path, read_only=True, clock=lambda: platform.now) as reader:
        assert set(reader.fields()) == {"bad", "good"}
        with pytest.raises(StoreError, match="reading only"):
            reader.decide(["bad"], [1.0])


@pytest.mark.parametrize("kind", ["symlink", "hard link"])
def test_a_second_writer_is_refused_under_another_name(
    make: Make, tmp_path: Path, kind: str
) -> None:
    platform = make()
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "other.db"
    (other.symlink_to if kind == "symlink" else other.hardlink_to)(platform.path)
    with pytest.raises(StoreError, match="being written by"):
        Gate.open(other)
    platform.report("s0")
    # The refused attempt has let go of none of the locks that SQLite has for this process.
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0); print(c.execute("
    code += "'PRAGMA journal_mode=DELETE').fetchone())"
    program = [sys.executable, "-c", code, str(platform.path)]
    told = subprocess.run(program, capture_output=True, text=True, check=False)
    assert "database is locked" in told.stderr, told.stdout
    platform.gate.close()
    if kind == "symlink":
        with Gate.open(other, clock=lambda: platform.now) as gate:
            assert gate.verify()["ok"]
            with pytest.raises(StoreError, match="being written by process"):
                platform.open()
    else:
        for path in (platform.path, other):
            with pytest.raises(StoreError, match=r"has 2 names \(hard links\)"):
                Gate.open(path)
        other.unlink()
    platform.gate = platform.open()
    assert platform.gate.verify()["ok"]


def test_a_busy_file_is_tried_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = make()
    platform.gate.store._writer.execute("PRAGMA busy_timeout=50")
    other = sqlite3.connect(platform.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    platform.gate.decide(["bad", "good"], [0.5, 0.5])
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(platform.report("s0")))
    waiting.start()
    while platform.gate.health()["status"] == "ok":
        assert waiting.is_alive()
    assert "another program is writing" in platform.gate.health()["why"]
    assert platform.gate.decide(["bad"], [1.0]).psi[0] == 1.0  # answers go on
    other.execute("ROLLBACK")
    other.close()
    waiting.join()
    assert results[0].status == "accepted"
    platform.gate.flush()
    assert platform.gate.health()["status"] == "ok"
    kinds = [e.kind for e in platform.gate.events()]
    assert (kinds.count("Decision"), kinds.count("HarmReport")) == (3, 1)
    assert platform.gate.verify()["ok"]


@pytest.mark.parametrize("umask", [0o000, 0o027, 0o377])
def test_files_are_for_their_owner_alone(make: Make, tmp_path: Path, umask: int) -> None:
    def modes() -> dict[str, int]:
        return {p.name: p.stat().st_mode & 0o7777 for p in tmp_path.iterdir()}

    before = os.umask(umask)
    try:
        platform = make()
        assert set(modes()) == {"gate0.db", "gate0.db-wal", "gate0.db-shm", "gate0.db.lock"}
        assert set(modes().values()) == {0o600}
        platform.gate.close()
        platform.path.chmod(0o644)
        with pytest.warns(UserWarning, match=r"other users could open gate0.db \(644\)"):
            platform.gate = platform.open()
        platform.report("s0")
        assert set(modes().values()) == {0o600}
    finally:
        os.umask(before)


def test_foreign_files_are_refused_and_stay(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.db", tmp_path / "other.db"
    text.write_text("not a database, " * 1000)
    with sqlite3.connect(other) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    for path in (text, other):
        path.chmod(0o640)
        before = path.read_bytes()
        for read_only in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with pytest.raises(ValueError, match="not a gate"):
                    Gate.open(path, read_only=read_only)
        assert path.read_bytes() == before
        assert path.stat().st_mode & 0o777 == 0o640


def test_a_damaged_gate_is_refused(make: Make) -> None:
    platform = make()
    platform.harm(5, sources=12, signals=2)
    platform.gate.close()
    whole = platform.path.read_bytes()
    broken = bytearray(whole)
    broken[4096:] = b"\xff" * (len(whole) - 4096)
    for damaged in (bytes(broken), whole[: len(whole) // 2]):
        platform.path.write_bytes(damaged)
        with pytest.raises((ValueError, StoreError)):
            platform.open()
        assert platform.path.read_bytes() == damaged
    platform.path.write_bytes(whole)
    platform.gate = platform.open()
    assert platform.gate.verify()["ok"]


@pytest.mark.parametrize("what", ["data", "truncated", "rows", "row values"])
def test_a_damaged_snapshot_is_not_needed(make: Make, what: str) -> None:
    platform = make()
    platform.harm(5, sources=12, signals=2)
    before = platform.hash()
    platform.gate.close()
    with sqlite3.connect(platform.path) as connection:
        (data,) = connection.execute("SELECT data FROM snapshots").fetchone()
        if what == "data":
            data = data[:3000] + bytes(255 - b for b in data[3000:3100]) + data[3100:]
        if what == "truncated":
            data = data[: len(data) // 2]
        connection.execute("UPDATE snapshots SET data = ?", (data,))
        if what == "rows":
            connection.execute("DELETE FROM ledger")
        if what == "row values":
            (rows,) = connection.execute("SELECT rows FROM ledger").fetchone()
            changed = np.frombuffer(rows, ROW).copy()
            changed["source"][0] += 1
            connection.execute("UPDATE ledger SET rows = ?", (changed.tobytes(),))
    connection.close()
    with pytest.warns(UserWarning, match="the whole log is read instead"):
        platform.gate = platform.open()
    assert platform.hash() == before
    platform.reopen()
    assert platform.gate.verify()["ok"]


_FULL_DISK = """
import json, resource, signal, sys, warnings
warnings.simplefilter("ignore")
from rapo_gate import Gate, HarmReport, StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
gate = Gate.open(sys.argv[1], clock=lambda: 1e6)
gate.decide(["a"], [1.0])
gate.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, resource.RLIM_INFINITY))
acknowledged, told = [], ""
for i in range(10_000):
    try:
        results = gate.report([HarmReport("s", f"{i} {j} " + "x" * 100, .5, "g", 1e6, regions=["a"])
                               for j in range(20)])
        acknowledged += [r.report_id for r in results]
    except StoreError as error:
        told = str(error)
        break
refused = 0
for attempt in (lambda: gate.decide(["a"], [1.0]), gate.flush):
    try:
        attempt()
    except StoreError:
        refused += 1
status = gate.health()["status"]
gate.close()
print(json.dumps([acknowledged, told, refused, status]))
"""


def test_a_failed_write_is_never_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "gate.db"
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )
    acknowledged, told, refused, status = json.loads(done.stdout)
    assert "nothing was acknowledged" in told
    assert acknowledged
    assert refused == 2
    assert status == "broken"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gate = Gate.open(path, clock=lambda: 1e6)
    with gate:
        assert gate.verify()["ok"]
        logged = [e.position for e in gate.events(0, 10**6) if e.kind == "HarmReport"]
    assert set(acknowledged) <= set(logged)


def test_opening_again_gives_the_same(make: Make) -> None:
    platform = make()
    platform.harm(5, sources=12, signals=2)
    platform.gate.rollback(source="s1", reason="left")
    before, fields = platform.hash(), platform.gate.fields()
    platform.reopen()
    assert (platform.hash(), platform.gate.fields()) == (before, fields)
    assert platform.gate.verify()["ok"]
    platform.gate.close()
    with pytest.raises(ValueError, match="other settings"):
        platform.open(GateConfig(D=7))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux")
def test_threads_that_come_and_go_leave_no_connections(make: Make) -> None:
    gate = make().gate

    def ask(i: int) -> None:
        gate.decide(["bad"], [1.0], request_id=f"r{i}")  # looked up in the log

    counts = []
    for i in range(40):
        thread = threading.Thread(target=ask, args=(i,))
        thread.start()
        thread.join()
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] <= counts[4]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "gates"
    folder.mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder; name a file"):
        Gate.open(folder)
    assert [p.name for p in tmp_path.iterdir()] == ["gates"]


def test_verify_finds_events_that_are_missing(make: Make) -> None:
    platform = make()
    platform.harm(1, sources=12, signals=2)
    platform.gate.close()
    with sqlite3.connect(platform.path) as connection:
        connection.execute("DELETE FROM snapshots")  # nothing to compare with but the log itself
        connection.execute("DELETE FROM events WHERE kind = 2 AND position = 3")
    connection.close()
    platform.gate = platform.open()
    found = platform.gate.verify()
    assert not found["ok"] and found["fields"] == found["replay"]
    assert "some are missing" in found["integrity"]


def test_verify_does_not_hold_the_gate_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = make()
    gate = platform.gate
    read, folding, go_on = gate.store.read, threading.Event(), threading.Event()

    def slow_read(*args: Any, **more: Any) -> Any:
        folding.set()
        go_on.wait()
        return read(*args, **more)

    found: dict[str, Any] = {}
    monkeypatch.setattr(gate.store, "read", slow_read)
    thread = threading.Thread(target=lambda: found.update(gate.verify()))
    thread.start()
    try:
        until(folding.is_set, thread.is_alive)
        taken = platform.report("s0")  # while the log is folded afresh
    finally:
        go_on.set()
        thread.join()
    assert found["ok"] and found["position"] < taken.report_id
    assert gate.verify()["position"] == taken.report_id


def test_health_can_be_asked_while_overrides_change(make: Make) -> None:
    gate = make().gate
    overrides: dict[int, Any] = {i: {"expires_at": None} for i in range(1000)}
    gate.engine.state.overrides = overrides
    done, interval = threading.Event(), sys.getswitchinterval()

    def change() -> None:
        while not done.is_set():
            if overrides.pop(-1, None) is None:  # one change at a time, so that others see it
                overrides[-1] = {"expires_at": None}

    thread = threading.Thread(target=change)
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        for _ in range(200):
            assert gate.engine.needs_tick()
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)


def test_settings_must_be_a_config(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="config must be a GateConfig, got dict"):
        Gate.open(tmp_path / "gate.db", {"D": 5})  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_retry_that_meets_another_retry_gets_the_first_answer(make: Make) -> None:
    platform = make()
    gate = platform.gate
    first = gate.decide(["bad", "good"], [0.5, 0.5], request_id="r")
    gate.flush()
    gate.override("bad", 0.5, reason="a test")
    _, again = gate.decider.make(["bad", "good"], [0.5, 0.5], "r", None)
    gate.engine.queued[str(again.key)] = again  # a retry that has not looked into the log yet
    answer = gate.decide(["bad", "good"], [0.5, 0.5], request_id="r")
    assert answer.revision == first.revision and answer.psi.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="request_id 'r' has another body"):
        gate.decide(["bad", "good"], [0.4, 0.6], request_id="r")


def _tables(path: Path) -> list[Any]:
    """Everything that a file holds."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        return [file.execute(f"SELECT * FROM {name}").fetchall()
                for name in ("events", "snapshots", "ledger")]  # fmt: skip


@pytest.mark.parametrize("kept", [0, 3])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_log_that_ends_before_its_snapshot_is_refused(
    make: Make, kept: int, read_only: bool
) -> None:
    platform = make()
    for i in range(4):
        platform.report(f"s{i}")
    platform.gate.close()
    with closing(sqlite3.connect(platform.path)) as file:
        file.execute("DELETE FROM events WHERE position > ?", (kept,))
        file.commit()
    before = _tables(platform.path)
    with pytest.raises(UserError, match="restore a whole copy") as raised:
        Gate.open(platform.path, read_only=read_only, clock=lambda: platform.now)
    assert "\n" not in str(raised.value)
    assert _tables(platform.path) == before


def test_the_snapshot_of_another_gate_is_refused(make: Make) -> None:
    one, other = make(), make()
    for platform in (one, other):
        platform.report("s")
        platform.gate.close()
    with closing(sqlite3.connect(one.path)) as file:
        file.execute("ATTACH ? AS other", (str(other.path),))
        file.execute("DELETE FROM snapshots")
        file.execute("INSERT INTO snapshots SELECT * FROM other.snapshots")
        file.commit()
    before = _tables(one.path)
    with pytest.raises(UserError, match="holds the snapshot of another gate"):
        one.open()
    assert _tables(one.path) == before
