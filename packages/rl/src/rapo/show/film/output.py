"""`film`: two recordings side by side as a GIF or MP4."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rapo.show.film.encode import FASTEST, checked_path, write
from rapo.show.film.recording import Recording
from rapo.show.film.scene import WIDTH, Scene
from rapo_core.checks import whole_number


def film(
    left: Recording,
    right: Recording,
    path: Path | str,
    *,
    fps: int = 12,
    size: int = WIDTH,
    force: bool = False,
    tick: Callable[[int], object] | None = None,
) -> Path:
    """Write a film of two recordings side by side, their curves below; the path of it.

    The same recordings give the same bytes.

    Args:
        left: of `record`, or `Recording.of_steps` from arrays of one's own; often under `P0`.
        right: another with the same phases and the same `every`.
        path: to write, .gif or .mp4 (which needs the extra `watch`).
        fps: frames a second, 1 to 50; the last frame stays for 1.5 seconds more.
        size: width in pixels, even; the height follows.
        force: overwrite what is there.
        tick: told 1 after every frame, of which there are `len(frame_steps(spans, every))`.

    Raises:
        ValueError: something does not fit, with the reason; nothing is written.
        FileExistsError: the file is there.
    """
    path = checked_path(path, force=force)
    whole_number("fps", fps, 1, FASTEST)
    scene = Scene(left, right, size)
    try:
        write(scene, path, fps, tick or (lambda done: None))
    finally:
        scene.close()
    return path
