"""`rapo suite`: one scorecard on every platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rapo.cli.options import Tasks, stoppable
from rapo_core.lazy_commands import new_app

if TYPE_CHECKING:
    from rapo.suite.scorecard import Card

app = new_app(
    help="One scorecard of RAPO, or of a policy of yours, on every platform of the package.",
    no_args_is_help=True,
)


@app.command(short_help="Score a policy, or constant actions, on every platform.")
def run(
    policy: Annotated[
        str | None,
        typer.Option(
            help="A run of rapo train --env, a .zip of Stable-Baselines3, or "
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
    jobs: Tasks = None,
    engine: Annotated[str, typer.Option(help="local processes or a ray cluster.")] = "local",
    stand_in: Annotated[
        bool,
        typer.Option(
            "--stand-in",
            help="Generate data even where the real ones are there; default: where they are not.",
        ),
    ] = False,
) -> None:
    """Score a policy under P0, RAPO, off@rep, the trace alone and the field's own baselines."""
    from rich.console import Console

    from rapo.suite.run import run_suite

    folder = out or Path("results") / ("suite" if preset == "full" else f"suite-{preset}")
    with stoppable("the same command goes on where it stopped"):
        cards = run_suite(
            domains, preset, folder, policy=policy, stand_in=stand_in, engine=engine, jobs=jobs,
            console=Console(),
        )  # fmt: skip
    _print(cards, folder)


@app.command(short_help="Make table, page and picture again from the results in a folder.")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder that `rapo suite run` wrote.")],
) -> None:
    """Write suite.csv, page and picture again from the results in a folder."""
    from rapo.suite.run import report_suite

    _print(report_suite(folder), folder)


def _print(cards: list[Card], folder: Path) -> None:
    """Print the demands of every domain, and where the page is."""
    import pandas as pd
    from rich.console import Console

    from rapo.html.terminal import print_frame
    from rapo.suite.demands import MISSED

    rows = [(card.title, d.text, d.result, d.verdict) for card in cards for d in card.demands]
    console = Console()
    print_frame(console, pd.DataFrame(rows, columns=["domain", "demand", "result", ""]), red=MISSED)
    missed = sum(row[-1] == MISSED for row in rows)
    console.print(f"{len(rows) - missed} demands hold, {missed} missed", highlight=False)
    console.print(f"wrote {folder / 'scorecard.html'}, suite.csv, scorecard.png", highlight=False)
