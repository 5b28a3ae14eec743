"""Films: what is recorded is what the engine did, and the file holds what was drawn."""

import numpy as np
import pytest
from PIL import Image

from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.policies import ConstantPolicy
from rapo.show.film import film, record
from rapo.show.film.scene import CURVES, GRAPH, HEAD, NAME, WIDTH, Scene

SPANS, EVERY = (120, 30, 120), 9
FIRST, LAST = 120 // EVERY, 120 // EVERY + 30 // EVERY
"""Frames of Exposure, and the number of Replay's first."""
HOW = {"horizons": SPANS, "every": EVERY, "seed": 3}
SIZE = WIDTH // 2


@pytest.fixture(scope="module")
def env():
    return GraphDiffusionVectorEnv(1, nodes=100, graph_seed=1000)


@pytest.fixture(scope="module")
def pair(env):
    policy = ConstantPolicy(0)
    return record(env, policy, deformed=False, **HOW), record(env, policy, **HOW)


@pytest.fixture(scope="module")
def frames(pair):
    scene = Scene(*pair, SIZE)
    return np.stack([scene.frame(number) for number in range(len(scene))])


def halves(frames):
    """Both maps of frames (F, H, W, 3), without headings and curves."""
    top, bottom = (round(pixels * SIZE / WIDTH) for pixels in (HEAD + NAME, HEAD + NAME + GRAPH))
    maps = frames[:, top:bottom]
    return maps[:, :, : SIZE // 2], maps[:, :, SIZE // 2 :]


def alike(left, right):
    """Equal but for the rounding of edges, which lie elsewhere in the picture."""
    assert np.abs(left.astype(int) - right).max() <= 2


def test_P0_is_drawn_in_replay_as_in_exposure_bit_for_bit(pair, frames):
    bits = pair[0].view.bits
    np.testing.assert_array_equal(bits[: SPANS[0]], bits[-SPANS[2] :])
    assert bits.any()
    left, right = halves(frames)
    np.testing.assert_array_equal(left[:FIRST], left[LAST:])
    assert (right[:FIRST] != right[LAST:]).any()


def test_the_halves_differ_by_the_deformation_alone(env, pair, frames):
    left, right = halves(frames)
    unharmed = env.setting.delay // EVERY  # frames before the first harm arrives
    assert unharmed >= 3 and pair[0].view.active(1, unharmed * EVERY).any()
    alike(left[:unharmed], right[:unharmed])
    assert (left[-1] != right[-1]).any()
    scene = Scene(pair[0], pair[0], SIZE)
    left, right = halves(np.stack([scene.frame(number) for number in range(len(scene))]))
    alike(left, right)


def test_scars_grow_and_tint_the_ground(pair, frames):
    scar = np.stack([pair[1].fields.closed(step) for step in range(1, sum(SPANS) + 1)])
    assert (np.diff(scar, axis=0) >= 0).all() and 0 < scar.max() <= 1
    _, right = halves(frames.astype(int))
    redder = (right[..., 0] - right[..., 2] > 60).sum(axis=(1, 2))
    assert redder[LAST - 1] > redder[0] + 500  # the end of washout, when hardly a node is lit


def test_a_gif_has_the_frames_size_and_duration_asked_for(pair, frames, tmp_path):
    shares = []
    path = film(
        *pair, tmp_path / "new" / "a.gif", fps=30, size=SIZE,
        on_progress=lambda done, total: shares.append(done / total),
    )  # fmt: skip
    image, count = Image.open(path), len(frames)
    assert image.n_frames == count
    assert shares == [(1 + number) / count for number in range(count)]
    assert image.size == (SIZE, frames.shape[1]) and image.info["loop"] == 0
    assert abs(frames.shape[1] - SIZE * (HEAD + NAME + GRAPH + CURVES) / WIDTH) <= 1  # even
    lasts = []
    for number in range(count):
        image.seek(number)
        lasts.append(image.info["duration"])
        error = np.abs(np.asarray(image.convert("RGB")).astype(int) - frames[number])
        assert error.mean() < 0.5, number
        assert not error[(frames[number] == 255).all(axis=2)].any()  # paper stays paper
    assert abs(sum(lasts) - 1000 * count / 30 - 1500) <= 5
    assert [file.name for file in path.parent.iterdir()] == ["a.gif"]


def test_the_same_recordings_give_the_same_gif(env, pair, tmp_path):
    again = [record(env, ConstantPolicy(0), deformed=deformed, **HOW) for deformed in (False, True)]
    one = film(*pair, tmp_path / "a.gif", size=320).read_bytes()
    assert film(*again, tmp_path / "b.gif", size=320).read_bytes() == one


def test_an_mp4_has_the_frames_too(pair, frames, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")

    def decoded(path):
        reader = ffmpeg.read_frames(str(path))
        about = next(reader)
        width, height = about["size"]
        shape = (height, width, 3)
        return about, np.stack([np.frombuffer(raw, np.uint8).reshape(shape) for raw in reader])

    about, seen = decoded(film(*pair, tmp_path / "a.mp4", fps=10, size=SIZE))
    assert (about["fps"], about["size"]) == (10, (SIZE, frames.shape[1]))
    assert len(seen) == len(frames) + 15  # the last stays
    assert np.abs(seen[: len(frames)].astype(int) - frames).mean() < 6
    _, again = decoded(film(*pair, tmp_path / "b.mp4", fps=10, size=SIZE))
    np.testing.assert_array_equal(seen, again)


def test_what_fails_half_way_leaves_what_was_there(pair, tmp_path):
    path = tmp_path / "a.gif"
    path.write_bytes(b"mine")

    def break_off(done, total):
        raise RuntimeError("lost")

    with pytest.raises(FileExistsError, match="exists"):
        film(*pair, path)
    with pytest.raises(RuntimeError, match="lost"):
        film(*pair, path, force=True, size=320, on_progress=break_off)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gif"]
    assert path.read_bytes() == b"mine"


def test_recordings_that_do_not_match_are_refused(env, pair):
    other = record(env, ConstantPolicy(0), **{**HOW, "every": 10})
    with pytest.raises(ValueError, match="share phases and frames"):
        Scene(pair[0], other)
