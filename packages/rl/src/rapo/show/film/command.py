"""What `rapo watch` does with its words: check them, record both kernels, write the film."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from rapo.cascade.setting import EXPOSURE, REPLAY
from rapo.rsd.metrics import auc_ratio
from rapo.show.film.encode import FASTEST, checked_path, durations
from rapo.show.film.output import film
from rapo.show.film.recording import GraphView, Recording, frame_steps, record
from rapo.show.film.scene import WIDTH, checked_size
from rapo.show.film.subject import Subject
from rapo_core.checks import whole_number

PLATFORM_WIDTH = 1280
"""Pixels of a film of a platform: its pictures have words of their own."""


def watch_from_words(
    subject: Subject,
    *,
    stimulus: int | None,
    episode: int,
    horizons: tuple[int, int, int] | None,
    every: int,
    fps: int,
    size: int | None,
    out: Path,
    force: bool,
) -> None:
    """`rapo watch`: see its help for the arguments."""
    console = Console()
    checked_path(out, force=force)
    whole_number("fps", fps, 1, FASTEST)
    checked_size(WIDTH if size is None else size)
    env, policy = subject.find()
    spans = env.horizons if horizons is None else horizons
    count = len(frame_steps(spans, every))
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("exposure, washout, replay", total=2 * sum(spans))
        left, right = (
            record(
                env, policy, deformed=deformed, seed=episode, stimulus=stimulus, horizons=spans,
                every=every, tick=lambda done: progress.advance(task, done),
            )
            for deformed in (False, True)
        )  # fmt: skip
        progress.remove_task(task)
        drawing = progress.add_task(f"{count} frames", total=count)
        width = size or (WIDTH if isinstance(left.view, GraphView) else PLATFORM_WIDTH)
        film(
            left, right, out, fps=fps, size=width, force=force,
            tick=lambda done: progress.advance(drawing, done),
        )  # fmt: skip
    seconds = durations(count, fps).sum() / 1000
    console.print(
        f"wrote {out}: {count} frames, {seconds:.1f} s, {out.stat().st_size / 1e6:.1f} MB",
        highlight=False,
    )
    ratios = ", ".join(
        f"{recording.name} {_returned(recording):.2f}" for recording in (left, right)
    )
    console.print(f"Sensitive mass of Replay over Exposure: {ratios}", highlight=False)


def _returned(recording: Recording) -> float:
    """SM-R of the episode."""
    first, last = recording.spans[EXPOSURE], recording.spans[REPLAY]
    return float(auc_ratio(recording.sensitive[:first], recording.sensitive[-last:]))
