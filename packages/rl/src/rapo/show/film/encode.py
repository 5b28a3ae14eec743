"""Frames into a file: GIF by Pillow, MP4 by ffmpeg. Half a film never has the name asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rapo.envs.frame_cache import Pixels
from rapo.show.film.palette import Palette
from rapo_core.checks import UserError
from rapo_core.files import refuse_to_overwrite, written_whole

SUFFIXES = (".gif", ".mp4")
SAMPLES = 8
"""Frames whose colours make up the palette."""
HELD = 1.5
"""Seconds for which the last frame stays."""
FASTEST = 50
"""Frames a second; viewers slow down a GIF that asks for more."""
MOST_PIXELS = 1_500_000_000
"""Of all frames of a GIF, a byte each, which are in memory while it is written."""
EXTRA = "pip install 'rapo-rl[watch]'"


class Frames(Protocol):
    """Pictures of one shape that can be drawn in any order."""

    shape: tuple[int, int]
    """Height and width."""
    colours: Pixels
    """(k, 3) colours that a GIF has to keep: small grounds that few of the frames have."""

    def __len__(self) -> int:
        """How many."""
        ...

    def frame(self, number: int) -> Pixels:
        """The picture (H, W, 3) of a number from 0."""
        ...


def checked_path(path: Path | str, *, force: bool) -> Path:
    """Where a film can be written.

    Raises:
        ValueError: another suffix than .gif and .mp4, or .mp4 without ffmpeg.
        FileExistsError: something is there, and `force` is not given.
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


def write(
    frames: Frames, path: Path, fps: int, tick: Callable[[int], object] = lambda done: None
) -> None:
    """Write all frames; the last one stays for a moment.

    Args:
        frames: what to write.
        path: to a .gif or .mp4.
        fps: frames a second, 1 to 50. A GIF counts in hundredths of a second; its frames differ by
            one of them so that the whole lasts as long as it should.
        tick: told 1 after every frame.
    """
    with written_whole(path) as part:
        if path.suffix.lower() == ".gif":
            _write_gif(frames, part, fps, tick)
        else:
            _write_mp4(frames, part, fps, tick)


def durations(count: int, fps: int) -> npt.NDArray[np.int64]:
    """(count,) milliseconds of each frame of a GIF, in whole hundredths of a second."""
    ends = np.rint(np.arange(count + 1) * 100 / fps).astype(np.int64)
    lasting = 10 * np.diff(ends)
    lasting[-1] += round(1000 * HELD)
    return lasting


def _write_gif(frames: Frames, path: Path, fps: int, tick: Callable[[int], object]) -> None:

    count = len(frames)
    if count * frames.shape[0] * frames.shape[1] > MOST_PIXELS:
        raise UserError(
            f"{count} frames of {frames.shape[1]} x {frames.shape[0]} are too many for a GIF; "
            "choose a larger --every, a smaller --size, or .mp4"
        )
    palette = Palette([frames.frame(i) for i in _spread(count)], frames.colours)

    def reduced() -> Iterator[Any]:
        for number in range(count):
            yield palette.reduce(frames.frame(number))
            tick(1)

    rest = reduced()
    next(rest).save(
        path, format="GIF", save_all=True, append_images=rest, loop=0, optimize=True,
        duration=durations(count, fps).tolist(), disposal=1,
    )  # fmt: skip


def _spread(count: int) -> Sequence[int]:
    """Numbers of at most `SAMPLES` frames, from the first to the last."""
    return sorted(set(np.linspace(0, count - 1, SAMPLES).astype(int).tolist()))


def _write_mp4(frames: Frames, path: Path, fps: int, tick: Callable[[int], object]) -> None:
    height, width = frames.shape
    writer = _ffmpeg().write_frames(
        str(path), (width, height), fps=fps, codec="libx264", pix_fmt_in="rgb24",
        pix_fmt_out="yuv420p", macro_block_size=2, quality=None, ffmpeg_log_level="error",
        output_params=["-crf", "18", "-preset", "medium", "-movflags", "+faststart",
                       "-fflags", "+bitexact", "-flags:v", "+bitexact", "-f", "mp4"],
    )  # fmt: skip
    writer.send(None)
    try:
        for number in range(len(frames)):
            last = frames.frame(number)
            writer.send(np.ascontiguousarray(last))
            tick(1)
        for _ in range(round(HELD * fps)):
            writer.send(np.ascontiguousarray(last))
    finally:
        writer.close()


def _ffmpeg() -> Any:
    """The package that brings ffmpeg."""
    try:
        import imageio_ffmpeg

        imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        raise UserError(f"an .mp4 needs ffmpeg: {EXTRA}, or choose a .gif") from None
    return imageio_ffmpeg
