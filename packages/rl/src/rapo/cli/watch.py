"""`rapo watch`: film an episode under both kernels."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rapo.cli.options import Force, stoppable

if TYPE_CHECKING:
    from rapo.show.film.recording import Recording
    from rapo.show.film.subject import Subject

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
    force: Force = False,
) -> None:
    """Film an episode under P0 and under RAPO, side by side, with the same draws.

    \b
    rapo watch --out replay.gif
    rapo watch --graph net.npz --policy runs/RAPO/checkpoint.pt --out net.mp4
    rapo watch --env rapo/Routing-v0 --out routing.gif
    """  # noqa: D301  # click keeps the lines after a backspace as they are
    from rapo.cli.parse import parse_horizons
    from rapo.show.film.encode import FASTEST, checked_path
    from rapo.show.film.scene import WIDTH, checked_size
    from rapo.show.film.subject import Subject
    from rapo_core.checks import whole_number

    checked_path(out, force=force)
    whole_number("fps", fps, 1, FASTEST)
    checked_size(WIDTH if size is None else size)
    spans = None if horizons is None else parse_horizons(horizons)
    subject = Subject(
        env=env, nodes=nodes, graph_seed=graph_seed, graph=graph, action=action, policy=policy,
        platform_seed=platform_seed,
    )  # fmt: skip
    with stoppable("nothing was written"):
        left, right = _record(subject, seed=episode, stimulus=stimulus, horizons=spans, every=every)
        _write(left, right, out, fps=fps, size=size, force=force)


def _record(subject: Subject, **options: Any) -> tuple[Recording, Recording]:
    """The episode under P0 and under the deformed kernel."""
    from rich.progress import Progress

    from rapo.show.film.recording import record

    env, policy = subject.find()
    options["horizons"] = spans = options["horizons"] or env.horizons
    with Progress(transient=True) as progress:
        task = progress.add_task("exposure, washout, replay", total=2 * sum(spans))
        left, right = (
            record(env, policy, deformed=deformed, tick=partial(progress.advance, task), **options)
            for deformed in (False, True)
        )
    return left, right


def _write(
    left: Recording, right: Recording, out: Path, *, fps: int, size: int | None, force: bool
) -> None:
    """Write the film, and print how long it lasts and how much of the cascade came back."""
    from rich.console import Console
    from rich.progress import Progress

    from rapo.cascade.setting import EXPOSURE, REPLAY
    from rapo.rsd.metrics import auc_ratio
    from rapo.show.film.encode import durations
    from rapo.show.film.output import film
    from rapo.show.film.recording import GraphView, frame_steps
    from rapo.show.film.scene import WIDTH

    frames = len(frame_steps(left.spans, left.every))
    width = size or (WIDTH if isinstance(left.view, GraphView) else PLATFORM_WIDTH)
    with Progress(transient=True) as progress:
        task = progress.add_task(f"{frames} frames", total=frames)
        advance = partial(progress.advance, task)
        film(left, right, out, fps=fps, size=width, force=force, tick=advance)
    console = Console()
    seconds = durations(frames, fps).sum() / 1000
    console.print(
        f"wrote {out}: {frames} frames, {seconds:.1f} s, {out.stat().st_size / 1e6:.1f} MB",
        highlight=False,
    )
    first, last = left.spans[EXPOSURE], left.spans[REPLAY]
    ratios = ", ".join(
        f"{each.name} {auc_ratio(each.sensitive[:first], each.sensitive[-last:]):.2f}"
        for each in (left, right)
    )
    console.print(f"Sensitive mass of Replay over Exposure: {ratios}", highlight=False)
