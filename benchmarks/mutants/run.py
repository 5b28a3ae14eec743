"""Run the tests of a module against one mutant, in a copy of the tree with kernels of its own."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.mutants.sites import Mutant

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "cascade", "rsd", "agents", "gate/fold.py", "platforms")
"""What is mutated, below `src/rapo`."""
TESTS = {
    "core": ("tests/core", "tests/test_theory.py", "tests/cascade/test_engine.py"),
    "cascade": ("tests/cascade", "tests/envs"),
    "rsd": ("tests/rsd",),
    "agents": ("tests/agents",),
    "gate": (
        "tests/gate/test_fold.py", "tests/gate/test_course.py", "tests/gate/test_bounds.py",
        "tests/gate/test_histories.py", "tests/gate/test_arrivals.py", "tests/gate/test_waiting.py",
        "tests/gate/test_storage.py", "tests/gate/test_retention.py",
    ),
    "platforms": ("tests/platforms",),
}  # fmt: skip
"""Tests of a folder; the file that is named like the module comes first."""
CPU_SECONDS = 1800
"""After which a mutant that runs for ever is taken as noticed; the processor's time, not ours."""
_COPIED = ("src", "tests", "pyproject.toml")
_KERNELS = re.compile(rb"^@(?:kernel|lean_kernel|inlined|intrinsic|njit)\b", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What the tests said."""

    outcome: str
    """killed or survived."""
    by: str
    """The first test that failed, or how the run ended."""


class Tree:
    """A copy of the tree; tests run in it, and its kernels compile beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kernels = folder / "tree", folder / "kernels"
        self.folder.mkdir()
        for place in sorted(ROOT.iterdir()):
            if place.name in _COPIED:
                self._copy(place)
            elif not place.name.startswith("."):
                (self.folder / place.name).symlink_to(place)

    def _copy(self, place: Path) -> None:
        if place.is_file():
            shutil.copy2(place, self.folder / place.name)
            return
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(place, self.folder / place.name, ignore=unwanted)

    def tests_of(self, file: str) -> list[list[str]]:
        """Lists of tests for a module below `src/rapo`, nearest first."""
        folder, name = file.partition("/")[0], Path(file).stem
        inner = Path(file).parent.name
        near = [
            str(path)
            for stem in dict.fromkeys((name, inner))
            if (path := Path("tests", folder, f"test_{stem}.py")) and (self.folder / path).is_file()
        ]
        return [near, [f"src/rapo/{file}", *TESTS[folder]]] if near else [[*TESTS[folder]]]

    def judge(self, mutant: Mutant) -> Verdict:
        """Apply a mutant, run its tests, and take it back.

        A kernel takes in functions and numbers of modules when it is compiled: mutants of files
        with kernels, and of what stands outside functions, begin with none compiled.
        """
        path = self.folder / "src" / "rapo" / mutant.file
        original = path.read_bytes()
        inside = _KERNELS.search(original) is None and mutant.scope != "module"
        verdict = Verdict("survived", "")
        with TemporaryDirectory(prefix="kernels-") as empty:
            path.write_bytes(mutant.applied(original))
            try:
                for tests in self.tests_of(mutant.file):
                    verdict = self.run(tests, None if inside else Path(empty))
                    if verdict.outcome == "killed":
                        break
            finally:
                path.write_bytes(original)
        return verdict

    def run(self, tests: Sequence[str], kernels: Path | None = None) -> Verdict:
        """Pytest up to the first failure; `kernels` instead of those that other runs compiled."""
        words = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "no:xdist",
                 "--hypothesis-seed=0"]  # fmt: skip
        if kernels is None:
            words += ["-p", "benchmarks.mutants.same_kernels"]
        changes = {
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
            "NUMBA_CACHE_DIR": str(self.kernels if kernels is None else kernels),
            "PYTHONPATH": os.pathsep.join((str(self.folder / "src"), str(self.folder))),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with TemporaryDirectory(prefix="mutant-") as temporary:
            done = subprocess.run(
                [*words, "--basetemp", f"{temporary}/pytest", *tests], cwd=self.folder,
                env={**os.environ, **changes}, check=False, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, preexec_fn=_limit,
            )  # fmt: skip
        if done.returncode == 0:
            return Verdict("survived", "")
        if done.returncode in (4, 5):  # wrong words, or no tests: nothing was judged
            raise RuntimeError(f"pytest could not run {' '.join(tests)}:\n{done.stdout}")
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return Verdict("killed", failed[1] if failed else f"exit code {done.returncode}")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
