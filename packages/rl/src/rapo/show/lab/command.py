"""`rapo lab`: its words, the numbers in the terminal, and the server until it is stopped."""

from __future__ import annotations

import os
import signal
import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from rapo.platforms.registration import PLATFORMS
from rapo.rsd.result import files_in
from rapo.show.lab.numbers import Answer, answer
from rapo.show.lab.request import CONSTANTS, EPISODES, FILE, GENERATED, Draws, Place, Side
from rapo.show.lab.sources import find_source
from rapo_core.checks import UserError
from rapo_core.files import refuse_to_overwrite
from rapo_core.params import FieldParams

PORT = 8899
HOST = "127.0.0.1"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def lab(
    nodes: Annotated[int | None, typer.Option(help="Size of a generated graph, 250.")] = None,
    graph_seed: Annotated[int, typer.Option(help="Seed of the graph or platform.")] = 0,
    graph: Annotated[Path | None, typer.Option(help="A graph: .npz, CSV, GraphML.")] = None,
    env: Annotated[str | None, typer.Option(help=f"A platform: {', '.join(PLATFORMS)}.")] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help=f"NAME=VALUE of {', '.join(CONSTANTS)}.")
    ] = None,
    regions: Annotated[str | None, typer.Option(help="Region spec of a graph.")] = None,
    scope: Annotated[str, typer.Option(help="full, off, topk:<k> or local:<share>.")] = "full",
    policy: Annotated[
        str | None,
        typer.Option(
            help="aggressive, moderate, conservative (action <i> of a platform), .pt, .zip."
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(help="RSD episodes.")] = EPISODES,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    stimulus: Annotated[int, typer.Option(help="1-based; 0 draws one per episode.")] = 0,
    coupled: Annotated[
        bool, typer.Option("--coupled", help="Replay reuses the draws of Exposure.")
    ] = False,
    printed: Annotated[
        bool, typer.Option("--print", help="Print the numbers in place of opening the page.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --print: folder to save the result in.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite earlier results.")] = False,
    port: Annotated[int, typer.Option(help="Of the page; 0 for a free one.")] = PORT,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """A page on this machine that answers while constants are moved."""
    place = _place(nodes, graph_seed, graph, env)
    draws = {"episodes": episodes, "seed": seed, "stimulus": stimulus, "coupled": coupled}
    words: dict[str, Any] = {"params": _constants(change or []), "scope": scope}
    words |= {name: v for name, v in (("regions", regions), ("policy", policy)) if v is not None}
    if not printed:
        if out is not None:
            raise UserError(f"--out {out} is for --print")
        Side.of(words, FieldParams())  # a wrong value is told here, not first on the page
        serve(place, {"a": words, "draws": draws}, port, open_browser=browser)
        return
    if out is not None:
        refuse_to_overwrite(*files_in(out), force=force)
    source = find_source(place)
    first = source.side
    side = Side.of({"regions": first.regions, "policy": first.policy, **words}, first.params)
    found = answer(source, side, Draws.of(draws, source.stimuli), lambda: None)
    _tell(found, source.title, episodes)
    if out is not None:
        found.result.save(out, force=force)
        typer.echo(f"wrote {out}")


def _place(nodes: int | None, seed: int, graph: Path | None, env: str | None) -> Place:
    given = {"--nodes": nodes, "--graph": graph, "--env": env}
    used = [f"{name} {value}" for name, value in given.items() if value is not None]
    if len(used) > 1:
        raise UserError(f"choose one of --nodes, --graph and --env, got {' and '.join(used)}")
    if graph is not None:
        return Place.of({"kind": FILE, "path": str(graph)})
    if env is not None:
        return Place.of({"kind": env, "seed": seed})
    return Place.of({"kind": GENERATED, "nodes": 250 if nodes is None else nodes, "seed": seed})


def _constants(changes: list[str]) -> dict[str, float]:
    found = {}
    for change in changes:
        name, equals, value = change.partition("=")
        try:
            if name not in CONSTANTS or not equals:
                raise ValueError
            found[name] = float(value)
        except ValueError:
            raise UserError(
                f"--set takes NAME=NUMBER of {', '.join(CONSTANTS)}, got {change!r}"
            ) from None
    return found


def _tell(found: Answer, title: str, episodes: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{title}; {episodes} episodes", box=box.SIMPLE_HEAD, title_justify="left")
    for head in ("", "mean", "95% interval", ""):
        table.add_column(head, justify="left" if not head else "right")
    for row in found.rows:
        span = f"{row['low']:.6g} to {row['high']:.6g}"
        how = "ratio of means" if row["pooled"] else ""
        table.add_row(row["name"].replace("_", "-"), f"{row['mean']:.6g}", span, how)
    console = Console()
    console.print(table)
    console.print(found.point, highlight=False)


def serve(place: Place, words: dict[str, Any], port: int, *, open_browser: bool) -> None:
    """Serve the page until Ctrl-C, SIGTERM or the end of the terminal.

    Raises:
        ValueError: the port is taken, or what serves pages is not installed.
    """
    try:
        import uvicorn

        from rapo.show.lab.api import Desk
        from rapo.show.lab.server import Lab
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("rapo"):
            raise
        raise UserError(f"rapo lab needs {error.name}; pip install 'rapo-rl[lab]'") from None
    with _listening(port) as listener:
        made = Lab(Desk(place, words))
        address = f"http://{HOST}:{listener.getsockname()[1]}/?token={made.token}"
        typer.echo(f"rapo lab is at\n  {address}\nCtrl-C ends it.")
        sys.stdout.flush()
        if open_browser and _has_screen():
            webbrowser.open(address)
        config = uvicorn.Config(
            made.app, log_level="error", access_log=False, server_header=False, ws="none",
            lifespan="off", limit_concurrency=32, timeout_graceful_shutdown=1,
        )  # fmt: skip
        server = uvicorn.Server(config)

        def end(number: int, frame: Any) -> None:
            # no exception: one that is raised in a callback of the loop may be swallowed there
            server.should_exit = True

        # Its terminal closed, it ends, also where a parent process ignores the signal; and no
        # signal ends it before what was uploaded is gone.
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, end)
        with suppress(KeyboardInterrupt):
            try:
                server.run(sockets=[listener])
            finally:
                made.close()
    with suppress(OSError):  # there may be no terminal any more
        typer.echo("rapo lab has ended")


def _listening(port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise UserError(f"--port must be in 0..65535, got {port}")
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise UserError(
            f"port {port} of {HOST} cannot be used ({error.strerror}); choose another with --port, "
            "or --port 0 for a free one"
        ) from None


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
