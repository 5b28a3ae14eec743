"""Pictures of the four domains: drawn over a still part, they are those of a full drawing."""

from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from rapo import FieldParams
from rapo.platforms import PlatformVectorEnv

SEEDS = {"Feed": 1000, "Routing": 1001, "Warehouse": 1001, "Twin": 1000}
STAND_IN = {"data": "stand-in"}


def platform(name, **options):
    """Two episodes whose memory has scars."""
    options = options if name == "Twin" else {**STAND_IN, **options}
    made = gymnasium.make_vec(
        f"rapo/{name}-v0", 2, vectorization_mode="vector_entry_point", seed=SEEDS[name], **options
    )
    env = made.unwrapped
    assert isinstance(env, PlatformVectorEnv)
    env.reset(seed=3)
    return env


def whole(engine):
    """The picture that was drawn last, drawn anew with all that is in it."""
    figure = engine._picture._canvas.figure
    artists = [a for a in figure.findobj(include_self=False) if a.get_animated()]
    for artist in artists:
        artist.set_animated(False)
    own, canvas = figure.canvas, FigureCanvasAgg(figure)
    canvas.draw()
    figure.set_canvas(own)
    for artist in artists:
        artist.set_animated(True)
    return np.asarray(canvas.buffer_rgba())[..., :3]


def scarred(engine, strength):
    """Give every other region a scar."""
    state = dict(engine.snapshot())
    H = np.zeros_like(state["memory.H"])
    H[:, ::2] = strength
    engine.restore({**state, "memory.H": H})


@pytest.mark.parametrize("name", SEEDS)
def test_a_picture_over_its_still_part_is_a_full_drawing(name):
    env = platform(name)
    engine, shown = env.engine, []
    for strength in (0.0, 0.6, 2.0):
        for _ in range(12):
            env.step(np.array([0, env.single_action_space.n - 1]))
        scarred(engine, strength)
        shown.append(engine.frame(1))
        np.testing.assert_array_equal(shown[-1], whole(engine))
    assert all((a != b).mean() > 0.001 for a, b in pairwise(shown))


@pytest.mark.parametrize("name", SEEDS)
def test_a_picture_leaves_nothing_in_the_next_one(name):
    env = platform(name)
    engine = env.engine
    for _ in range(12):
        env.step(np.array([0, env.single_action_space.n - 1]))
    before = engine.snapshot()
    clean = engine.frame(0)
    scarred(engine, 2.0)
    env.step(np.array([0, 0]))
    assert (engine.frame(0) != clean).any()
    engine.restore(before)
    np.testing.assert_array_equal(engine.frame(0), clean)


def test_a_floor_of_one_leaves_the_feed_without_scars():
    env = platform("Feed").like(2, params=FieldParams(psi_min=1.0))
    env.reset(seed=3)
    clean = env.engine.frame(0)
    scarred(env.engine, 2.0)
    np.testing.assert_array_equal(env.engine.frame(0), clean)


def test_the_feed_rings_what_is_pushed_while_it_is_pushed():
    env = platform("Feed", horizons=(2, 2, 2))
    env.reset(seed=3, options={"stimulus": np.array([1, 2])})
    engine = env.engine
    for phase in (0, 0, 1, 1, 2, 2):
        assert engine.phase.tolist() == [phase, phase]
        engine.frame(0)
        rings = engine._picture._pushed.get_offsets()
        expected = engine._picture._at[engine.pushed[0]] if phase != 1 else np.empty((0, 2))
        np.testing.assert_array_equal(np.reshape(rings, (-1, 2)), expected)
        env.step(np.array([0, 0]))


def test_the_legend_of_routing_shows_grey_links_as_they_are_drawn():
    engine = platform("Routing").engine
    engine.frame(0)
    canvas = engine._picture._canvas
    dashed = [c for c in canvas.ax.collections if c.get_linestyle()[0][1] is not None]
    (shown,) = (
        line
        for line in canvas.figure.legends[0].get_lines()
        if line.get_label() == "grey link (hidden)"
    )
    (grey,) = dashed
    offset, dashes = grey.get_linestyle()[0]
    assert (offset, list(dashes)) == (shown._dash_pattern[0], list(shown._dash_pattern[1]))
    assert grey.get_linewidth()[0] == shown.get_linewidth()
