"""`rapo reproduce`: run what the paper's tables, figures and claims need; one page of it all."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rapo.agents.checkpoint import replace_text
from rapo.cascade.setting import Setting
from rapo.html.terminal import print_sections
from rapo.jobs.lock import locked
from rapo.paper.cost import hours
from rapo.paper.page import write_page
from rapo.paper.piece_folder import PACK, pack
from rapo.paper.pieces import need_pyarrow
from rapo.paper.presets import Preset, preset_named
from rapo.paper.schedule import checked_slots, make_engine, needed, run_tasks
from rapo.paper.studies.section import Section, Store
from rapo.paper.task import Task
from rapo.paper.tasks import Evaluate
from rapo_core.checks import UserError
from rapo_core.version import VERSION

STUDIES = {
    "table1": "table1",
    "learning": "learning",
    "literal": "literal",
    "table-a1": "table_a1",
    "sizes": "sizes",
    "tradeoff": "tradeoff",
    "ablations": "ablations",
    "mechanism": "mechanism",
    "motivation": "motivation",
    "seeds": "seeds",
}
"""Words of the command and the folders of `studies` behind them, in the order of the report."""
APART = ("seeds",)
"""Studies that `all` leaves out: they ask about the method of work, not about the paper."""

PACKAGES = ("numpy", "numba", "torch", "gymnasium", "pandas", "scipy")
"""Whose versions results may depend on."""


class Study(NamedTuple):
    """A folder of `studies`."""

    plan: Callable[[Preset], list[Evaluate]]
    """What has to be run."""
    analyse: Callable[[Store], Section]
    """What is made of it."""


def study(name: str) -> Study:
    """A study by its word."""
    folder = f"rapo.paper.studies.{STUDIES[name]}"
    plan, analysis = (import_module(f"{folder}.{part}") for part in ("plan", "analysis"))
    return Study(plan.plan, analysis.analyse)


def chosen_studies(what: str) -> list[str]:
    """Studies from a word of the command, or several with commas between; the report's order."""
    if what == "all":
        return [name for name in STUDIES if name not in APART]
    if what == "figures":
        return list(STUDIES)
    words = [word.strip() for word in what.split(",")]
    for word in words:
        if word in ("all", "figures", "pack"):
            raise UserError(f"{word} stands alone, got {what!r}")
        if word not in STUDIES:
            raise UserError(
                f"no study is called {word!r}; known are {', '.join(STUDIES)}, figures, pack and "
                "all"
            )
    return [name for name in STUDIES if name in words]


def reproduce(
    what: str,
    preset_name: str,
    out: Path | str,
    *,
    engine: str = "local",
    jobs: int | None = None,
    reading: str | None = None,
    console: Console | None = None,
) -> list[Section]:
    """Run the studies, write tables, figures and the report to `out`; the sections.

    Args:
        what: a study, several with commas, `all`, or `figures` to draw again from what is there.
        preset_name: `smoke`, `quick` or `paper`.
        out: folder of the results; goes on with what it holds.
        engine: `local` or `ray`.
        jobs: tasks at a time, default one per core.
        reading: of the paper, see `Setting.named`; default the package's own.
        console: where to tell; default none.
    """
    need_pyarrow()
    out = Path(out)
    names = chosen_studies(what)
    preset = preset_named(preset_name)
    if reading is not None:
        preset = replace(preset, setting=Setting.named(reading))
    slots = checked_slots(engine, jobs)
    if what == "figures" and not (out / "manifest.json").exists():
        raise UserError(_nothing_finished(preset, out))
    with locked(out):
        if what == "figures":
            preset = preset_of(out, preset)
            names = finished_studies(preset, out, console)
        else:
            claim_folder(out, preset)
            goals = [task for name in names for task in study(name).plan(preset)]
            if needed(goals, out):
                note_versions(out)
            run_goals(goals, out, engine, slots, console)
        store = Store(out, preset)
        sections = [study(name).analyse(store) for name in names]
        finished = [n for n in STUDIES if n in names or not missing_pieces(n, preset, out)]
        whole = [
            sections[names.index(n)] if n in names else study(n).analyse(store) for n in finished
        ]
        write_sections(whole, out)
        write_page(whole, store, out)
    return sections


def missing_pieces(name: str, preset: Preset, out: Path) -> list[str]:
    """Keys of a study's pieces that are not there, in the order of its plan."""
    return list(dict.fromkeys(t.key for t in study(name).plan(preset) if not t.done(out)))


