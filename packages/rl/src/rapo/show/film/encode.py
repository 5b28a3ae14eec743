"""`film`: two recordings side by side, written as GIF by Pillow or as MP4 by ffmpeg."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.envs.frame_cache import Pixels
from rapo.show.film.palette import Palette
from rapo.show.film.scene import WIDTH, Scene
from rapo.show.record import Recording
from rapo_core.checks import UserError, whole_number
from rapo_core.files import refuse_to_overwrite, written_whole

SUFFIXES = (".gif", ".mp4")
SAMPLES = 8
"""Frames whose colours make up the palette of a GIF."""
LAST_FRAME = 1.5
"""Seconds for which the last frame stays."""
MOST_FPS = 50
"""Frames a second; viewers slow down a GIF that asks for more."""
MOST_PIXELS = 1_500_000_000
"""Pixels of all frames of a GIF: each takes a byte of memory while the file is written."""
EXTRA = "pip install 'rapo-rl[watch]'"


OnProgress = Callable[[int, int], object]


def film(
    left: Recording,
    right: Recording,
    path: Path | str,
    *,
    fps: int = 12,
    size: int = WIDTH,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> Path:
    """Write a film of two recordings side by side, their curves below; return its path.

    The same recordings give the same bytes. A film that cannot be finished leaves no file.

    Args:
        left: a recording, often under `P0`.
        right: another with the same phases and the same `every`.
        path: the .gif or .mp4 to write; .mp4 needs the extra `watch`.
        fps: frames a second, 1 to 50; the last frame stays for 1.5 seconds more. A GIF counts in
            hundredths of a second, so the times of its frames differ by one of them.
        size: width in pixels, even; the height follows.
        force: overwrite the file.
        on_progress: called after every frame with the frames drawn and their number.

    Raises:
        UserError: an argument does not fit; nothing is written.
        FileExistsError: the file exists.
    """
    path = checked_path(path, force=force)
    whole_number("fps", fps, 1, MOST_FPS)
    scene = Scene(left, right, size)
    try:
        with written_whole(path) as part:
            write = _write_gif if path.suffix.lower() == ".gif" else _write_mp4
            write(scene, part, fps, on_progress or (lambda done, total: None))
    finally:
        scene.close()
    return path


def checked_path(path: Path | str, *, force: bool) -> Path:
    """The path, once it is certain that a film can be written there.

    Raises:
        UserError: the suffix is neither .gif nor .mp4, or it is .mp4 and ffmpeg is missing.
        FileNotFoundError: the folder cannot be written in.
        FileExistsError: the file exists and `force` is False.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"a film is written to {' or '.join(SUFFIXES)}, got {path}")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise FileNotFoundError(f"{path} cannot be written: {folder} is no folder to write in")
    refuse_to_overwrite(path, force=force)
    if path.suffix.lower() == ".mp4":
        _ffmpeg()
    return path


def durations(count: int, fps: int) -> npt.NDArray[np.int64]:
    """(count,) milliseconds of each frame of a GIF, in whole hundredths of a second."""
    ends = np.rint(np.arange(count + 1) * 100 / fps).astype(np.int64)
    lasting = 10 * np.diff(ends)
    lasting[-1] += round(1000 * LAST_FRAME)
    return lasting


def _drawn(scene: Scene, on_progress: OnProgress) -> Iterator[Pixels]:
    """Every frame (H, W, 3) in order."""
    for number in range(len(scene)):
        yield scene.frame(number)
        on_progress(number + 1, len(scene))


def _write_gif(frames: Scene, path: Path, fps: int, on_progress: OnProgress) -> None:
    count = len(frames)
    if count * frames.shape[0] * frames.shape[1] > MOST_PIXELS:
        raise UserError(
            f"{count} frames of {frames.shape[1]} x {frames.shape[0]} are too many for a GIF; "
            "choose a larger --every, a smaller --size, or .mp4"
        )
    palette = Palette([frames.frame(i) for i in _spread(count)], frames.colours)

    images: Iterator[Any] = map(palette.reduce, _drawn(frames, on_progress))
    next(images).save(
        path, format="GIF", save_all=True, append_images=images, loop=0, optimize=True,
        duration=durations(count, fps).tolist(), disposal=1,
    )  # fmt: skip


def _spread(count: int) -> Sequence[int]:
    """Numbers of at most `SAMPLES` frames that lie evenly from the first to the last."""
    return sorted(set(np.linspace(0, count - 1, SAMPLES).astype(int).tolist()))


def _write_mp4(frames: Scene, path: Path, fps: int, on_progress: OnProgress) -> None:
    height, width = frames.shape
    writer = _ffmpeg().write_frames(
        str(path), (width, height), fps=fps, codec="libx264", pix_fmt_in="rgb24",
        pix_fmt_out="yuv420p", macro_block_size=2, quality=None, ffmpeg_log_level="error",
        output_params=["-crf", "18", "-preset", "medium", "-movflags", "+faststart",
                       "-fflags", "+bitexact", "-flags:v", "+bitexact", "-f", "mp4"],
    )  # fmt: skip
    writer.send(None)
    try:
        for last in _drawn(frames, on_progress):
            writer.send(np.ascontiguousarray(last))
        for _ in range(round(LAST_FRAME * fps)):
            writer.send(np.ascontiguousarray(last))
    finally:
        writer.close()


def _ffmpeg() -> Any:
    """The package that brings ffmpeg; refuse an MP4 without it."""
    try:
        import imageio_ffmpeg

        imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        raise UserError(f"an .mp4 needs ffmpeg: {EXTRA}, or choose a .gif") from None
    return imageio_ffmpeg
