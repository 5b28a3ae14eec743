"""`rapo reproduce`: run what the paper's tables, figures and claims need; one page of it all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from rapo.cascade.setting import Setting
from rapo.jobs.folder import claim_folder, note, note_versions, read_manifest
from rapo.jobs.job import Job, unfinished
from rapo.jobs.lock import locked
from rapo.jobs.run import checked_slots, run_with_bar
from rapo.jobs.tables import archive, need_pyarrow
from rapo.paper.jobs import Evaluation, jobs_of
from rapo.paper.page import write_page
from rapo.paper.presets import Preset, preset_named
from rapo.paper.results import Results
from rapo.paper.studies.section import Section
from rapo_core.checks import UserError

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
    "networks": "networks",
    "consistency": "consistency",
}
"""Studies by their name in the command, with their folders in `studies`; the report's order."""
APART = ("seeds", "networks", "consistency")
"""Studies that `all` leaves out: they ask about more than the tables and claims of the paper."""
OWN_SETTING = ("networks", "consistency")
"""Studies that choose the setting themselves, whatever the reading."""


class Study(NamedTuple):
    """A folder of `studies`."""

    plan: Callable[[Preset], Sequence[Evaluation | Job]]
    """What has to be run."""
    analyse: Callable[[Results], Section]
    """What is made of the results."""


def study(name: str) -> Study:
    """A study by its name."""
    folder = f"rapo.paper.studies.{STUDIES[name]}"
    plan, analysis = (import_module(f"{folder}.{part}") for part in ("plan", "analysis"))
    return Study(plan.plan, analysis.analyse)


def selected_studies(what: str) -> list[str]:
    """Studies that the command names: one, several with commas, `all`; in the report's order."""
    if what == "all":
        return [name for name in STUDIES if name not in APART]
    if what == "figures":
        return list(STUDIES)
    names = [name.strip() for name in what.split(",")]
    for name in names:
        if name in ("all", "figures", "archive"):
            raise UserError(f"{name} stands alone, got {what!r}")
        if name not in STUDIES:
            raise UserError(
                f"no study is called {name!r}; studies are {', '.join(STUDIES)}, all of them is "
                "all; figures and archive stand alone"
            )
    return [name for name in STUDIES if name in names]


def planned_jobs(names: Sequence[str], preset: Preset) -> list[Job]:
    """Jobs of several studies; a policy that several of them evaluate is one job."""
    return jobs_of(each for name in names for each in study(name).plan(preset))


def run_studies(
    what: str,
    preset_name: str,
    out: Path | str,
    *,
    engine: str = "local",
    jobs: int | None = None,
    reading: str | None = None,
    data: Path | str | None = None,
    console: Console | None = None,
) -> list[Section]:
    """Run the studies, write tables, figures and the report to `out`; return their sections.

    The report also shows the studies that earlier commands ran into the folder.

    Args:
        what: a study, several with commas, `all`, or `figures` to draw again from the results.
        preset_name: `smoke`, `quick` or `paper`.
        out: folder of the results; a run that was cut goes on with what the folder holds.
        engine: `local` or `ray`.
        jobs: jobs at a time, default one per core.
        reading: of the paper, see `Setting.named`; default the package's own.
        data: folder of the real networks, for the study `networks`; those that are not there are
            left out, and named.
        console: where progress is shown; default nowhere.
    """
    need_pyarrow()
    out = Path(out)
    names = selected_studies(what)
    preset = preset_named(preset_name)
    if data is not None:
        if "networks" not in names:
            raise UserError(f"--data is for the study networks, got {data} for {what}")
        preset = replace(preset, data=str(data))
    if reading is not None:
        if what == "figures" or set(names) & set(OWN_SETTING):
            raise UserError(f"{what} does not take --reading, got {reading}")
        preset = replace(preset, setting=Setting.named(reading))
    slots = checked_slots(engine, jobs)
    if what == "figures" and not (out / "manifest.json").exists():
        raise UserError(_nothing_finished(preset, out))
    with locked(out, "rapo reproduce"):
        if what == "figures":
            preset = preset_of(out, preset)
            names = finished_studies(preset, out, console)
        else:
            claim(out, preset)
            wanted = planned_jobs(names, preset)
            if unfinished(wanted, out):
                note_versions(out)
            run_with_bar(wanted, out, engine=engine, slots=slots, console=console)
        results, before = Results(out, preset), read_manifest(out).get("studies", [])
        shown = [name for name in STUDIES if name in {*names, *before}]
        sections = {name: study(name).analyse(results) for name in shown}
        note(out, studies=shown)
        write_sections(list(sections.values()), out)
        write_page(list(sections.values()), results, out)
    return [sections[name] for name in names]


