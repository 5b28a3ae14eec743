"""Films: what is recorded is what the engine did, and the file holds what was drawn."""

import numpy as np
import pytest
from PIL import Image

import rapo
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.experiments.rsd_command import ConstantPolicy
from rapo.watch import film, record
from rapo.watch.recording import frame_steps

SPANS = (120, 30, 120)
HOW = {"horizons": SPANS, "every": 9, "seed": 3}


@pytest.fixture(scope="module")
def env():
    return GraphDiffusionVectorEnv(1, nodes=100, graph_seed=1000)


@pytest.fixture(scope="module")
def pair(env):
    policy = ConstantPolicy(0)
    return record(env, policy, deformed=False, **HOW), record(env, policy, **HOW)


def test_recorded_counts_are_those_of_rsd(env, pair):
    for recording, twin in zip(pair, (env.like(1, deformation="off"), env), strict=True):
        found = rapo.rsd.evaluate(twin, ConstantPolicy(0), 1, 3, True, horizons=SPANS)
        np.testing.assert_array_equal(recording.reach, found.traces["reach"][0])
        np.testing.assert_array_equal(recording.sensitive, found.traces["sensitive_mass"][0])
        steps = frame_steps(SPANS, 9)
        np.testing.assert_array_equal(recording.view.active, found.cascade[steps - 1])
        np.testing.assert_array_equal(recording.view.active.sum(axis=1), recording.reach[steps - 1])
    assert (pair[0].reach != pair[1].reach).any()


def test_P0_replays_its_exposure_bit_for_bit(pair):
    view = pair[0].view
    first, last = 120 // 9, 120 // 9 + 30 // 9
    np.testing.assert_array_equal(view.active[:first], view.active[last:])
    np.testing.assert_array_equal(view.recent[:first], view.recent[last:])
    assert view.active[:first].any() and not view.scar.any()


def test_a_gif_has_the_frames_size_and_duration_asked_for(pair, tmp_path):
    told = []
    path = film(*pair, tmp_path / "new" / "a.gif", fps=30, size=420, tick=told.append)
    image, count = Image.open(path), 13 + 3 + 13
    assert (image.n_frames, image.size[0], sum(told)) == (count, 420, count)
    lasts = []
    for number in range(count):
        image.seek(number)
        lasts.append(image.info["duration"])
    assert abs(sum(lasts) - 1000 * count / 30 - 1500) <= 5
    assert [file.name for file in path.parent.iterdir()] == ["a.gif"]
