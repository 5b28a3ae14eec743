"""`Scene`: two recordings side by side, and the curves of both below."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.setting import DECAY, REPLAY
from rapo.envs.frame_cache import FrameCache, Pixels
from rapo.envs.render import ACTIVE, SCAR, SENSITIVE
from rapo.rsd.plots import smoothed
from rapo.show.film.panels import EMBER, FULL, LAND, PAPER, Box, GraphPanel, PicturePanel
from rapo.show.record import GraphView, Recording, frame_steps
from rapo_core.checks import UserError, whole_number

WIDTH = 840
"""Width of the layout in pixels; a film of another size is scaled as a whole."""
HEAD, NAME, GRAPH, CURVES = 44, 30, 390, 150
"""Heights of the layout's rows in pixels: phase, headings of the panels, graph, curves."""
SMALLEST, LARGEST = 320, 3840
INK, FAINT, GRID = "#22272E", "#6B7480", "#DFE3E8"
COLOURS = ("#4D4D4D", "#0072B2")
PHASES = (
    ("Exposure", "the stimulus is on"),
    ("Washout", "the stimulus is off"),
    ("Replay", "the same stimulus, the same draws"),
)
SMOOTH = 10
"""Steps of the moving mean of the curves."""


def checked_size(size: int) -> int:
    """A width in pixels, if it is even: an .mp4 cannot have another."""
    if whole_number("size", size, SMALLEST, LARGEST) % 2:
        raise UserError(f"size must be an even number of pixels, got {size}")
    return size


class Scene:
    """Frames of two recordings; the figure is built once and its artists updated.

    Args:
        left: a recording.
        right: another of the same phases and frames.
        size: width of a frame in pixels, even.
    """

    def __init__(self, left: Recording, right: Recording, size: int = WIDTH) -> None:
        from matplotlib.figure import Figure

        if (left.spans, left.every) != (right.spans, right.every):
            raise UserError(
                f"the recordings must share phases and frames, got {left.spans} every {left.every} "
                f"and {right.spans} every {right.every}"
            )
        size = checked_size(size)
        self.recordings = (left, right)
        self.steps = frame_steps(left.spans, left.every)
        panel = self._panel_height()
        self._height = HEAD + NAME + panel + CURVES
        self.shape = 2 * round(size * self._height / WIDTH / 2), size
        # inches of 100 layout pixels: text and lines scale with the frame
        inches = (WIDTH / 100, WIDTH / 100 * self.shape[0] / size)
        figure = Figure(figsize=inches, dpi=100 * size / WIDTH, facecolor=PAPER)
        moving = self._head(figure)
        self._panels: list[GraphPanel | PicturePanel] = []
        for number, recording in enumerate(self.recordings):
            box = self._box(10 + number * WIDTH / 2, HEAD + NAME, WIDTH / 2 - 20, panel)
            kind = GraphPanel if isinstance(recording.view, GraphView) else PicturePanel
            self._panels.append(kind(figure, box, recording))
            moving += self._panels[-1].moving
        self._curves: list[Curves] = []
        for name, left_edge, width in self._plots():
            box = self._box(left_edge, self._height - CURVES + 24, width, CURVES - 58)
            series = np.stack([getattr(recording, name) for recording in self.recordings])
            self._curves.append(Curves(figure.add_axes(box), series, left.spans, name))
            moving += self._curves[-1].moving
        self._canvas = FrameCache(figure, moving)
        self._settle()
        self.colours = np.unique(np.concatenate([p.colours for p in self._panels]), axis=0)

    def __len__(self) -> int:
        return len(self.steps)

    def frame(self, number: int) -> Pixels:
        """Frame (H, W, 3), numbered from 0."""
        step, spans = int(self.steps[number]), self.recordings[0].spans
        ends = np.cumsum(spans)
        phase = int(np.searchsorted(ends, step))
        name, stimulus = PHASES[phase]
        self._phase.set_text(name)
        self._step.set_text(f"step {step - ends[phase] + spans[phase]}: {stimulus}")
        for recording, panel, text in zip(self.recordings, self._panels, self._counts, strict=True):
            panel.show(step)
            reach, inside = recording.reach[step - 1], recording.sensitive[step - 1]
            text.set_text(f"reach {reach:.0f}, sensitive {inside:.0f}")
        for curves in self._curves:
            curves.show(step)
        return self._canvas.frame([panel.paint for panel in self._panels])

    def close(self) -> None:
        """Drop the figure."""
        self._canvas.close()

    def _settle(self) -> None:
        """Show the panels the still picture over two grounds: so they find the pixels to tint."""
        pictures = []
        for colour in ("black", LAND):
            for panel in self._panels:
                panel.ground(colour)
            self._canvas.redraw()
            pictures.append(self._canvas.frame())
        for panel in self._panels:
            panel.settle(light=pictures[1], dark=pictures[0])

    def _panel_height(self) -> int:
        view = self.recordings[0].view
        if isinstance(view, GraphView):
            return GRAPH
        rows, columns = view.picture(int(self.steps[0]), scars=False).shape[:2]
        return int((WIDTH / 2 - 20) * rows / columns)

    def _plots(self) -> list[tuple[str, float, float]]:
        """Name, left edge and width of each plot; on a graph reach contains the sensitive mass."""
        if isinstance(self.recordings[0].view, GraphView):
            return [("reach", 46, WIDTH - 66)]
        return [("reach", 46, WIDTH / 2 - 66), ("sensitive", WIDTH / 2 + 46, WIDTH / 2 - 66)]

    def _box(self, left: float, top: float, width: float, height: float) -> Box:
        """Shares of the figure from pixels of the layout, counted from the top."""
        H = self._height
        return left / WIDTH, 1 - (top + height) / H, width / WIDTH, height / H

    def _text(self, figure: Any, left: float, top: float, text: str, **style: Any) -> Any:
        return figure.text(left / WIDTH, 1 - top / self._height, text, va="baseline", **style)

    def _head(self, figure: Any) -> list[Any]:
        """Draw the phase, the legend and the headings; return the texts that change."""
        self._phase = self._text(figure, 20, 31, "", fontsize=15, color=INK, weight="bold")
        self._step = self._text(figure, 138, 31, "", fontsize=11, color=FAINT)
        if isinstance(self.recordings[0].view, GraphView):
            self._legend(figure)
        self._counts = []
        for number, recording in enumerate(self.recordings):
            left, down = 20 + number * WIDTH / 2, HEAD + 19
            bold = {"fontsize": 12.5, "color": COLOURS[number], "weight": "bold"}
            self._text(figure, left, down, recording.name, **bold)
            right = {"fontsize": 11, "color": INK, "ha": "right"}
            self._counts.append(self._text(figure, left + WIDTH / 2 - 40, down, "", **right))
        return [self._phase, self._step, *self._counts]

    def _legend(self, figure: Any) -> None:
        from matplotlib.lines import Line2D

        marks: dict[str, dict[str, Any]] = {
            "active": {"marker": "o", "color": ACTIVE, "markeredgecolor": EMBER},
            "sensitive set": {"marker": "s", "color": LAND, "markeredgecolor": SENSITIVE},
            "scar": {"marker": "s", "color": SCAR, "alpha": FULL, "markeredgewidth": 0},
        }
        handles = [
            Line2D([], [], linestyle="none", markersize=8, label=name, **style)
            for name, style in marks.items()
        ]
        figure.legend(
            handles=handles, loc="center right", ncols=3, frameon=False, fontsize=10,
            bbox_to_anchor=((WIDTH - 10) / WIDTH, 1 - 26 / self._height), labelcolor=INK,
            handletextpad=0.1, columnspacing=1.2,
        )  # fmt: skip


