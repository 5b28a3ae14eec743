"""Platforms behind Gymnasium: both checkers, autoreset, ids, pictures."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from toy_platforms import Bins, Feed, Line

from rapo.platforms import PlatformEnv, PlatformVectorEnv, register_platform

SHORT = {"horizons": (20, 10, 15)}
TOTAL = 45


class Painted(Feed):
    def frame(self, episode):
        return np.full((8, 8, 3), self.state["at"][episode, 0] + 1, np.uint8)


@pytest.mark.filterwarnings("ignore:.*Box observation space")
@pytest.mark.parametrize(
    "options",
    [
        {"platform": Feed},
        {"platform": Feed, "observe": "xGH"},
        {"platform": Line, "scars": Bins},
        {"platform": Painted, "render_mode": "rgb_array"},
    ],
)
def test_gymnasiums_checker_is_content(options):
    check_env(PlatformEnv(**options), skip_render_check="render_mode" not in options)


def test_sub_environments_are_single_ones_with_consecutive_seeds():
    env = PlatformVectorEnv(3, platform=Feed, **SHORT)
    xs = [env.reset(seed=7)[0]]
    actions = np.random.default_rng(0).integers(0, 3, (TOTAL, 3))
    rewards = []
    for action in actions:
        x, reward, _, truncated, _ = env.step(action)
        xs.append(x)
        rewards.append(reward)
    assert truncated.all()
    for i in range(3):
        one = PlatformEnv(platform=Feed, **SHORT)
        assert np.array_equal(one.reset(seed=7 + i)[0], xs[0][i])
        for t in range(TOTAL):
            x, reward, *_ = one.step(actions[t, i])
            assert np.array_equal(x, xs[t + 1][i]) and reward == rewards[t][i]


def test_replay_begins_at_rest_and_decay_keeps_the_state():
    env = PlatformVectorEnv(2, platform=Feed, **SHORT)
    start, _ = env.reset(seed=0)
    xs = [env.step(np.array([1, 1]))[0] for _ in range(31)]
    assert np.array_equal(xs[29], start)  # after 20 + 10 steps
    assert (xs[19][:, 0] > 0).all() and (xs[19][:, 2] == 0).all()  # walkers there, clock at 0
    assert env.phase.tolist() == [2, 2]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_autoreset_is_what_is_declared(mode):
    env = PlatformVectorEnv(2, platform=Feed, autoreset_mode=mode, **SHORT)
    assert env.metadata["autoreset_mode"].value == mode
    start, _ = env.reset(seed=0)
    for _ in range(TOTAL):
        x, _, _, truncated, info = env.step(np.array([1, 1]))
    assert truncated.all()
    if mode == "SameStep":
        assert np.array_equal(x, start) and info["final_obs"][0].shape == (3,)
        return
    if mode == "Disabled":
        with pytest.raises(ValueError, match="over or not begun"):
            env.step(np.array([1, 1]))
        return
    x, reward, _, truncated, info = env.step(np.array([1, 1]))
    assert np.array_equal(x, start) and not reward.any() and not truncated.any()
    assert not info["reach"].any() and np.isnan(info["odds_ratio"]).all()
    assert not env.engine.H.any()


def test_a_registered_platform_is_made_by_its_id():
    register_platform("test/ToyFeed-v0", "toy_platforms:Feed", delay=5)
    register_platform("test/ToyFeed-v0", "toy_platforms:Feed", delay=5)  # again: nothing happens
    with pytest.raises(ValueError, match="registered already"):
        register_platform("test/ToyFeed-v0", "toy_platforms:Line")
    one = gymnasium.make("test/ToyFeed-v0", walkers=12)
    assert one.unwrapped.engine.walkers == 12 and one.unwrapped.harm_memory.delay == 5
    assert one.reset(seed=0)[0].shape == (3,)
    many = gymnasium.make_vec(
        "test/ToyFeed-v0", num_envs=4, vectorization_mode="vector_entry_point"
    )
    assert isinstance(many.unwrapped, PlatformVectorEnv)
    assert many.reset(seed=0)[0].shape == (4, 3)


def test_a_platform_is_rendered_if_it_has_a_picture():
    env = PlatformVectorEnv(2, platform=Painted, render_mode="rgb_array")
    env.reset(seed=0)
    env.step(np.array([0, 0]))
    assert [frame.shape for frame in env.render()] == [(8, 8, 3)] * 2
    assert PlatformVectorEnv(1, platform=Feed).metadata["render_modes"] == []
    with pytest.raises(ValueError, match=r"no frame\(\)"):
        PlatformVectorEnv(1, platform=Feed, render_mode="rgb_array")


def test_snapshots_of_the_vector_environment():
    env = PlatformVectorEnv(2, platform=Feed, **SHORT)
    env.reset(seed=0)
    for _ in range(28):
        env.step(np.array([1, 2]))
    state = env.snapshot()
    ahead = [env.step(np.array([1, 2]))[0] for _ in range(10)]
    other = PlatformVectorEnv(2, platform=Feed, **SHORT)
    other.restore(state)
    assert np.array_equal([other.step(np.array([1, 2]))[0] for _ in range(10)], ahead)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"platform": "nowhere"}, "package.module:name"),
        ({"platform": "toy_platforms:Nothing"}, "cannot load the platform"),
        ({"platform": lambda *a, **k: 3}, "must make a BatchPlatform"),
        ({"platform": Feed, "observe": "G"}, "observe must be"),
        ({"platform": Feed, "schedule": "none"}, "schedule must be"),
        ({"platform": Line, "scars": Bins, "observe": "xGH"}, "scar field has none"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        PlatformVectorEnv(1, **options)
