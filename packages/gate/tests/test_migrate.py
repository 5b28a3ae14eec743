"""Logs of the first format: refused by name, and copied by a migration."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from rapo_gate import Gate
from rapo_gate.events import LOG_FORMAT
from rapo_gate.migrate import migrate
from rapo_gate.sqlite import SqliteStore

OLD = Path(__file__).parent / "data" / "first_format.db"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of a log that an earlier version wrote."""
    return Path(shutil.copy(OLD, tmp_path / "old.db"))


def open_gate(path: Path, **more: Any) -> Gate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Gate.open(path, clock=lambda: 61_140.0, **more)


@pytest.mark.parametrize("read_only", [False, True])
def test_an_old_log_is_refused_by_name(old: Path, read_only: bool) -> None:
    with pytest.raises(ValueError, match=r"rapo-gate migrate --db OLD --out NEW"):
        open_gate(old, read_only=read_only)


def test_a_migration_keeps_every_event_at_its_position(old: Path, tmp_path: Path) -> None:
    before = old.read_bytes()
    found = migrate(old, tmp_path / "new.db", {"base_rate": 0.02, "half_life": 60.0})
    assert old.read_bytes() == before
    with open_gate(tmp_path / "new.db") as gate:
        assert gate.verify()["ok"]
        assert gate.config.base_rate == 0.02
        assert gate.config.cap_source == 3.0  # set in the course of the log
        store = SqliteStore(str(old), read_only=True)
        was, now = store.read(0, 1000), gate.events(0, found.events)
        store.close()
        kinds = {e.kind for e in was}
        assert kinds >= {"Decision", "Exposure", "HarmReport", "Rollback", "Allow", "Override"}
        assert [(e.position, e.kind, e.at, e.key) for e in now] == [
            (e.position, e.kind, e.at, e.key) for e in was
        ]
        assert [e.body for e in now if e.kind != "ConfigChange"] == [
            e.body for e in was if e.kind != "ConfigChange"
        ]
        assert now[0].data()["format"] == LOG_FORMAT
        assert found.events == len(was)
        fields = gate.fields()
        assert fields["bad"].H > 0
        assert fields["faint"] == (0.0, 0.0, 1.0)
        assert fields["good"].psi == 0.8
    assert found.regions == 4
    assert found.lower <= found.differ <= 3  # nothing was ever told of the fourth


def test_a_migration_knows_what_it_is_given(old: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tau"):
        migrate(old, tmp_path / "new.db", {"tau": 1.0})
    migrate(old, tmp_path / "new.db")
    with pytest.raises(ValueError, match="not empty"):
        migrate(old, tmp_path / "new.db")
    with pytest.raises(ValueError, match="format 2"):
        migrate(tmp_path / "new.db", tmp_path / "newer.db")
    with pytest.raises(ValueError, match="no log"):
        migrate(tmp_path / "nothing.db", tmp_path / "newer.db")
