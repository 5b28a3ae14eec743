"""`rapo reproduce`: run what the paper's tables, figures and claims need; one page of it all."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rapo.agents.train import locked
from rapo.core.validate import whole_number
from rapo.core.version import VERSION
from rapo.experiments.page import write_page
from rapo.experiments.presets import Preset, preset_named
from rapo.experiments.schedule import ENGINES, make_engine, needed, run_tasks
from rapo.experiments.studies.section import Section, Store
from rapo.experiments.tasks import Task

STUDIES = {
    "table1": "table1",
    "table-a1": "table_a1",
    "sizes": "sizes",
    "tradeoff": "tradeoff",
    "ablations": "ablations",
    "mechanism": "mechanism",
    "motivation": "motivation",
}
"""Words of the command and the files of `studies` behind them, in the order of the report."""


def study(name: str) -> Any:
    """The module of a study."""
    return import_module(f"rapo.experiments.studies.{STUDIES[name]}")


def chosen_studies(what: str) -> list[str]:
    """Studies from a word of the command, or several with commas between; the report's order."""
    if what in ("all", "figures"):
        return list(STUDIES)
    words = [word.strip() for word in what.split(",")]
    for word in words:
        if word in ("all", "figures"):
            raise ValueError(f"{word} stands alone, got {what!r}")
        if word not in STUDIES:
            raise ValueError(
                f"no study is called {word!r}; known are {', '.join(STUDIES)}, figures and all"
            )
    return [name for name in STUDIES if name in words]


def reproduce(
    what: str,
    preset_name: str,
    out: Path,
    *,
    engine: str = "local",
    jobs: int | None = None,
    console: Console | None = None,
) -> list[Section]:
    """Run the studies, write tables, figures and the report to `out`; the sections.

    Args:
        what: a study, several with commas, `all`, or `figures` to draw again from what is there.
        preset_name: `smoke`, `quick` or `paper`.
        out: folder of the results; goes on with what it holds.
        engine: `local` or `ray`.
        jobs: tasks at a time, default one per core.
        console: where to tell; default none.
    """
    names = chosen_studies(what)
    preset = preset_named(preset_name)
    slots = whole_number("jobs", os.cpu_count() or 1 if jobs is None else jobs, 1)
    if engine not in ENGINES:
        raise ValueError(f"engine must be {' or '.join(ENGINES)}, got {engine!r}")
    if what == "figures" and not (out / "manifest.json").exists():
        raise ValueError(
            f"{out} holds no finished study; rapo reproduce all --preset {preset.name} "
            f"--out {out} makes them"
        )
    with locked(out):
        claim_folder(out, preset)
        goals = [task for name in names for task in study(name).plan(preset)]
        if what == "figures":
            names = [n for n in names if not needed(study(n).plan(preset), out)]
            if not names:
                raise ValueError(
                    f"{out} holds no finished study; rapo reproduce all --preset {preset.name} "
                    f"--out {out} makes them"
                )
        else:
            _run(goals, out, engine, slots, console)
        store = Store(out, preset)
        sections = [study(name).analyse(store) for name in names]
        finished = [n for n in STUDIES if n in names or not needed(study(n).plan(preset), out)]
        whole = [
            sections[names.index(n)] if n in names else study(n).analyse(store) for n in finished
        ]
        write_sections(whole, out)
        write_page(whole, store, out)
    return sections


def claim_folder(out: Path, preset: Preset) -> None:
    """Say in `manifest.json` what the folder holds; refuse one that holds something else."""
    path = out / "manifest.json"
    mine = json.loads(json.dumps(preset.to_dict()))
    if path.exists():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))["config"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({error}); choose another --out") from error
        names = sorted(k for k in {*before, *mine} if before.get(k) != mine.get(k))
        if names:
            first = names[0]
            raise ValueError(
                f"{out} holds results of another config; they differ in {', '.join(names)} "
                f"(there {first} = {before.get(first)}, now {mine.get(first)}); choose another "
                "--out"
            )
        return
    packages = ("numpy", "numba", "torch", "gymnasium", "pandas", "scipy")
    content = {
        "preset": preset.name,
        "steps": preset.steps,
        "graph_seeds": list(preset.graph_seeds),
        "episodes": preset.episodes,
        "command": f"rapo reproduce all --preset {preset.name}",
        "versions": {
            "rapo": VERSION, "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
        "config": mine,
    }  # fmt: skip
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _run(
    goals: Sequence[Task], out: Path, engine: str, slots: int, console: Console | None
) -> None:
    waiting = needed(goals, out)
    if not waiting:
        return
    with (
        make_engine(engine, slots) as place,
        Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn(),
            TimeElapsedColumn(), TextColumn("{task.fields[now]}"),
            console=console, disable=console is None, transient=True,
        ) as progress,
    ):  # fmt: skip
        bar = progress.add_task("tasks", total=len(waiting), now="")
        shares: dict[str, float] = {}

        def watch(event: str, task: Task, share: float) -> None:
            if event in ("done", "failed"):
                shares.pop(task.key, None)
                progress.advance(bar)
            else:
                shares[task.key] = share
            now = "  ".join(
                f"{key.removeprefix('train-').rsplit('-', 1)[0]}" + (f" {done:.0%}" if done else "")
                for key, done in list(shares.items())[:4]
            )
            progress.update(bar, now=now)

        try:
            run_tasks(goals, out, place, watch=watch)
        except RuntimeError as error:  # told in words: which tasks, and why
            raise ValueError(str(error)) from error


def write_sections(sections: Sequence[Section], out: Path) -> None:
    """CSV files and pictures of the sections; made anew from the pieces, so overwritten."""
    for section in sections:
        for name, frame in section.files.items():
            frame.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        for name, _, figure in section.figures:
            (out / "figures").mkdir(exist_ok=True)
            figure.savefig(out / "figures" / f"{name}.png", dpi=130)


def reproduce_from_words(
    what: str, preset: str, out: Path | None, *, engine: str, jobs: int | None
) -> None:
    """`rapo reproduce`: see its help for the arguments."""
    console = Console()
    folder = Path("results") / preset_named(preset).name if out is None else out
    sections = reproduce(what, preset, folder, engine=engine, jobs=jobs, console=console)
    for section in sections:
        console.print(f"\n[bold]{section.title}[/bold]")
        for caption, frame in section.tables:
            table = Table(*map(str, frame.columns), title=caption, box=box.SIMPLE_HEAD)
            for row in frame.itertuples(index=False):
                table.add_row(*map(str, row))
            console.print(table)
    console.print(f"wrote {folder / 'report.html'} and {folder / 'summary.md'}", highlight=False)
