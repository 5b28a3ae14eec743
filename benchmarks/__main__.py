"""`python -m benchmarks [TOPIC ...]`: measure, print one table per topic, optionally write JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from benchmarks import topics
from benchmarks.effort import Effort
from benchmarks.table import Row, render

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_HOURS = ("mutants", "sb3_match", "suite_agents")
"""Topics that take hours: run when they are named."""
_NARROWEST = 132
"""Columns of a table that is written to a file or a narrow terminal; less folds every cell."""
_PACKAGES = (
    "numpy", "scipy", "numba", "gymnasium", "torch", "jax", "ndlib", "cynetdiff",
    "stable-baselines3",
)  # fmt: skip


def topic_names() -> list[str]:
    """Every file of `benchmarks/topics`."""
    return sorted(module.name for module in pkgutil.iter_modules(topics.__path__))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One clear line; the usage is a --help away."""
        self.exit(2, f"{self.prog}: {message}\n")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; anything wrong with it ends with one line and exit code 2."""
    known = topic_names()
    parser = _Parser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "topics", nargs="*", metavar="TOPIC", help=f"of {known}; default all but {_HOURS}"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of timing (default 15)")
    parser.add_argument(
        "--largest", type=int, default=1_000_000, help="nodes of the largest graph (default 10^6)"
    )
    given = parser.parse_args(argv)
    unknown = [name for name in given.topics if name not in known]
    if unknown:
        parser.error(f"unknown topic {unknown[0]!r}; known are {', '.join(known)}")
    if given.rounds < 1:
        parser.error(f"--rounds must be >= 1, got {given.rounds}")
    if given.largest < 1000:
        parser.error(f"--largest must be >= 1000, got {given.largest}")
    if given.out is not None and given.out.exists() and not given.force:
        parser.error(f"{given.out} exists; choose another name or add --force")
    if given.out is not None and not given.out.resolve().parent.is_dir():
        parser.error(f"{given.out.parent} is not a folder; make it first")
    given.topics = list(dict.fromkeys(given.topics)) or [n for n in known if n not in _HOURS]
    return given


def one_thread() -> None:
    """Limit every thread pool to one, here and in child processes.

    The libraries read these variables when they are first loaded: topics, and with them NumPy, are
    imported later than this.
    """
    os.environ.update(dict.fromkeys(_THREADS, "1"))


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    versions: dict[str, str | None] = {}
    for package in ("rapo-rl", *_PACKAGES):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")  # platform.processor() is empty on most Linux systems
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen topics; the exit code."""
    given = parse(argv)
    one_thread()
    console = Console()
    console.width = max(console.width, _NARROWEST)
    about = machine()
    console.print(f"{about['processor']}, Python {about['python']}, one thread", highlight=False)
    results: dict[str, list[Row]] = {}
    for name in given.topics:
        module = importlib.import_module(f"benchmarks.topics.{name}")
        with console.status(name) as status:
            effort = Effort(given.rounds, given.largest, progress=status.update)
            results[name] = module.measure(effort)
        console.print(render(module.TITLE, results[name]))
    if given.out is not None:
        content = {
            "machine": about,
            "rounds": given.rounds,
            "topics": {name: [r.to_dict() for r in rows] for name, rows in results.items()},
        }
        given.out.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        console.print(f"written to {given.out}", highlight=False)
    missed = sum(row.verdict == "miss" for rows in results.values() for row in rows)
    if missed:
        console.print(f"{missed} target(s) missed", style="red", highlight=False)
    return 1 if missed and given.strict else 0


if __name__ == "__main__":
    sys.exit(main())
