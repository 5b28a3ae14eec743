"""`rapo gate …`: a gate from the command line.

Commands that only look open the gate for reading, so they work beside a running server; the others
need to be its one writer (SQLite) and say so when they are not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from rapo.gate.commands import Db, keep, use
from rapo.gate.commands.act import command_of
from rapo.gate.commands.fit import fit
from rapo.gate.declare import ACTIONS
from rapo.gate.gate import Gate
from rapo.gate.store import open_store
from rapo.gate.words import config_of


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
    """Make a gate, in shadow mode; prints each key once, a line `scope key`."""
    settings = config_of(config)
    _refuse_existing(db, key_file)
    keys: Any = []
    if key_file is not None:
        write_key_file = _service("auth").write_key_file
        keys = write_key_file(key_file)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            Gate.open(db, settings).close()
    except BaseException:
        if key_file is not None:
            key_file.unlink(missing_ok=True)
        raise
    for scope, key in keys.items() if isinstance(keys, dict) else keys:
        print(f"{scope} {key}")
    for warning in heard:
        _note(warning.message)
    following = "`rapo gate mode enforce --reason …` applies it"
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
        raise ValueError(error) from None
    try:
        taken = store.last() > 0
    finally:
        store.close()
    if taken:
        raise FileExistsError("that database holds a gate already; choose another --db")


def _service(module: str) -> Any:
    """A module of the service, or one line on how to get it."""
    try:
        return import_module(f"rapo.gate.service.{module}")
    except ModuleNotFoundError as error:
        raise ValueError(f"{error.name} is missing; pip install 'rapo[gate]' brings it") from None


@app.command()
def serve(
    db: Db,
    key_file: Annotated[Path, typer.Option(help="What `rapo gate init` wrote.")],
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
    """A gate at work on a small stream: gated, explained, attacked, rolled back."""
    from rapo.gate.demo import run_demo

    run_demo(out=out, seed=seed)


_COMMANDS: tuple[Callable[..., None], ...] = (
    use.decide, use.expose, use.report, *map(command_of, ACTIONS.values()), use.status, use.verify,
    use.export, fit, keep.erase, keep.compact, keep.migrate,
)  # fmt: skip
for command in _COMMANDS:
    app.command()(command)
for name, question in (
    ("region", use.audit_region), ("decision", use.audit_decision), ("bias", use.audit_bias),
    ("reporters", use.audit_reporters), ("queue", use.audit_queue),
):  # fmt: skip
    audit.command(name)(question)
app.add_typer(audit, name="audit")
