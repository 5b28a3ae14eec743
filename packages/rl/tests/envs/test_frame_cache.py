"""Frames drawn over a still part are those that a full drawing gives."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rapo.envs.frame_cache import FrameCache


def figure():
    made = Figure(figsize=(3, 2), dpi=100)
    ax = made.add_axes((0.1, 0.1, 0.8, 0.8))
    ax.plot([0, 1], [1, 0], lw=3)
    return made, ax.scatter([], [], s=90, c="red", zorder=5), made.text(0.4, 0.8, "")


def move(dots, words, number):
    dots.set_offsets([[number / 4, 0.5]])
    words.set_text(f"step {number}")


def test_frames_are_those_of_a_full_drawing():
    made, *moving = figure()
    whole, *drawn = figure()
    blit, canvas = FrameCache(made, moving), FigureCanvasAgg(whole)
    for number in (1, 3, 1):
        move(*moving, number)
        move(*drawn, number)
        canvas.draw()
        np.testing.assert_array_equal(blit.frame(), np.asarray(canvas.buffer_rgba())[..., :3])


def test_what_is_painted_lies_under_what_moves_and_does_not_stay():
    made, dots, words = figure()
    blit = FrameCache(made, [dots, words])
    move(dots, words, 2)
    clean = blit.frame()

    def paint(pixels):
        pixels[...] = (0, 0, 255, 255)

    painted = blit.frame([paint])
    red = (clean == (255, 0, 0)).all(axis=2)
    assert red.any() and (np.abs(painted[red].astype(int) - (255, 0, 0)) <= 2).all()
    assert (painted[0, 0] == (0, 0, 255)).all()
    np.testing.assert_array_equal(blit.frame(), clean)
