"""`rapo lab`: a page that answers while constants are moved, or its metrics in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rapo.cli.options import Force, PlatformSeed
from rapo.platforms.registration import PLATFORMS
from rapo.show.lab.request import CONSTANTS, EPISODES, FILE, GENERATED, Draws, Place, Side
from rapo_core.checks import UserError
from rapo_core.files import refuse_to_overwrite
from rapo_core.params import FieldParams

PORT = 8899


def lab(
    nodes: Annotated[int | None, typer.Option(help="Size of a generated graph, 250.")] = None,
    graph_seed: Annotated[int, typer.Option(help="Seed of the graph.")] = 0,
    graph: Annotated[Path | None, typer.Option(help="A graph: .npz, CSV, GraphML.")] = None,
    env: Annotated[str | None, typer.Option(help=f"A platform: {', '.join(PLATFORMS)}.")] = None,
    platform_seed: PlatformSeed = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help=f"NAME=VALUE of {', '.join(CONSTANTS)}.")
    ] = None,
    regions: Annotated[str | None, typer.Option(help="Region spec of a graph.")] = None,
    scope: Annotated[str, typer.Option(help="full, off, topk:<k> or local:<share>.")] = "full",
    policy: Annotated[
        str | None,
        typer.Option(
            help="aggressive, moderate, conservative (action <i> of a platform), the folder of "
            "a run, or a .zip of Stable-Baselines3."
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(help="RSD episodes.")] = EPISODES,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    stimulus: Annotated[int, typer.Option(help="1-based; 0 draws one per episode.")] = 0,
    coupled: Annotated[
        bool, typer.Option("--coupled", help="Replay reuses the draws of Exposure.")
    ] = False,
    print_metrics: Annotated[
        bool, typer.Option("--print", help="Print the metrics in place of opening the page.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --print: folder to save the result in.")
    ] = None,
    force: Force = False,
    port: Annotated[int, typer.Option(help="Of the page; 0 for a free one.")] = PORT,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """A page on this machine that answers while constants are moved."""
    if platform_seed is not None and env is None:
        raise UserError(f"--platform-seed {platform_seed} is for platforms: give --env")
    place = _place(nodes, platform_seed or 0 if env is not None else graph_seed, graph, env)
    draws = {"episodes": episodes, "seed": seed, "stimulus": stimulus, "coupled": coupled}
    side: dict[str, Any] = {"params": _constants(change or []), "scope": scope}
    side |= {name: v for name, v in (("regions", regions), ("policy", policy)) if v is not None}
    if print_metrics:
        _print_metrics(place, side, draws, out, force=force)
        return
    if out is not None:
        raise UserError(f"--out {out} is for --print")
    Side.of(side, FieldParams())  # a wrong value is refused here, not first on the page
    try:
        from rapo.show.lab.serve import serve
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("rapo"):
            raise
        raise UserError(f"rapo lab needs {error.name}; pip install 'rapo-rl[lab]'") from None
    serve(place, {"a": side, "draws": draws}, port, open_browser=browser)


def _print_metrics(
    place: Place, side: dict[str, Any], draws: dict[str, Any], out: Path | None, *, force: bool
) -> None:
    import pandas as pd
    from rich.console import Console

    from rapo.html.terminal import print_frame
    from rapo.rsd.result import files_in
    from rapo.show.lab.numbers import answer
    from rapo.show.lab.sources import find_source

    if out is not None:
        refuse_to_overwrite(*files_in(out), force=force)
    source = find_source(place)
    first = source.side
    whole = Side.of({"regions": first.regions, "policy": first.policy, **side}, first.params)
    measured = answer(source, whole, Draws.of(draws, source.stimuli), lambda: None)
    table = pd.DataFrame(
        [
            (
                row["name"].replace("_", "-"),
                f"{row['mean']:.6g}",
                f"{row['low']:.6g} to {row['high']:.6g}",
                "ratio of means" if row["pooled"] else "",
            )
            for row in measured.rows
        ],
        columns=["", "mean", "95% interval", " "],
    )
    console = Console()
    print_frame(console, table, f"{source.title}; {draws['episodes']} episodes")
    console.print(measured.point, highlight=False)
    if out is not None:
        measured.result.save(out, force=force)
        typer.echo(f"wrote {out}")


def _place(nodes: int | None, seed: int, graph: Path | None, env: str | None) -> Place:
    options = {"--nodes": nodes, "--graph": graph, "--env": env}
    used = [f"{name} {value}" for name, value in options.items() if value is not None]
    if len(used) > 1:
        raise UserError(f"choose one of --nodes, --graph and --env, got {' and '.join(used)}")
    if graph is not None:
        return Place.of({"kind": FILE, "path": str(graph)})
    if env is not None:
        return Place.of({"kind": env, "seed": seed})
    return Place.of({"kind": GENERATED, "nodes": 250 if nodes is None else nodes, "seed": seed})


def _constants(changes: list[str]) -> dict[str, float]:
    constants = {}
    for change in changes:
        name, equals, value = change.partition("=")
        try:
            if name not in CONSTANTS or not equals:
                raise ValueError
            constants[name] = float(value)
        except ValueError:
            raise UserError(
                f"--set takes NAME=NUMBER of {', '.join(CONSTANTS)}, got {change!r}"
            ) from None
    return constants
