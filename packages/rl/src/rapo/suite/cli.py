"""`rapo suite`: its words. Bad input ends with one clear line and exit code 2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="One scorecard of RAPO, or of a policy of yours, on every platform of the package.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
)


@app.command(short_help="Score a policy, or constant actions, on every platform.")
def run(
    policy: Annotated[
        str | None,
        typer.Option(
            help="RUN/checkpoint.pt of rapo train --env, a .zip of Stable-Baselines3, or "
            "package.module:name; default each domain's constant action."
        ),
    ] = None,
    domains: Annotated[
        str, typer.Option(help="all, or of cascade,feed,routing,warehouse,twin with commas.")
    ] = "all",
    preset: Annotated[
        str, typer.Option(help="smoke (2 minutes), quick (15 on 2 cores) or full.")
    ] = "quick",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder; default results/suite-PRESET, results/suite of full."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Tasks at a time; default all cores.")] = None,
    engine: Annotated[str, typer.Option(help="processes, or a ray cluster.")] = "processes",
    stand_in: Annotated[
        bool, typer.Option("--stand-in", help="Run on generated data in place of the real ones.")
    ] = False,
) -> None:
    """Score a policy under P0, RAPO, off@rep, the trace alone and the field's own baselines."""
    from rapo.suite.command import run_from_words

    run_from_words(
        out, policy=policy, domains=domains, preset=preset, jobs=jobs, engine=engine,
        stand_in=stand_in,
    )  # fmt: skip


@app.command(short_help="Make the page again from the pieces of a folder.")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder that `rapo suite run` wrote.")],
) -> None:
    """Build suite.csv, page and picture again from the pieces of a folder."""
    from rich.console import Console

    from rapo.suite.command import report_suite, tell

    tell(report_suite(folder), folder, Console())
