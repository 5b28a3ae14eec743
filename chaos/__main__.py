"""`python -m chaos [DRILL]`: break a gate on purpose; exit 1 if a promise was broken."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One clear line; the usage is a --help away."""
        self.exit(2, f"{self.prog}: {message}\n")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; anything wrong with it ends with one line and exit code 2."""
    parser = _Parser(prog="python -m chaos", description=__doc__)
    parser.add_argument(
        "drill", nargs="?", choices=["kill", "replicas", "schema", "all"], default="all",
        help="kill: SQLite and kill -9; replicas: PostgreSQL and every fault; schema: requests "
        "that the OpenAPI document allows and forbids (default all three)",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=1000, help="of kill (default 1000)")
    parser.add_argument("--seconds", type=float, default=60, help="of replicas (default 60)")
    parser.add_argument("--requests", type=int, default=10_000, help="of schema (default 10000)")
    parser.add_argument("--seed", type=int, help="of the moments of kill")
    given = parser.parse_args(argv)
    if given.rounds < 1:
        parser.error(f"--rounds must be >= 1, got {given.rounds}")
    if given.requests < 1:
        parser.error(f"--requests must be >= 1, got {given.requests}")
    if not 0 < given.seconds < 1e6:
        parser.error(f"--seconds must be > 0, got {given.seconds:g}")
    return given


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print a table, return the exit code."""
    given = parse(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: threads do not survive a fork
    from chaos import kill, replicas, schema

    results: dict[str, dict[str, str]] = {}
    if given.drill in ("kill", "all"):
        results["kill"] = kill.run(given.rounds, given.seed, _say)
    if given.drill in ("replicas", "all"):
        results["replicas"] = replicas.run(given.seconds, _say)
    if given.drill in ("schema", "all"):
        results["schema"] = schema.run(given.requests, _say)
    for name, result in results.items():
        print(f"\n{name}")
        width = max(map(len, result))
        for what, value in result.items():
            print(f"  {what:<{width}}  {value}")
    broken = [f"{name}: {r['problem']}" for name, r in results.items() if "problem" in r]
    for line in broken:
        print(f"FAILED {line}", file=sys.stderr)
    return 1 if broken else 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
