"""Options that several commands share: each declared once, with what it means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

Force = Annotated[bool, typer.Option("--force", help="Overwrite what an earlier run wrote.")]
Tasks = Annotated[int | None, typer.Option(help="Tasks at a time; default all cores.")]
GraphFile = Annotated[
    Path | None,
    typer.Option(
        help="A graph (.npz, CSV, GraphML) instead of a generated one; rapo graph makes .npz files."
    ),
]
Regions = Annotated[
    str | None,
    typer.Option(
        help="node, community:<mean size>, pieces:<mean size> (of V_sens), grid:<k> or "
        "label:<column>."
    ),
]
Fit = Annotated[
    bool | None,
    typer.Option(
        "--fit/--no-fit",
        help="Fit regions and tau to the graph; default: if it is not a generated one.",
    ),
]
Reading = Annotated[
    str | None,
    typer.Option(help="How the paper's platform is read: echo (default), compact or bistable."),
]


def new_app(**options: Any) -> typer.Typer:
    """A Typer application in the style of all of ours: plain help, errors left to `run_command`."""
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options
    )


@contextmanager
def stoppable(remedy: str) -> Iterator[None]:
    """Ctrl-C ends with one line that says how to go on: what was raised with it, or `remedy`."""
    try:
        yield
    except KeyboardInterrupt as error:
        typer.echo(f"rapo: stopped; {str(error) or remedy}", err=True)
        raise typer.Exit(130) from None
