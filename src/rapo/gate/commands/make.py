"""Making a gate, and serving it."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from rapo.gate.commands.session import Db
from rapo.gate.gate import Gate
from rapo.gate.store import open_store
from rapo.gate.words import config_of


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
        write_key_file = _service("keys").write_key_file
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


def serve(
    db: Db,
    key_file: Annotated[Path, typer.Option(help="What `rapo gate init` wrote.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8080,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    metrics_need_key: Annotated[
        bool, typer.Option("--metrics-need-key", help="Ask for a review key at /metrics.")
    ] = False,
) -> None:
    """Serve the HTTP API and the reviewer's page."""
    service = _service("serve")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _note
        service.serve(db, key_file, host, port, metrics_need_key=metrics_need_key)


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as one line."""
    typer.echo(f"rapo: note: {message}", err=True)
