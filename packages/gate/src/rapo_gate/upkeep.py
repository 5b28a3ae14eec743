"""Commands that keep a log: check it, export it, learn from it, and take things out of it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rapo_core.checks import UserError
from rapo_gate import tables
from rapo_gate.commands import BATCH, By, Db, Json, Reason, login, opened
from rapo_gate.events import plain_event
from rapo_gate.format import instant, time_of
from rapo_gate.log.store import Store, open_store
from rapo_gate.retention import compact, erase


def verify(db: Db, as_json: Json = False) -> None:
    """Fold the whole log afresh and compare. Exit code 1 if anything differs."""
    with opened(db, write=False) as gate:
        result = gate.verify()
    rows = [(name, value) for name, value in result.items() if name != "ok"]
    title = "ok" if result["ok"] else "NOT ok"
    tables.answer(result, tables.table(title, ("", ""), rows), as_json)
    if not result["ok"]:
        raise typer.Exit(1)


def export(
    db: Db,
    out: Annotated[Path, typer.Option(help="File of JSON lines to write.")],
    after: Annotated[int, typer.Option(min=0, help="Only events after this position.")] = 0,
) -> None:
    """Write the log as JSON lines, decisions decoded."""
    if out.exists():
        raise FileExistsError(f"{out} exists; choose another --out, or remove it")
    count = 0
    with opened(db, write=False) as gate, open(out, "x", encoding="utf-8") as stream:
        try:
            while events := gate.events(after, BATCH):
                for event in events:
                    stream.write(json.dumps(plain_event(event), ensure_ascii=False) + "\n")
                after, count = events[-1].position, count + len(events)
        except BaseException:
            out.unlink()  # half a log looks like a whole one
            raise
    typer.echo(f"wrote {count} events to {out}")


def fit_settings(
    db: Db,
    plot: Annotated[Path | None, typer.Option(help="File for the figure, such as fit.png.")] = None,
    loss: Annotated[float, typer.Option(help="Most of the good exposures to lose.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals.")] = 0,
    as_json: Json = False,
) -> None:
    """Find settings in the earlier part of a log. The later part scores them."""
    from rapo_gate.fit import DAY_SECONDS, fit, lines, save
    from rapo_gate.shadow_log import ShadowLog

    if plot is not None and plot.exists():
        raise FileExistsError(f"{plot} exists; choose another --plot, or remove it")
    with opened(db, write=False) as gate:
        log, config = ShadowLog.of_gate(gate), gate.config
    result = fit(log, config, loss=loss, cap_source=config.cap_source, seed=seed)
    if plot is not None:
        save(result, plot)
    if as_json:
        tables.print_json(result.to_dict())
        return
    for line in lines(result, DAY_SECONDS / config.tick_seconds):
        typer.echo(line)
    if plot is not None:
        typer.echo(f"wrote {plot}")


@contextmanager
def _log_of(db: str) -> Iterator[Store]:
    """The log of an address, which nobody else writes meanwhile; a refusal is a UserError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `init` and `serve` warn of the database's version
        store = open_store(db, create=False)
    try:
        with closing(store):
            yield store
    except LookupError as error:
        raise UserError(str(error.args[0])) from None


def erase_source(
    db: Db,
    source: Annotated[str, typer.Option(help="The reporter to forget.")],
    reason: Reason,
    by: By = "",
    as_json: Json = False,
) -> None:
    """Put a pseudonym in the place of a reporter's name in a log. Stop the server first."""
    with _log_of(db) as store:
        done = erase(store, source, reason=reason, by=by or login())
    summary = (
        f"{done.events} events now say {done.pseudonym}; the fields are what they were\n"
        f"event {done.event}; earlier copies and exports still have the name"
    )
    tables.answer(asdict(done), summary, as_json)


def compact_log(
    db: Db,
    before: Annotated[str, typer.Option(help="A time, as 2026-01-31 or 90d for 90 days ago.")],
    reason: Reason,
    by: By = "",
    as_json: Json = False,
) -> None:
    """Drop events up to a time, and keep the fields. Stop the server first."""
    point = time_of("--before", before)
    assert point is not None
    with _log_of(db) as store:
        done = compact(store, point, reason=reason, by=by or login())
    summary = (
        f"dropped the bodies of {done.dropped} events before {instant(point)}\n"
        f"kept {done.kept}; event {done.event}"
    )
    tables.answer(asdict(done), summary, as_json)
