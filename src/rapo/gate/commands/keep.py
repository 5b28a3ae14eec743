"""`rapo gate erase`, `compact` and `migrate`: what the log keeps, and in which format."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rapo.gate import tables
from rapo.gate.commands import By, Db, Json, Reason
from rapo.gate.format import instant
from rapo.gate.migrate import NEW
from rapo.gate.migrate import migrate as migrated
from rapo.gate.retention import compact as compacted
from rapo.gate.retention import erase as erased
from rapo.gate.store import Store, open_store
from rapo.gate.words import login, time_of


@contextmanager
def _log_of(db: str) -> Iterator[Store]:
    """The log, for as long as nobody else writes to it; every refusal as a ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the database's version: said by init and serve
        store = open_store(db, create=False)
    try:
        with closing(store):
            yield store
    except LookupError as error:
        raise ValueError(str(error.args[0])) from None


def erase(
    db: Db,
    source: Annotated[str, typer.Option(help="The reporter to forget.")],
    reason: Reason,
    by: By = "",
    as_json: Json = False,
) -> None:
    """Put a pseudonym in the place of a reporter's name, everywhere; stop the server first."""
    with _log_of(db) as store:
        done = erased(store, source, reason=reason, by=by or login())
    if as_json:
        tables.print_json(asdict(done))
        return
    typer.echo(f"{done.events} events now say {done.pseudonym}; the fields are what they were")
    typer.echo(f"event {done.event}; copies and exports of before still have the name")


def compact(
    db: Db,
    before: Annotated[str, typer.Option(help="A time, as 2026-01-31 or 90d for 90 days ago.")],
    reason: Reason,
    by: By = "",
    as_json: Json = False,
) -> None:
    """Keep the fields as they were at a time and drop what led to them; stop the server first."""
    point = time_of("--before", before)
    assert point is not None
    with _log_of(db) as store:
        done = compacted(store, point, reason=reason, by=by or login())
    if as_json:
        tables.print_json(asdict(done))
        return
    typer.echo(f"dropped the bodies of {done.dropped} events before {instant(point)}")
    typer.echo(f"kept {done.kept}; event {done.event}")


def migrate(
    db: Db,
    out: Annotated[str, typer.Option(help="Where the new log goes: a file, or postgresql://…")],
    config: Annotated[
        Path | None, typer.Option(help=f"TOML with the new settings: {', '.join(NEW)}.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy a log of the first format (harm per tick) into a new one; the old one stays."""
    given: dict[str, Any] = {}
    if config is not None:
        with config.open("rb") as file:
            given = tomllib.load(file)
    if "://" not in out and Path(out).exists():
        raise FileExistsError(f"{out} exists; choose another --out, or remove it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = migrated(db, out, given)
    if as_json:
        tables.print_json(asdict(done))
        return
    typer.echo(f"copied {done.events} events to {out}")
    typer.echo(
        f"{done.differ} of {done.regions} regions have another psi than their last decision was "
        f"told, {done.lower} of them a lower one; `rapo gate fit` finds settings for this log"
    )
