"""`rapo watch`: film an episode under both kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rapo.cli.options import Force, PlatformSeed, stoppable
from rapo_core.checks import UserError, whole_number

if TYPE_CHECKING:
    from rapo.show.record import Recording

PLATFORM_WIDTH = 1280
"""Pixels of a film of a platform, whose pictures have text of their own."""


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
    platform_seed: PlatformSeed = None,
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
            help="Instead of an action: the folder of a run (on its own graph), a .zip of "
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
    force: Force = False,
) -> None:
    """Film an episode under P0 and under RAPO, side by side, with the same draws.

    \b
    rapo watch --out replay.gif
    rapo watch --graph net.npz --policy runs/RAPO --out net.mp4
    rapo watch --env rapo/Routing-v0 --out routing.gif
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rich.progress import Progress

    from rapo.cli.parse import parse_horizons
    from rapo.html.terminal import progress_line
    from rapo.show.film.encode import film
    from rapo.show.film.scene import WIDTH
    from rapo.show.film.subject import open_subject
    from rapo.show.record import HEADINGS, GraphView, record

    check_film(out, fps, size, action, policy, force=force)
    spans = None if horizons is None else parse_horizons(horizons)
    with stoppable("nothing was written"), Progress(transient=True) as progress:
        source, actor = open_subject(
            env, nodes=nodes, graph_seed=graph_seed, graph=graph, platform_seed=platform_seed,
            policy=policy if action is None else action,
        )  # fmt: skip
        left, right = (
            record(
                source, actor, deformed=bool(deformed), seed=episode, stimulus=stimulus,
                horizons=spans, every=every, on_progress=progress_line(progress, heading),
            )
            for deformed, heading in enumerate(HEADINGS)
        )  # fmt: skip
        width = size or (WIDTH if isinstance(left.view, GraphView) else PLATFORM_WIDTH)
        on_progress = progress_line(progress, "frames")
        film(left, right, out, fps=fps, size=width, force=force, on_progress=on_progress)
    print_summary(left, right, out, fps)


def check_film(
    out: Path, fps: int, size: int | None, action: str | None, policy: str | None, *, force: bool
) -> None:
    """Refuse a film that cannot be written or has two actors, before anything is recorded."""
    from rapo.show.film.encode import MOST_FPS, checked_path
    from rapo.show.film.scene import WIDTH, checked_size

    checked_path(out, force=force)
    whole_number("fps", fps, 1, MOST_FPS)
    checked_size(WIDTH if size is None else size)
    if action is not None and policy is not None:
        raise UserError(f"give --action {action} or --policy {policy}, not both")


def print_summary(left: Recording, right: Recording, out: Path, fps: int) -> None:
    """Print what was written, and what Replay brought of Exposure's sensitive mass."""
    from rapo.cascade.setting import EXPOSURE, REPLAY
    from rapo.rsd.metrics import auc_ratio
    from rapo.show.film.encode import durations
    from rapo.show.record import frame_steps

    frames = len(frame_steps(left.spans, left.every))
    seconds, size_mb = durations(frames, fps).sum() / 1000, out.stat().st_size / 1e6
    typer.echo(f"wrote {out}: {frames} frames, {seconds:.1f} s, {size_mb:.1f} MB")
    first, last = left.spans[EXPOSURE], left.spans[REPLAY]
    ratios = ", ".join(
        f"{each.name} {auc_ratio(each.sensitive[:first], each.sensitive[-last:]):.2f}"
        for each in (left, right)
    )
    typer.echo(f"Sensitive mass of Replay over Exposure: {ratios}")
