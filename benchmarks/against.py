"""`python -m benchmarks.against FOLDER TOPIC...`: this checkout beside another one, in turn.

Every round runs each topic in both checkouts, one after the other and in alternating order, so a
slow hour hits both. A row's figure is the median over the rounds. `worse` says how many times worse
this checkout is: above 1 slower, larger or less, whichever the row is about.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parents[1]
AT_MOST = 1.1
"""Times worse that a row may be."""
LESS_IS_BETTER = ("ns", "us", "ms", "s", "min", "MB", "kB", "B")
Key = tuple[str, str, str]
"""Topic, case and figure of a row."""


def measure(folder: Path, topic: str, rounds: int) -> dict[Key, dict[str, Any]]:
    """The rows of one topic, measured once in the checkout at `folder`."""
    sources = [*folder.glob("packages/*/src"), *folder.glob("src"), folder]
    path = os.pathsep.join(map(str, sources))
    with TemporaryDirectory() as place:
        out = Path(place) / "rows.json"
        words = [sys.executable, "-m", "benchmarks", topic, "--rounds", str(rounds)]
        done = subprocess.run(
            [*words, "--out", str(out)], cwd=folder, env={**os.environ, "PYTHONPATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{topic} failed in {folder}:\n{done.stdout}{done.stderr}")
        rows = json.loads(out.read_text(encoding="utf-8"))["topics"][topic]
    return {(topic, row["case"], row["figure"]): row for row in rows}


def worse(ours: float, theirs: float, row: dict[str, Any]) -> float | None:
    """How many times worse `ours` is; None where the row does not say which way is better."""
    if min(ours, theirs) <= 0:
        return None
    if row["at_least"] is not None or row["unit"].endswith("/s"):
        return theirs / ours
    if row["at_most"] is not None or row["unit"] in LESS_IS_BETTER:
        return ours / theirs
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Measure both checkouts in turn and print a row a figure; 1 if one is too much worse."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("folder", type=Path, help="root of the other checkout")
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of both (default 7)")
    parser.add_argument("--inner", type=int, default=3, help="timing rounds inside (default 3)")
    options = parser.parse_args(argv)
    checkouts = {"here": HERE, "there": options.folder.resolve()}
    values: dict[str, dict[Key, list[float]]] = {name: defaultdict(list) for name in checkouts}
    rows: dict[Key, dict[str, Any]] = {}
    console = Console(width=132)
    for i in range(options.rounds):
        for topic in options.topics:
            for name in sorted(checkouts, reverse=i % 2 == 1):
                console.print(f"round {i + 1} of {options.rounds}: {topic} {name}", style="dim")
                for key, row in measure(checkouts[name], topic, options.inner).items():
                    if row["value"] is not None:
                        values[name][key].append(row["value"])
                        rows[key] = row
    table = Table("topic", "case", "figure", "here", "there", "worse")
    most = 0.0
    for key, row in rows.items():
        if key not in values["here"] or key not in values["there"]:
            table.add_row(*key, "in one checkout alone", "", "")
            continue
        ours, theirs = (statistics.median(values[name][key]) for name in ("here", "there"))
        times = worse(ours, theirs, row)
        most = max(most, times or 0.0)
        shown = "" if times is None else f"{times:.3f}"
        style = "red" if times is not None and times > AT_MOST else ""
        table.add_row(*key, f"{ours:.4g} {row['unit']}", f"{theirs:.4g}", shown, style=style)
    console.print(table)
    console.print(f"worst row: {most:.3f} times worse (at most {AT_MOST} is asked)")
    return int(most > AT_MOST)


if __name__ == "__main__":
    sys.exit(main())