def finished_studies(preset: Preset, out: Path, console: Console | None) -> list[str]:
    """Studies that can be drawn; tells of the others, whose sections the report goes without."""
    missing = {name: missing_pieces(name, preset, out) for name in STUDIES}
    # one that needs no pieces can be drawn anywhere, which says nothing of the folder
    if not any(study(name).plan(preset) and not keys for name, keys in missing.items()):
        raise UserError(_nothing_finished(preset, out))
    now = preset == preset_named(preset.name)
    for name, keys in missing.items():
        if keys and console is not None:
            remedy = f"{_command(name, preset, out)} makes what is missing"
            console.print(
                f"left out {name}: {len(keys)} of its pieces missing, the first is {keys[0]}; "
                + (remedy if now else "the folder was made with other defaults, nothing is added"),
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    return [name for name, keys in missing.items() if not keys]


def _nothing_finished(preset: Preset, out: Path) -> str:
    return f"{out} holds no finished study; {_command('all', preset, out)} makes them"


def _command(what: str, preset: Preset, out: Path) -> str:
    return f"rapo reproduce {what} --preset {preset.name} --out {out}"


def preset_of(out: Path, preset: Preset) -> Preset:
    """The preset as the folder has it: results of other defaults can be drawn, not added to."""
    path = out / "manifest.json"
    kept = _manifest(path)["config"]
    if kept.get("name") != preset.name:
        claim_folder(out, preset)  # which refuses it
    try:
        return Preset.from_dict(kept)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}); choose another --out") from error


def refuse_another_config(out: Path, before: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Refuse a folder whose results are of another config than `mine`; the first value is named."""
    names = sorted(k for k in {*before, *mine} if before.get(k) != mine.get(k))
    if names:
        first = names[0]
        raise UserError(
            f"{out} holds results of another config; they differ in {', '.join(names)} "
            f"(there {first} = {before.get(first)}, now {mine.get(first)}); choose another --out"
        )


def claim_folder(out: Path, preset: Preset) -> None:
    """Say in `manifest.json` what the folder holds; refuse one that holds something else."""
    path = out / "manifest.json"
    mine = json.loads(json.dumps(preset.to_dict()))
    if path.exists():
        refuse_another_config(out, _manifest(path)["config"], mine)
        return
    content = {
        "preset": preset.name,
        "steps": preset.steps,
        "graph_seeds": list(preset.graph_seeds),
        "episodes": preset.episodes,
        "command": f"rapo reproduce all --preset {preset.name}",
        "versions": versions(),
        "config": mine,
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Of this program and of what computes for it."""
    return {
        "rapo": VERSION,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def note_versions(out: Path) -> None:
    """Add our versions to the manifest if the folder's results were made with others so far."""
    path, mine = out / "manifest.json", versions()
    content = _manifest(path)
    others = content.pop("also_made_with", [])
    if content.get("versions") == mine or mine in others:
        return
    content["also_made_with"] = [*others, mine]
    replace_text(path, json.dumps(content, indent=2) + "\n")


def _manifest(path: Path) -> dict[str, Any]:
    """What the file says; a damaged one is named."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content["config"], dict):
            raise UserError("config is not an object")
        if not isinstance(content.get("also_made_with", []), list):
            raise UserError("also_made_with is not a list")
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); choose another --out") from error
    return content


def run_goals(
    goals: Sequence[Task], out: Path, engine: str, slots: int, console: Console | None
) -> None:
    """Run what the goals still need, with a progress bar; what failed is told in words."""
    waiting = needed(goals, out)
    if not waiting:
        return
    if console is not None:
        console.print(
            f"{len(waiting)} tasks, about {hours(waiting):.2g} hours of one thread, {slots} at a "
            "time",
            highlight=False,
        )
    with (
        make_engine(engine, slots) as place,
        Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[now]}"),
            console=console,
            disable=console is None,
            transient=True,
        ) as progress,
    ):
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
            raise UserError(str(error)) from error


def write_sections(sections: Sequence[Section], out: Path) -> None:
    """CSV files and pictures of the sections; made anew from the pieces, so overwritten."""
    for section in sections:
        for name, frame in section.files.items():
            frame.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        for name, _, figure in section.figures:
            (out / "figures").mkdir(exist_ok=True)
            figure.savefig(out / "figures" / f"{name}.png", dpi=130)


def reproduce_from_words(
    what: str,
    preset: str,
    out: Path | None,
    *,
    engine: str,
    jobs: int | None,
    reading: str | None = None,
) -> None:
    """`rapo reproduce`: see its help for the arguments."""
    console = Console()
    name = preset_named(preset).name + (f"-{reading}" if reading else "")
    folder = Path("results") / name if out is None else out
    if what == "pack":
        checked_slots(engine, jobs)
        pack_from_words(folder, console)
        return
    sections = reproduce(
        what, preset, folder, engine=engine, jobs=jobs, reading=reading, console=console
    )
    print_sections(console, sections, folder)


def pack_from_words(out: Path, console: Console) -> None:
    """`rapo reproduce pack`: the pieces of a folder of results in one file."""
    if not (out / "pieces").is_dir():
        raise UserError(f"{out} holds no pieces; give the folder of a run with --out")
    with locked(out):
        fresh, count = pack(out)
    done = f"packed {fresh} of them" if fresh else "nothing new to pack"
    console.print(f"{done}; pieces in {out / 'pieces' / PACK}: {count}", highlight=False)
