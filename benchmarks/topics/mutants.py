"""One wrong operator, number or condition at a time: do the tests of the module notice?

150 of all such sites of core, cascade, rsd, agents, the gate's fold and the platforms, drawn by a
fixed seed. Every verdict is written as it comes; a second run goes on from there, and runs again
what survived without a reason. `results/mutants/equivalent.csv` says of a survivor why no test can
notice it.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.effort import Effort
from benchmarks.mutants.run import FOLDERS, ROOT, Tree, Verdict
from benchmarks.mutants.sites import Mutant, sample
from benchmarks.table import Row

TITLE = "Mutants that the tests of their module notice"
COUNT, LEAST, SEED = 150, 10, 0
"""Mutants, those of every folder at least, and the seed of the draw."""
MOST = 10.0
"""Percent of mutants that may survive, whatever the reason."""
RESULTS = ROOT / "results" / "mutants"


def measure(effort: Effort) -> list[Row]:
    drawn = sample(ROOT / "packages", FOLDERS, COUNT, LEAST, SEED)
    verdicts = judge_all(drawn, RESULTS / "verdicts.jsonl", effort)
    write(drawn, verdicts)
    return rows(drawn, verdicts, reasons())


def judge_all(drawn: list[Mutant], path: Path, effort: Effort) -> dict[str, Verdict]:
    """The verdict of every mutant by key; from `path` if it was killed or survived for a reason."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known, why = read(path), reasons()
    left = [
        m
        for m in drawn
        if m.key not in known or (known[m.key].outcome == "survived" and m.key not in why)
    ]
    with TemporaryDirectory(prefix="mutants-") as made:
        tree = Tree(Path(made))
        for i, mutant in enumerate(left):
            effort.progress(f"{i + 1} of {len(left)}: {mutant.file}:{mutant.line}")
            known[mutant.key] = tree.judge(mutant)
            told = {"key": mutant.key, **vars(known[mutant.key])}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(told) + "\n")
        effort.progress("the tests that noticed, without a mutant")
        check_noticers(tree, [known[m.key].by for m in drawn])
    return {m.key: known[m.key] for m in drawn}


def check_noticers(tree: Tree, names: list[str]) -> None:
    """The tests that noticed mutants must pass without one.

    Raises:
        RuntimeError: one of them fails, so that its verdicts mean nothing.
    """
    tests = sorted({name for name in names if name.startswith("packages/")})
    verdict = tree.run(tests) if tests else Verdict("survived", "")
    if verdict.outcome == "killed":
        raise RuntimeError(f"{verdict.by} fails without a mutant; mend it and delete its verdicts")


def read(path: Path) -> dict[str, Verdict]:
    """The latest verdict of every key."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["key"]: Verdict(line["outcome"], line["by"]) for line in lines}


def reasons() -> dict[str, str]:
    """Why a mutant is equivalent, by key."""
    path = RESULTS / "equivalent.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["key"]: row["reason"] for row in csv.DictReader(file)}


def write(drawn: list[Mutant], verdicts: dict[str, Verdict]) -> None:
    """`mutants.csv`: one line a mutant."""
    with (RESULTS / "mutants.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("key", "file", "scope", "kind", "before", "after", "outcome", "killed_by"))
        for m in drawn:
            verdict = verdicts[m.key]
            before, after = (" ".join(text.split()) for text in (m.before, m.after))
            told = (m.key, m.file, m.scope, m.kind, before, after, verdict.outcome, verdict.by)
            out.writerow(told)


def rows(drawn: list[Mutant], verdicts: dict[str, Verdict], why: dict[str, str]) -> list[Row]:
    """Share of survivors, each survivor, and the mutants of every folder."""
    alive = [m for m in drawn if verdicts[m.key].outcome == "survived"]
    unexplained = [m for m in alive if m.key not in why]
    out = [
        Row("survivors", 100 * len(alive) / len(drawn), "%", at_most=MOST, case="all"),
        Row("survivors without a reason", len(unexplained), case="all", at_most=0),
    ]
    for folder in FOLDERS:
        here = [m for m in drawn if m.file.startswith(folder)]
        lost = sum(m in alive for m in here)
        out.append(Row(f"survivors in {folder}", lost, f"of {len(here)}", case="all"))
    for m in alive:
        change = " ".join(f"{m.before} -> {m.after}".split())
        place = f"{m.file}:{m.line} {m.scope}: {change}"
        out.append(Row(place, 1, case="alive", note=why.get(m.key, f"{m.key}: not explained")))
    return out
