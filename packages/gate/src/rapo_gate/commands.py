"""Commands of `rapo-gate`: one for every action that is declared, and those that keep a log.

Options that commands share, and a gate opened for the length of one, are here too.
"""

from __future__ import annotations

import getpass
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer

from rapo_core.checks import UserError
from rapo_gate import tables
from rapo_gate.declare import Action
from rapo_gate.events import plain_event
from rapo_gate.fields import Option
from rapo_gate.format import instant, time_of
from rapo_gate.gate import Gate
from rapo_gate.retention import compact as compacted
from rapo_gate.retention import erase as erased
from rapo_gate.store import Store, open_store

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
            raise UserError(error) from None
    for warning in heard:
        if "checkpoint" not in str(warning.message):  # said once, by init and serve
            typer.echo(f"rapo: warning: {warning.message}", err=True)
    try:
        with gate:
            if write:
                gate.tick()  # decisions see every tick that is due
            yield gate
    except LookupError as error:
        raise UserError(error.args[0] if error.args else str(error)) from None


def login() -> str:
    """Who is at the keyboard, for the log."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user, as in some containers
        return "unknown user"


def verify(db: Db, as_json: Json = False) -> None:
    """Fold the whole log afresh and compare. Exit code 1 if anything differs."""
    with opened(db, write=False) as gate:
        found = gate.verify()
    rows = [(name, value) for name, value in found.items() if name != "ok"]
    title = "ok" if found["ok"] else "NOT ok"
    tables.answer(found, tables.table(title, ("", ""), rows), as_json)
    if not found["ok"]:
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


# --- a command for every action that is declared


def command_of(action: type[Action]) -> Callable[..., None]:
    """The function behind `rapo-gate NAME`, with a signature that typer reads."""
    parameters = {o.name: _parameter(o) for field in action.fields for o in field.options()}
    for name, kind, default in (
        ("db", Db, Parameter.empty), ("reason", Reason, ""), ("by", By, ""),
        ("dry_run", DryRun, False), ("text_ids", TextIds, False), ("as_json", Json, False),
    ):  # fmt: skip
        parameters[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)

    def command(**values: Any) -> None:
        if not values["reason"].strip() and not values["dry_run"]:
            raise UserError("--reason is needed: it goes into the log with what you do")
        fields = {field.name: field.from_options(values) for field in action.fields}
        by = values["by"] or login()
        made = action(**fields, reason=values["reason"], by=by, dry_run=values["dry_run"])
        with opened(values["db"], write=True) as gate:
            effect = gate.act(made)
        if values["as_json"]:
            tables.print_json(asdict(effect))
            return
        typer.echo(f"{made.title()}: {tables.effect_words(effect)}")
        if effect.regions:
            tables.show(tables.effect_table(effect))
        typer.echo("a dry run: nothing was done" if effect.dry_run else f"event {effect.event}")

    command.__name__ = action.name
    command.__doc__ = cleandoc(action.__doc__ or "").partition("\n\n")[0]
    command.__signature__ = Signature(list(parameters.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {name: p.annotation for name, p in parameters.items()}
    return command


def _parameter(option: Option) -> Parameter:
    """An option of a field, as typer reads it."""
    if option.flag:
        typer_option: Any = typer.Option(option.flag, help=option.about)
    else:
        typer_option = typer.Argument(metavar=option.metavar, help=option.about)
    kind: Any = Annotated[option.type, typer_option]
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=kind)


# --- what the log tells, keeps and forgets


def fit(
    db: Db,
    plot: Annotated[Path | None, typer.Option(help="File for the figure, such as fit.png.")] = None,
    loss: Annotated[float, typer.Option(help="Most of the good exposures to lose.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals.")] = 0,
    as_json: Json = False,
) -> None:
    """Find settings in the earlier part of a log. The later part scores them."""
    from rapo_gate.fit import DAY_SECONDS, lines, save
    from rapo_gate.fit import fit as fitted
    from rapo_gate.shadow_log import ShadowLog

    if plot is not None and plot.exists():
        raise FileExistsError(f"{plot} exists; choose another --plot, or remove it")
    with opened(db, write=False) as gate:
        log, config = ShadowLog.of_gate(gate), gate.config
    found = fitted(log, config, loss=loss, cap_source=config.cap_source, seed=seed)
    if plot is not None:
        save(found, plot)
    if as_json:
        tables.print_json(found.to_dict())
        return
    for line in lines(found, DAY_SECONDS / config.tick_seconds):
        typer.echo(line)
    if plot is not None:
        typer.echo(f"wrote {plot}")


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
        raise UserError(str(error.args[0])) from None


def erase(
    db: Db,
    source: Annotated[str, typer.Option(help="The reporter to forget.")],
    reason: Reason,
    by: By = "",
    as_json: Json = False,
) -> None:
    """Take a reporter's name out of a log. A pseudonym stands there then; stop the server first."""
    with _log_of(db) as store:
        done = erased(store, source, reason=reason, by=by or login())
    words = f"{done.events} events now say {done.pseudonym}; the fields are what they were\n"
    words += f"event {done.event}; copies and exports of before still have the name"
    tables.answer(asdict(done), words, as_json)


def compact(
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
        done = compacted(store, point, reason=reason, by=by or login())
    words = f"dropped the bodies of {done.dropped} events before {instant(point)}\n"
    tables.answer(asdict(done), f"{words}kept {done.kept}; event {done.event}", as_json)
