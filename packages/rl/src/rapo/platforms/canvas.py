"""`Canvas`: the dark figure, title and legend of all platforms' pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from rapo.cascade.setting import PHASES
from rapo.envs.frame_cache import FrameCache
from rapo.platforms.candidates import Array

if TYPE_CHECKING:
    from rapo.platforms.platform import BatchPlatform

NIGHT, INK, SCAR = "#10151f", "#dfe6f2", "#ff4d4d"
FULL_SCAR = 1.2
"""Scar that is drawn at full strength."""


class Canvas:
    """A figure of 100 pixels an inch with one pair of axes; parts that stand still are drawn once.

    Args:
        inches: width and height.
        axes: left, bottom, width, height of the axes, as shares of the figure.
        bare: whether to leave out lines and numbers of the axes.
    """

    def __init__(
        self,
        inches: tuple[float, float],
        axes: tuple[float, float, float, float],
        *,
        bare: bool = True,
    ) -> None:
        self.figure = Figure(figsize=inches, dpi=100, facecolor=NIGHT)
        self.ax = self.figure.add_axes(axes, facecolor=NIGHT)
        if bare:
            self.ax.set_axis_off()
        above = axes[1] + axes[3]
        left, up = max(axes[0], 0.025), (1 + above) / 2 - 0.01
        self._title = self.figure.text(left, up, "", color=INK, fontsize=14)
        self._cache: FrameCache | None = None

    def legend(self, handles: Sequence[Any]) -> None:
        """Explain signs and colours in one line below the axes."""
        self.figure.legend(
            handles=handles, loc="lower left", ncols=len(handles), frameon=False, labelcolor=INK,
            bbox_to_anchor=(0.015, 0.0), fontsize=11,
        )  # fmt: skip

    def finish(self, *moving: Any) -> None:
        """Draw the parts that stand still, once everything is in the figure.

        Args:
            moving: parts that change between pictures or lie above such parts, the lowest first.
        """
        self._cache = FrameCache(self.figure, [*moving, self._title])

    def pixels(self, title: str) -> Array:
        """The finished figure under a title, (H, W, 3) uint8."""
        assert self._cache is not None
        self._title.set_text(title)
        return self._cache.frame()


def when(platform: BatchPlatform, episode: int) -> str:
    """Phase and step of an episode, as titles say them."""
    phase = PHASES[platform.phase[episode]]
    return f"{phase[:1].upper()}{phase[1:]}, step {platform.clock[episode]}"
