"""`rapo watch`: its words. Bad input ends with one clear line and exit code 2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def watch(
    env: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="A graph, or a platform: rapo/Feed-v0, Routing-v0, Warehouse-v0 or Twin-v0.",
        ),
    ] = "rapo/GraphDiffusion-v0",
    nodes: Annotated[int | None, typer.Option(help="Size of the graph, default 250.")] = None,
    graph_seed: Annotated[int | None, typer.Option(help="Seed of the graph, default 0.")] = None,
    graph: Annotated[
        Path | None,
        typer.Option(help="A graph (.npz, CSV, GraphML) instead of a generated one."),
    ] = None,
    platform_seed: Annotated[
        int | None, typer.Option(help="With --env: seed of the platform, default 0.")
    ] = None,
    stimulus: Annotated[
        int | None, typer.Option(help="Number of the stimulus, from 1; default drawn.")
    ] = None,
    action: Annotated[
        str | None,
        typer.Option(
            help="A constant action: aggressive (default), moderate, conservative, or its number."
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Instead of an action: RUN/checkpoint.pt (on its own graph), a .zip of "
            "Stable-Baselines3, package.module:name, or scripted."
        ),
    ] = None,
    episode: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    horizons: Annotated[
        str | None, typer.Option(help="Steps of exposure, washout, replay, such as 500,200,500.")
    ] = None,
    every: Annotated[int, typer.Option(help="Steps between two frames.")] = 10,
    fps: Annotated[int, typer.Option(help="Frames a second, at most 50.")] = 12,
    size: Annotated[
        int | None,
        typer.Option(help="Width in pixels, even; default 840, of a platform 1280."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The .gif to write, or .mp4 (needs rapo-rl[watch]).")
    ] = Path("watch.gif"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")] = False,
) -> None:
    """Film an episode under P0 and under RAPO, side by side, with the same draws.

    \b
    rapo watch --out replay.gif
    rapo watch --graph net.npz --policy runs/RAPO/checkpoint.pt --out net.mp4
    rapo watch --env rapo/Routing-v0 --out routing.gif
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rapo.paper.rsd_command import parse_horizons
    from rapo.show.film.command import watch_from_words
    from rapo.show.film.subject import Subject

    watch_from_words(
        Subject(
            env=env, nodes=nodes, graph_seed=graph_seed, graph=graph, action=action, policy=policy,
            platform_seed=platform_seed,
        ),
        stimulus=stimulus, episode=episode, every=every, fps=fps, size=size, out=out, force=force,
        horizons=None if horizons is None else parse_horizons(horizons),
    )  # fmt: skip
