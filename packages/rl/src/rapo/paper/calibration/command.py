"""`rapo calibrate`: screen, look again, train, choose; every result is a line of a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rapo.cascade.setting import Setting
from rapo.paper.calibration.log import Log
from rapo.paper.calibration.search import Report, distinct, screening, second_look
from rapo.paper.calibration.space import SETTING_FILE, setting_text
from rapo.paper.calibration.trained import training
from rapo.paper.paper import METRICS, TABLE1
from rapo_core.checks import UserError, whole_number


def calibrate(
    out: Path | str,
    *,
    points: int = 8,
    rounds: int = 5,
    around: int = 36,
    finalists: int = 2,
    steps: int = 800_000,
    jobs: int | None = None,
    report: Report = lambda line: None,
) -> dict[str, Any]:
    """Search; return the setting of the choice with its score and measured values.

    Args:
        out: folder of the logs `screening.jsonl`, `second_look.jsonl` and `training.jsonl`; a
            search that was cut goes on.
        points: Sobol points, a power of 2.
        rounds: generations of children of the best.
        around: children of each.
        finalists: settings that are tried with trained policies.
        steps: training steps of each.
        jobs: processes, default one per core.
        report: called with a line of progress.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    tried = screening(Log(out / "screening.jsonl"), points, rounds, around, jobs, report)
    looked = second_look(Log(out / "second_look.jsonl"), tried, jobs, report)
    best = [Setting.from_dict(entry["setting"]) for entry in distinct(looked, finalists)]
    judged = training(Log(out / "training.jsonl"), best, steps, jobs, report)
    winner = min(judged, key=lambda entry: float(entry["score"]))
    report(f"chosen: score {winner['score']:.2f}")
    (out / "chosen.json").write_text(json.dumps(winner, indent=2) + "\n", encoding="utf-8")
    return winner


def calibrate_from_words(out: Path, *, steps: int, write: bool, **numbers: Any) -> None:
    """`rapo calibrate`: see its help for the arguments."""
    for name in ("points", "rounds", "around", "finalists"):
        whole_number(f"--{name}", numbers[name], 1)
    if numbers["points"] & (numbers["points"] - 1):
        raise UserError(f"--points must be a power of 2, got {numbers['points']}")
    if numbers["jobs"] is not None:
        whole_number("--jobs", numbers["jobs"], 1)
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose another --out")
    console = Console()
    with console.status("screening") as status:

        def report(line: str) -> None:
            status.update(line)
            console.print(line, highlight=False)

        winner = calibrate(out, steps=steps, report=report, **numbers)
    setting = Setting.from_dict(winner["setting"])
    table = Table("method", *METRICS, "OddsRatio", "R_c", box=box.SIMPLE_HEAD)
    for method, row in winner["found"].items():
        paper = TABLE1.get(method)
        cells = [f"{row[m]:.2f}" + (f" ({paper[m][0]:.2f})" if paper else "") for m in METRICS]
        table.add_row(method, *cells, f"{row['OddsRatio']:.2f}", f"{row['R_c']:.1f}")
    console.print("trained on calibration graphs, the paper's numbers in brackets")
    console.print(table)
    console.print(setting_text(setting), highlight=False)
    if write:
        path = Path(str(SETTING_FILE))
        path.write_text(setting_text(setting), encoding="utf-8")
        console.print(f"wrote {path}", highlight=False)
