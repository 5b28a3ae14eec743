"""The canvas of the platforms' pictures: nothing lies over the axes."""

import numpy as np
import pytest
from matplotlib.lines import Line2D

from rapo.platforms.canvas import Canvas

AXES = [(0.0, 0.1, 1.0, 0.8), (0.08, 0.12, 0.9, 0.76)]


@pytest.mark.parametrize("axes", AXES)
def test_title_and_legend_lie_beside_the_axes_and_inside_the_picture(axes):
    canvas = Canvas((8, 6), axes)
    canvas.legend([Line2D([], [], label="a robot")])
    canvas.finish()
    assert canvas.pixels("Exposure, step 3").shape == (600, 800, 3)
    drawn = canvas.figure.canvas.get_renderer()
    title = canvas._title.get_window_extent(drawn)
    legend = canvas.figure.legends[0].get_window_extent(drawn)
    inner = canvas.ax.get_window_extent()
    assert inner.y1 < title.y0 < title.y1 < 600
    assert max(inner.x0, 20) - 1 <= title.x0 < title.x1 < 800
    assert 0 <= legend.y0 < legend.y1 < inner.y0 + 8


def test_axes_have_lines_and_numbers_only_if_asked_for():
    pictures = [Canvas((4, 3), AXES[1], bare=bare) for bare in (True, False)]
    assert [c.ax.axison for c in pictures] == [False, True]
    for canvas in pictures:
        canvas.finish()
    bare, framed = (c.pixels("") for c in pictures)
    assert len(np.unique(bare.reshape(-1, 3), axis=0)) == 1
    assert len(np.unique(framed.reshape(-1, 3), axis=0)) > 1
