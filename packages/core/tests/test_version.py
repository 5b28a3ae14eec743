"""What is said of an installation of which parts do not fit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def install(folder: Path, name: str, number: str) -> None:
    info = folder / f"{name.replace('-', '_')}-{number}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    paths = [str(folder), *(p for p in sys.path if p)]
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip


@pytest.mark.parametrize("stranger", [False, True])
def test_another_project_named_rapo_is_warned_of(tmp_path: Path, stranger: bool) -> None:
    for name in ("rapo-core", "rapo-rl"):
        install(tmp_path, name, "7.8.9")
    if stranger:
        install(tmp_path, "rapo", "0.6.15")
    done = run(tmp_path, "import rapo; print(rapo.__version__)")
    assert done.stdout.strip() == "7.8.9"
    assert ("0.6.15" in done.stderr) == stranger


@pytest.mark.parametrize(
    ("distribution", "command"), [("rapo-rl", "rapo.cli"), ("rapo-gate", "rapo_gate.cli")]
)
def test_a_command_refuses_two_versions_side_by_side(
    tmp_path: Path, distribution: str, command: str
) -> None:
    install(tmp_path, "rapo-core", "7.8.9")
    install(tmp_path, distribution, "7.8.10")
    done = run(
        tmp_path, f"import sys; sys.argv[1:] = ['--help']\nfrom {command} import main\nmain()"
    )
    assert done.returncode == 2 and not done.stdout
    lines = done.stderr.splitlines()
    assert "7.8.9" in lines[-1] and "7.8.10" in lines[-1] and "pip install" in lines[-1]
