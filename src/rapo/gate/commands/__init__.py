"""Commands of `rapo gate`: options that they share, and a gate opened for the length of one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from rapo.gate.gate import Gate

BATCH = 1000
"""Reports taken in at a time, and events read at a time."""

Db = Annotated[
    str,
    typer.Option("--db", envvar="RAPO_GATE_DB", help="File of the gate, or postgresql://…"),
]
Reason = Annotated[str, typer.Option(help="Why, for who reads the log later.")]
By = Annotated[str, typer.Option(help="Who does it; default your login name.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of tables.")]
TextIds = Annotated[bool, typer.Option("--text-ids", help="Regions such as 12 are strings.")]
Name = Annotated[str, typer.Argument(metavar="REGION", help="A region; 12 is an integer.")]


@contextmanager
def opened(db: str, *, write: bool) -> Iterator[Gate]:
    """The gate; its warnings as single lines, and every refusal as a ValueError."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            gate = Gate.open(db, create=False, read_only=not write)
        except ImportError as error:  # PostgreSQL without its driver
            raise ValueError(error) from None
    for warning in heard:
        if "checkpoint" not in str(warning.message):  # said once, by init and serve
            typer.echo(f"rapo: warning: {warning.message}", err=True)
    try:
        with gate:
            if write:
                gate.tick()  # decisions see every tick that is due
            yield gate
    except LookupError as error:
        raise ValueError(error.args[0] if error.args else str(error)) from None
