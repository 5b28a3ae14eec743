"""`FrameCache`: a figure whose still part is drawn once, for frames that follow each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]


class FrameCache:
    """Frames of a figure: what moves is drawn over a copy of what does not.

    Args:
        figure: without a window; its size and resolution are those of the frames.
        moving: artists that change between frames, the lowest first. They lie above all others, so
            whatever must cover one of them belongs among them even if it stands still.
    """

    def __init__(self, figure: Any, moving: Sequence[Any]) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self._figure, self._moving = figure, list(moving)
        self._canvas: Any = FigureCanvasAgg(figure)
        for artist in self._moving:
            artist.set_animated(True)  # left out of the still part
        self.redraw()

    def redraw(self) -> None:
        """Draw the still part anew, after it was changed."""
        self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(self._figure.bbox)

    def frame(self, under: Sequence[Callable[[Pixels], None]] = ()) -> Pixels:
        """The picture (H, W, 3) as the artists are now.

        Args:
            under: each may write into the pixels (H, W, 4) of the still part, before what moves is
                drawn over them.
        """
        self._canvas.restore_region(self._still)
        pixels = np.asarray(self._canvas.buffer_rgba())
        for paint in under:
            paint(pixels)
        for artist in self._moving:
            self._figure.draw_artist(artist)
        return pixels[..., :3].copy()

    def close(self) -> None:
        """Drop the figure."""
        self._figure.clear()