def archive_results(out: Path) -> int:
    """Archive the frames of all jobs of a folder, see `archive`; return how many jobs there are.

    Raises:
        UserError: the folder holds no results.
    """
    if not (out / "manifest.json").exists():
        raise UserError(f"{out} holds no results; name the folder of a run with --out")
    with locked(out, "rapo reproduce archive"):
        read_manifest(out)
        return archive(out)


def claim(out: Path, preset: Preset) -> None:
    """Say in the manifest what the folder holds; refuse a folder of another config."""
    claim_folder(
        out,
        preset.to_dict(),
        preset=preset.name,
        steps=preset.steps,
        graph_seeds=list(preset.graph_seeds),
        episodes=preset.episodes,
        command=f"rapo reproduce all --preset {preset.name}",
    )


def missing_jobs(name: str, preset: Preset, out: Path) -> list[Job]:
    """Jobs of a study whose results are not all in the folder, in the order of its plan."""
    return [job for job in planned_jobs([name], preset) if not job.done(out)]


def finished_studies(preset: Preset, out: Path, console: Console | None) -> list[str]:
    """Studies that can be drawn; the console names those that the report goes without."""
    missing = {name: missing_jobs(name, preset, out) for name in STUDIES}
    # a study without jobs can be drawn anywhere, which says nothing about the folder
    if not any(planned_jobs([name], preset) and not jobs for name, jobs in missing.items()):
        raise UserError(_nothing_finished(preset, out))
    now = preset == replace(preset_named(preset.name), data=preset.data)
    for name, jobs in missing.items():
        if jobs and console is not None:
            remedy = f"{_command(name, preset, out)} makes what is missing"
            console.print(
                f"left out {name}: {len(jobs)} of its jobs are not done, the first is "
                f"{jobs[0].key}; "
                + (remedy if now else "the folder was made with other defaults, nothing is added"),
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    return [name for name, jobs in missing.items() if not jobs]


def _nothing_finished(preset: Preset, out: Path) -> str:
    return f"{out} holds no finished study; {_command('all', preset, out)} makes them"


def _command(what: str, preset: Preset, out: Path) -> str:
    return f"rapo reproduce {what} --preset {preset.name} --out {out}"


def preset_of(out: Path, preset: Preset) -> Preset:
    """The preset as the folder has it: results of other defaults can be drawn, not added to."""
    before = read_manifest(out)["config"]
    if before.get("name") != preset.name:
        claim(out, preset)  # refuses the folder
    try:
        return replace(Preset.from_dict(before), data=preset.data)
    except (KeyError, TypeError, ValueError) as error:
        path = out / "manifest.json"
        raise UserError(f"{path} is damaged ({error}); choose another --out") from error


def write_sections(sections: Sequence[Section], out: Path) -> None:
    """CSV files and pictures of the sections; made anew from the results, so overwritten."""
    for section in sections:
        for name, frame in section.files.items():
            frame.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        for name, _, figure in section.figures:
            (out / "figures").mkdir(exist_ok=True)
            figure.savefig(out / "figures" / f"{name}.png", dpi=130)
