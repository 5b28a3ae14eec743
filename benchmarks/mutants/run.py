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
TESTS = {
    "core/src/rapo_core": (
        "packages/core/tests",
        "packages/rl/tests/theory/test_lemmas.py",
        "packages/rl/tests/cascade/test_engine.py",
    ),
    "rl/src/rapo/cascade": ("packages/rl/tests/cascade", "packages/rl/tests/envs"),
    "rl/src/rapo/rsd": ("packages/rl/tests/rsd",),
    "rl/src/rapo/agents": ("packages/rl/tests/agents",),
    "gate/src/rapo_gate/fold/fold.py": tuple(
        f"packages/gate/tests/test_{name}.py"
        for name in (
            "fold", "course", "bounds", "histories", "arrivals", "waiting", "storage", "retention",
        )
    ),
    "rl/src/rapo/platforms": ("packages/rl/tests/platforms",),
}  # fmt: skip
"""What is mutated, below `packages`, and the tests that should notice it. The file that is named
like the module comes first."""
FOLDERS = tuple(TESTS)
CPU_SECONDS = 1800
"""After which a mutant that runs for ever is taken as noticed; the processor's time, not ours."""
_COPIED = ("packages", "tests", "pyproject.toml")
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
        """Lists of tests for a module below `packages`, nearest first."""
        folder = next(name for name in TESTS if file.startswith(name))
        names = {f"test_{Path(file).stem}.py", f"test_{Path(file).parent.name}.py"}
        tests = self.folder / "packages" / file.partition("/")[0] / "tests"
        near = [
            path.relative_to(self.folder).as_posix()
            for path in sorted(tests.rglob("test_*.py"))
            if path.name in names
        ]
        return [near, [f"packages/{file}", *TESTS[folder]]] if near else [[*TESTS[folder]]]

    def judge(self, mutant: Mutant) -> Verdict:
        """Apply a mutant, run its tests, and take it back.

        Mutants of files with kernels, and of what stands outside functions, begin with no compiled
        kernel: theirs must not stay in the cache that the other mutants share.
        """
        path = self.folder / "packages" / mutant.file
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
        changes = {
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
            "NUMBA_CACHE_DIR": str(self.kernels if kernels is None else kernels),
            "PYTHONPATH": os.pathsep.join(
                [*map(str, sorted(self.folder.glob("packages/*/src"))), str(self.folder)]
            ),
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