class Curves:
    """Both recordings' numbers over the phases, drawn as far as the film has come.

    Args:
        ax: to draw in.
        series: (2, T).
        spans: steps of the phases.
        label: name of the numbers.
    """

    def __init__(
        self, ax: Any, series: npt.NDArray[np.float64], spans: tuple[int, int, int], label: str
    ) -> None:
        self._smooth = smoothed(series, np.repeat(np.arange(3), spans), SMOOTH)
        ax.set(xlim=(0, sum(spans)), ylim=(0, 1.08 * max(float(self._smooth.max()), 1)))
        ax.set_ylabel(label, color=FAINT, fontsize=10)
        ax.tick_params(colors=FAINT, labelsize=9, length=3)
        starts = np.cumsum([0, *spans])
        ax.set_xticks(starts)
        for side, shown in (("top", False), ("right", False), ("left", True), ("bottom", True)):
            ax.spines[side].set_visible(shown)
            ax.spines[side].set_color(GRID)
        ax.axvspan(starts[DECAY], starts[REPLAY], color="#F3F4F6", lw=0, zorder=0)
        ax.axvline(starts[REPLAY], color=GRID, lw=1, zorder=0)
        for start, end, (name, _) in zip(starts, starts[1:], PHASES, strict=False):
            ax.text(
                (start + end) / 2, 1.04, name.lower(), ha="center", va="bottom", color=FAINT,
                transform=ax.get_xaxis_transform(), fontsize=10,
            )  # fmt: skip
        self._hand = ax.axvline(0, color=FAINT, lw=0.9, zorder=2)
        self._lines = [ax.plot([], [], color=c, lw=1.8, zorder=3)[0] for c in COLOURS]
        dot: dict[str, Any] = {"ms": 6.5, "mec": PAPER, "mew": 1.2, "zorder": 4}
        self._dots = [ax.plot([], [], "o", color=c, **dot)[0] for c in COLOURS]
        self.moving = [self._hand, *self._lines, *self._dots]

    def show(self, step: int) -> None:
        """Draw the first steps, and the marker at the last of them."""
        self._hand.set_xdata([step, step])
        for line, dot, values in zip(self._lines, self._dots, self._smooth, strict=True):
            line.set_data(np.arange(1, step + 1), values[:step])
            dot.set_data([step], [values[step - 1]])
