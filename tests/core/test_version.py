"""The name under which the package is installed, and a stranger of the same import name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rapo.core.version import DISTRIBUTION


def _installed(folder: Path, name: str, number: str) -> None:
    info = folder / f"{name.replace('-', '_')}-{number}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")


def _imported(folder: Path) -> tuple[str, str]:
    paths = [str(folder), *(p for p in sys.path if p)]
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", "import rapo; print(rapo.__version__)"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize("stranger", [False, True])
def test_a_stranger_of_the_same_name_is_told(tmp_path: Path, stranger: bool) -> None:
    _installed(tmp_path, DISTRIBUTION, "7.8.9")
    if stranger:
        _installed(tmp_path, "rapo", "0.6.15")
    number, told = _imported(tmp_path)
    assert number == "7.8.9"
    assert ("0.6.15" in told) == stranger
