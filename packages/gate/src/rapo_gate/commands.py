"""Commands that make, serve and use a gate; the command of a human action; what commands share."""

from __future__ import annotations

import getpass
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer

from rapo_core.checks import UserError
from rapo_gate import tables
from rapo_gate.audit import overview
from rapo_gate.config import config_of
from rapo_gate.declare import Action
from rapo_gate.fields import Option
from rapo_gate.format import region_of, time_of
from rapo_gate.gate import Gate
from rapo_gate.log.store import open_store
from rapo_gate.reports import HarmReport
from rapo_gate.tables import numbers_of, regions_of, reports_from

BATCH = 1000
"""Reports that are taken in, and events that are read, at a time."""

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
    """The gate of an address. Its warnings become single lines, its refusals a UserError."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            gate = Gate.open(db, create=False, read_only=not write)
        except ImportError as error:  # PostgreSQL without its driver
            raise UserError(error) from None
    for warning in caught:
        if "checkpoint" not in str(warning.message):  # `init` and `serve` say that one
            typer.echo(f"rapo: warning: {warning.message}", err=True)
    try:
        with gate:
            if write:
                gate.tick()  # so that decisions see every tick that is due
            yield gate
    except LookupError as error:
        raise UserError(error.args[0] if error.args else str(error)) from None


def login() -> str:
    """The user's login name, for the log."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user, as in some containers
        return "unknown user"


# --- making and serving a gate


def init(
    db: Db,
    key_file: Annotated[
        Path | None, typer.Option(help="Where to write the hashes of the service's keys (TOML).")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings of the gate (TOML).")] = None,
) -> None:
    """Make a gate, in shadow mode. Each key is printed once, as a line `scope key`."""
    settings = config_of(config)
    _refuse_existing(db, key_file)
    keys = {} if key_file is None else _service("auth").write_key_file(key_file)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Gate.open(db, settings).close()
    except BaseException:
        if key_file is not None:
            key_file.unlink(missing_ok=True)
        raise
    for scope, key in keys.items():
        print(f"{scope} {key}")
    for warning in caught:
        _note(warning.message)
    apply = "`rapo-gate mode enforce --reason …` applies what it computes"
    typer.echo(f"made {db} in shadow mode; {apply}", err=True)
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
        in_use = store.last() > 0
    finally:
        store.close()
    if in_use:
        raise FileExistsError("that database holds a gate already; choose another --db")


def _service(module: str) -> Any:
    """A module of the service, or one line that says how to install it."""
    try:
        return import_module(f"rapo_gate.service.{module}")
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing; pip install rapo-gate") from None


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
        typer.Option(metavar="ADDR", help="A proxy whose client addresses are trusted."),
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
    """Print a warning as one line."""
    typer.echo(f"rapo: note: {message}", err=True)


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
    names, proposed = regions_of(regions, text_ids), numbers_of("--p", p)
    with opened(db, write=True) as gate:
        decision = gate.decide_logged(names, proposed, request_id, stimulus=stimulus).result()
    values = {**decision._asdict(), "q": decision.q.tolist(), "psi": decision.psi.tolist()}
    tables.answer(values, tables.decision_table(names, proposed, decision), as_json)


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
    """Report harm, once or from a file, and print what became of each report."""
    needed = {"--source": source, "--key": key, "--harm": harm, "--signal": signal}
    if file is not None:
        options = {**needed, "--at": at, "--decision": decision, "--regions": regions}
        superfluous = [name for name, value in options.items() if value is not None]
        if superfluous:
            raise UserError(f"--file holds whole reports; leave out {', '.join(superfluous)}")
        reports = _read_reports(file, text_ids)
    else:
        missing = [name for name, value in needed.items() if value is None]
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
    table = tables.status_table(view, config.tick_seconds, config.digest())
    tables.answer({**view, "config": config.to_dict()}, table, as_json)


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
        chain = gate.chain(name, limit)
    tables.answer(chain, tables.region_tables(chain), as_json)


def audit_decision(
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="Its decision_id.")],
    db: Db,
    limit: Annotated[int, typer.Option(min=1, help="Most regions, and reports of each.")] = 10,
    as_json: Json = False,
) -> None:
    """How much a decision was changed, and because of which reports."""
    with opened(db, write=False) as gate:
        explanation = gate.explain(decision, limit)
    tables.answer(explanation, tables.explain_tables(explanation), as_json)


def audit_bias(db: Db, as_json: Json = False) -> None:
    """Report and gating rates by group and topic, with intervals."""
    with opened(db, write=False) as gate:
        rates = gate.bias()
    tables.answer(rates, tables.bias_tables(rates), as_json)


def audit_reporters(db: Db, as_json: Json = False) -> None:
    """Who reported, how much, and how much of it was rolled back."""
    with opened(db, write=False) as gate:
        reporters = gate.reporters()
    tables.answer(reporters, tables.reporters_table(reporters), as_json)


def audit_queue(db: Db, as_json: Json = False) -> None:
    """Reports that wait for a reviewer, and why."""
    with opened(db, write=False) as gate:
        reports = gate.queue()
    tables.answer(reports, tables.queue_table(reports), as_json)


# --- a command for every human action


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
