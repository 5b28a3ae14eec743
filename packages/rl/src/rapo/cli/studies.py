"""`rapo calibrate` and `rapo reproduce`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rapo.cli.options import Reading, Tasks, stoppable
from rapo.cli.parse import parse_count
from rapo_core.checks import UserError


def calibrate(
    out: Annotated[Path, typer.Option(help="Folder of the search log; a cut search goes on.")] = (
        Path("results/calibration")
    ),
    settings: Annotated[int, typer.Option(help="Settings of the first stage.")] = 20_000,
    finalists: Annotated[int, typer.Option(help="Settings tried with a trained policy.")] = 10,
    steps: Annotated[str, typer.Option(help="Training steps of each.")] = "2e6",
    jobs: Annotated[int | None, typer.Option(help="Processes; default all cores.")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the choice into the package's setting.toml.")
    ] = False,
) -> None:
    """Choose what the paper leaves open, on calibration graphs only."""
    need_optuna()
    from rapo.paper.calibration.command import calibrate as run

    with stoppable(f"the same command goes on with what is in {out}"):
        run(
            out, settings=settings, finalists=finalists, steps=parse_count("--steps", steps),
            jobs=jobs, write=write, console=Console(),
        )  # fmt: skip


def need_optuna() -> None:
    """Say which installation has the search, where it is missing."""
    if find_spec("optuna") is None or find_spec("cmaes") is None:
        raise UserError("rapo calibrate needs Optuna and cmaes: pip install 'rapo-rl[paper]'")


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="table1, learning, literal, table-a1, sizes, tradeoff, ablations, mechanism, "
            "motivation (several with commas), all of these; seeds, networks or consistency, which "
            "all leaves out; figures to draw again from the results in the folder; or archive to "
            "keep the frames of all its jobs in a few files."
        ),
    ] = "all",
    preset: Annotated[
        str,
        typer.Option(
            help="smoke (2 minutes), quick (15 on 2 cores) or paper (7 hours of one thread with a "
            "core to itself, about 10 side by side)."
        ),
    ] = "quick",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the results; default results/PRESET."),
    ] = None,
    engine: Annotated[str, typer.Option(help="local processes or a ray cluster.")] = "local",
    jobs: Tasks = None,
    reading: Reading = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="networks: folder of the real ones (../shared/data); left out if not there."
        ),
    ] = None,
) -> None:
    """Run the paper's experiments and put its numbers beside ours; or RAPO on real networks.

    \b
    rapo reproduce all --preset smoke
    rapo reproduce table1,mechanism --preset quick
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rich.console import Console

    from rapo.html.terminal import print_sections
    from rapo.paper.reproduce import archive_results, run_studies

    folder = out or Path("results") / (f"{preset}-{reading}" if reading else preset)
    console = Console()
    if what == "archive":
        count = archive_results(folder)
        console.print(f"{folder / 'archive'} holds the frames of {count} jobs", highlight=False)
        return
    with stoppable(f"the same command goes on with what is in {folder}"):
        sections = run_studies(
            what,
            preset,
            folder,
            engine=engine,
            jobs=jobs,
            reading=reading,
            data=data,
            console=console,
        )
        print_sections(console, sections, folder)
