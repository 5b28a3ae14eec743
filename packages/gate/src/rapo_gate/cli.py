"""`rapo-gate …`: a gate from the command line.

Commands that only look open the gate for reading, so they work beside a running server; the others
need to be its one writer (SQLite) and say so when they are not.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from rapo_core.checks import UserError
from rapo_core.command_line import run_command
from rapo_gate import tables
from rapo_gate.audit import overview
from rapo_gate.commands import (
    BATCH,
    Db,
    Json,
    Name,
    TextIds,
    command_of,
    compact,
    erase,
    export,
    fit,
    opened,
    verify,
)
from rapo_gate.config import config_of
from rapo_gate.declare import ACTIONS
from rapo_gate.format import region_of, time_of
from rapo_gate.gate import Gate
from rapo_gate.intake import HarmReport
from rapo_gate.store import open_store
from rapo_gate.tables import numbers_of, regions_of, reports_from


def _group(text: str) -> typer.Typer:
    """A group of commands that prints its help when it is given none."""
    group = typer.Typer(
        help=text,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @group.callback()
    def _help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return group


app = _group("The gate: harm memory in front of a real platform.")
audit = _group("Ask the gate what it did and why.")


@app.command()
def init(
    db: Db,
    key_file: Annotated[
        Path | None, typer.Option(help="Where to write the hashes of the service's keys (TOML).")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings of the gate (TOML).")] = None,
) -> None:
    """Make a gate, in shadow mode. Prints each key once, a line `scope key`."""
    settings = config_of(config)
    _refuse_existing(db, key_file)
    keys = {} if key_file is None else _service("auth").write_key_file(key_file)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            Gate.open(db, settings).close()
    except BaseException:
        if key_file is not None:
            key_file.unlink(missing_ok=True)
        raise
    for scope, key in keys.items():
        print(f"{scope} {key}")
    for warning in heard:
        _note(warning.message)
    following = "`rapo-gate mode enforce --reason …` applies it"
    typer.echo(f"made {db} in shadow mode; {following}", err=True)
    if key_file is not None:
        typer.echo(f"wrote {key_file}; the keys above are not kept anywhere", err=True)


def _refuse_existing(db: str, key_file: Path | None) -> None:
    if key_file is not None and key_file.exists():
        raise FileExistsError(f"{key_file} exists; choose another --key-file, or remove it")
    if "://" not in db:
        if Path(db).exists():
            raise FileExistsError(f"{db} exists; choose another --db, or remove it")
        return
    try:
        store = open_store(db)
    except ImportError as error:  # PostgreSQL without its driver
        raise UserError(error) from None
    try:
        taken = store.last() > 0
    finally:
        store.close()
    if taken:
        raise FileExistsError("that database holds a gate already; choose another --db")


def _service(module: str) -> Any:
    """A module of the service, or one line on how to get it."""
    try:
        return import_module(f"rapo_gate.service.{module}")
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing; pip install rapo-gate") from None


@app.command()
def serve(
    db: Db,
    key_file: Annotated[Path, typer.Option(help="What `rapo-gate init` wrote.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    metrics_need_key: Annotated[
        bool, typer.Option("--metrics-need-key", help="Ask for a review key at /metrics.")
    ] = False,
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDR", help="A proxy whose word on client addresses is believed."),
    ] = None,
    connections_per_address: Annotated[
        int, typer.Option(min=1, help="Beyond, the one that waited longest is closed.")
    ] = 500,
) -> None:
    """Serve the HTTP API and the reviewer's page."""
    service = _service("serve")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _note
        service.serve(
            db,
            key_file,
            host,
            port,
            metrics_need_key=metrics_need_key,
            trust_proxy=trust_proxy or (),
            connections_per_address=connections_per_address,
        )


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as one line."""
    typer.echo(f"rapo: note: {message}", err=True)


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Folder for the figure.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the small stream.")] = 0,
) -> None:
    """A gate at work: a small stream gated, explained and attacked."""
    from rapo_gate.demo import run_demo

    run_demo(out=out, seed=seed)


# --- using a gate: what a platform does, and what people ask


def decide(
    db: Db,
    regions: Annotated[str, typer.Option(help="Region of each candidate, as a,b,c.")],
    p: Annotated[str, typer.Option("--p", help="Their proposed probabilities, as .5,.3,.2.")],
    request_id: Annotated[
        str | None, typer.Option(help="Sent twice, the first answer comes again.")
    ] = None,
    stimulus: Annotated[str | None, typer.Option(help="What is being recommended.")] = None,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """Gate a proposed distribution."""
    names, law = regions_of(regions, text_ids), numbers_of("--p", p)
    with opened(db, write=True) as gate:
        decision = gate.decide_logged(names, law, request_id, stimulus=stimulus).result()
    values = {**decision._asdict(), "q": decision.q.tolist(), "psi": decision.psi.tolist()}
    tables.answer(values, tables.decision_table(names, law, decision), as_json)


def expose(
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="Its decision_id.")],
    db: Db,
    shown: Annotated[str, typer.Option(help="Regions that were really shown, as a,b.")],
    text_ids: TextIds = False,
) -> None:
    """Say which candidates of a decision were really shown."""
    names = regions_of(shown, text_ids)
    with opened(db, write=True) as gate:
        in_time = gate.expose(decision, names)
    typer.echo("noted" if in_time else "noted, but reports on that decision have counted already")


def report(
    db: Db,
    source: Annotated[str | None, typer.Option(help="Who reports.")] = None,
    key: Annotated[str | None, typer.Option(help="The reporter's name of this report.")] = None,
    harm: Annotated[float | None, typer.Option(help="From 0 to max_harm.")] = None,
    signal: Annotated[str | None, typer.Option(help="Kind of evidence, as classifier.")] = None,
    at: Annotated[
        str | None, typer.Option(help="When it was exposed: Unix seconds, ISO 8601, 2h; now.")
    ] = None,
    decision: Annotated[str | None, typer.Option(help="The decision that exposed it.")] = None,
    regions: Annotated[str | None, typer.Option(help="Or the regions, as a,b.")] = None,
    file: Annotated[
        str | None, typer.Option(help="Many: .jsonl, .csv (regions as a;b), or - for JSON lines.")
    ] = None,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """Report harm, once or from a file. Says what became of each report."""
    words = {"--source": source, "--key": key, "--harm": harm, "--signal": signal}
    if file is not None:
        others = {**words, "--at": at, "--decision": decision, "--regions": regions}
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise UserError(f"--file holds whole reports; leave out {', '.join(given)}")
        reports = _read_reports(file, text_ids)
    else:
        missing = [name for name, value in words.items() if value is None]
        if missing:
            raise UserError(f"a report needs {', '.join(missing)}; or give --file")
        assert source is not None and key is not None and harm is not None and signal is not None
        when = time_of("--at", at)
        names = None if regions is None else regions_of(regions, text_ids)
        now = time.time() if when is None else when
        reports = [HarmReport(source, key, harm, signal, now, decision, names)]
    with opened(db, write=True) as gate:
        results = []
        for start in range(0, len(reports), BATCH):
            results += gate.report(reports[start : start + BATCH])
    refused = [i for i, r in enumerate(results) if r.status == "refused"]
    if len(results) == 1 and refused and not as_json:
        raise UserError(results[0].error)
    if as_json:
        for result in results:
            tables.print_json(result.to_dict())
    else:
        counts = Counter(r.status + (" before" if r.duplicate else "") for r in results)
        typer.echo(", ".join(f"{n} {what}" for what, n in counts.items()))
        if len(results) == 1:
            typer.echo(f"report {results[0].report_id}")
        for i in refused[:20]:
            typer.echo(f"rapo: report {i + 1}: {results[i].error}", err=True)
    if refused:
        raise typer.Exit(1)


def _read_reports(file: str, text_ids: bool) -> list[HarmReport]:
    if file == "-":
        return reports_from(sys.stdin, "standard input", text_ids)
    with open(file, encoding="utf-8", newline="") as stream:
        return reports_from(stream, file, text_ids)


def status(db: Db, as_json: Json = False) -> None:
    """The gate at a glance: mode, regions, scars, queue, alarms."""
    with opened(db, write=False) as gate:
        view = gate.read(overview)
        config = gate.config
    shown = tables.status_table(view, config.tick_seconds, config.digest())
    tables.answer({**view, "config": config.to_dict()}, shown, as_json)


def audit_region(
    region: Name,
    db: Db,
    limit: Annotated[int, typer.Option(min=1, help="Most reports and decisions.")] = 50,
    text_ids: TextIds = False,
    as_json: Json = False,
) -> None:
    """What made a region what it is, and which decisions it changed."""
    name = region_of(region, text_ids)
    with opened(db, write=False) as gate:
        found = gate.chain(name, limit)
    tables.answer(found, tables.region_tables(found), as_json)


def audit_decision(
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="Its decision_id.")],
    db: Db,
    limit: Annotated[int, typer.Option(min=1, help="Most regions, and reports of each.")] = 10,
    as_json: Json = False,
) -> None:
    """How much a decision was changed, and because of which reports."""
    with opened(db, write=False) as gate:
        found = gate.explain(decision, limit)
    tables.answer(found, tables.explain_tables(found), as_json)


def audit_bias(db: Db, as_json: Json = False) -> None:
    """Report and gating rates by group and topic, with intervals."""
    with opened(db, write=False) as gate:
        found = gate.bias()
    tables.answer(found, tables.bias_tables(found), as_json)


def audit_reporters(db: Db, as_json: Json = False) -> None:
    """Who reported, how much, and how much of it was rolled back."""
    with opened(db, write=False) as gate:
        found = gate.reporters()
    tables.answer(found, tables.reporters_table(found), as_json)


def audit_queue(db: Db, as_json: Json = False) -> None:
    """Reports that wait for a reviewer, and why."""
    with opened(db, write=False) as gate:
        found = gate.queue()
    tables.answer(found, tables.queue_table(found), as_json)


_COMMANDS: tuple[Callable[..., None], ...] = (
    decide, expose, report, *map(command_of, ACTIONS.values()), status, verify,
    export, fit, erase, compact,
)  # fmt: skip
for command in _COMMANDS:
    app.command()(command)
for name, question in (
    ("region", audit_region), ("decision", audit_decision), ("bias", audit_bias),
    ("reporters", audit_reporters), ("queue", audit_queue),
):  # fmt: skip
    audit.command(name)(question)
app.add_typer(audit, name="audit")


def main() -> None:
    """Entry point of the command `rapo-gate`."""
    run_command("rapo-gate", app, "rapo-gate")
