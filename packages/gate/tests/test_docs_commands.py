"""Commands in the gate's documentation: those in blocks run as written, the others exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

DOCS = sorted((ROOT / "docs/gate").glob("*.md"))
ELSEWHERE = ("demo", "serve")
"""Commands with tests of their own: one takes long, the other does not end."""


def blocks(page: Path) -> list[list[str]]:
    """Commands of the page's shell blocks, in words."""
    found = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.S | re.M)
    lines = [line for block in found for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("rapo-gate ")]


@pytest.mark.parametrize("page", [p for p in DOCS if blocks(p)], ids=lambda page: page.name)
def test_commands_in_blocks_run(
    page: Path,
    ok: Callable[..., str],
    db: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"--source": "user-17", "--key": "1", "--harm": 1, "--signal": "user-report"}
    words: list[Any] = [word for pair in given.items() for word in pair]
    ok("report", "--db", db, *words, "--regions", "bad")
    for command in blocks(page):
        empty = tmp_path / "empty"
        empty.mkdir(exist_ok=True)
        monkeypatch.chdir(empty if command[0] == "init" else db.parent)
        if command[0] not in ELSEWHERE:
            assert ok(*command), command


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_commands_in_sentences_exist(page: Path, ok: Callable[..., str]) -> None:
    for name, options in re.findall(r"rapo-gate ([a-z]+)([^`\n]*)", page.read_text()):
        shown = ok(name, "--help")
        for option in re.findall(r"(?<!\S)--[\w-]+", options.partition("#")[0]):
            assert option in shown, f"rapo-gate {name} has no {option}"
