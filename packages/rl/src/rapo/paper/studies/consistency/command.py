"""`rapo reproduce consistency`: read the logs, train the readings, write tables and picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from rapo.cascade.setting import READINGS, Setting
from rapo.jobs.folder import claim_folder, note_versions
from rapo.jobs.job import digest, unfinished
from rapo.jobs.lock import locked
from rapo.jobs.run import checked_slots, run_with_bar
from rapo.jobs.tables import need_pyarrow
from rapo.paper.jobs import jobs_of
from rapo.paper.results import Results
from rapo.paper.studies.consistency import frontier, readings, shifts
from rapo.paper.studies.consistency.figure import plot_consistency
from rapo.paper.studies.consistency.reasons import Reason, reasons, spread_curve
from rapo.paper.studies.consistency.screened import Screened, read_logs
from rapo.paper.studies.consistency.summary import PICTURE, rests_on, summary
from rapo_core.checks import UserError
from rapo_core.params import FieldParams

SHIFTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "quick": {"graphs": (1000,)},
    "smoke": {"graphs": (1000,), "episodes": 4},
}
"""How much of the settings that meet RAG and off@rep both is run again, by preset."""


@dataclass(frozen=True)
class Found:
    """What the study found."""

    screened: Screened
    extremes: pd.DataFrame
    pairs: pd.DataFrame
    readings: pd.DataFrame
    """See `readings.judged`."""
    reasons: list[Reason]


def consistency_from_words(
    preset: str, out: Path, *, data: Path, engine: str, jobs: int | None
) -> None:
    """`rapo reproduce consistency`: see its help for the arguments."""
    console = Console()
    found = run_consistency(preset, out, data=data, engine=engine, jobs=jobs, console=console)
    if len(found.screened.frame):
        table = Table("asked", "where", "settings", "value", box=box.SIMPLE_HEAD)
        for row in frontier.printed(found.extremes).itertuples(index=False):
            table.add_row(*map(str, row))
        console.print(table)
    for reason in found.reasons:
        console.print(f"[bold]{reason.name}[/bold] ({reason.kind}): {reason.numbers_text()}")
    console.print(f"wrote {out / 'summary.md'} and {out / PICTURE}", highlight=False)


def run_consistency(
    preset: str,
    out: Path | str,
    *,
    data: Path | str,
    engine: str = "local",
    jobs: int | None = None,
    console: Console | None = None,
    names: Sequence[str] = READINGS,
) -> Found:
    """Read what was screened, train the readings and write the tables.

    Args:
        preset: `smoke`, `quick` or `paper`: how much is trained.
        out: folder of the results; goes on with what it holds.
        data: folder below which the calibration's logs lie; without any the frontier is left out,
            and told.
        engine: `local` or `ray`.
        jobs: tasks at a time, default one per core.
        console: where to tell; default none.
        names: the readings that are trained.
    """
    need_pyarrow()
    out, data = Path(out), Path(data)
    if preset not in readings.SIZES:
        raise UserError(f"no preset is called {preset!r}; known are {', '.join(readings.SIZES)}")
    slots = checked_slots(engine, jobs)
    screened = read_logs(data)  # before hours of training: a damaged line ends it here
    if console is not None:
        console.print(rests_on(screened), highlight=False)
    size = readings.SIZES[preset]
    again = shifts.plan(screened.frame, **SHIFTS[preset])
    with locked(out, "rapo reproduce consistency"):
        claim_folder(
            out,
            {
                **size.to_dict(),
                "readings": {name: Setting.named(name).to_dict() for name in names},
                "shifts": SHIFTS[preset],
                "screened": digest(screened.frame.to_dict("list")),
            },
            preset=preset,
            steps=size.steps,
            episodes=size.episodes,
            graph_seeds=list(size.graph_seeds),
            command=f"rapo reproduce consistency --preset {preset}",
            logs=list(screened.logs),
            settings=len(screened.frame),
            counts=dict(screened.counts),
        )
        wanted = jobs_of([*again, *readings.plan(size, names)])
        if unfinished(wanted, out):
            note_versions(out)
        run_with_bar(wanted, out, engine=engine, slots=slots, console=console)
        found = {
            name: readings.measured(Results(out, readings.reading(size, name))) for name in names
        }
        asked, counts = frontier.extremes(screened.frame), frontier.pairs(screened.frame)
        most = frontier.most_together(screened.frame)
        judged, shifted = readings.judged(found), shifts.read(again, out)
        asked.to_csv(out / "frontier.csv", index=False, float_format="%.6g")
        counts.to_csv(out / "pairs.csv", index_label="number")
        judged.to_csv(out / "readings.csv", index=False, float_format="%.6g")
        if len(shifted):
            shifted.to_csv(out / "shifts.csv", index=False, float_format="%.6g")
        figure, _ = plot_consistency(screened.frame, found, spread_curve(FieldParams()))
        figure.savefig(out / PICTURE, dpi=130)
        why = reasons()
        words = summary(size, screened, asked, counts, most, shifted, found, why)
        (out / "summary.md").write_text(words, "utf-8")
    return Found(screened, asked, counts, judged, why)
