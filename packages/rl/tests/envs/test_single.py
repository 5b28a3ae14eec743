"""The single environment: the checkers of Gymnasium and Stable-Baselines3, and rendering."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rapo  # noqa: F401 - registers the environment

ID = "rapo/GraphDiffusion-v0"


@pytest.mark.parametrize("observe", ["x", "xGH"])
@pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum) value.*")
def test_gymnasium_checker_passes(observe):
    env = gymnasium.make(
        ID, nodes=50, graph_seed=0, regions="community:4", observe=observe, render_mode="rgb_array"
    )
    check_env(env.unwrapped)


def test_stable_baselines3_checker_passes():
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(gymnasium.make(ID, nodes=50, graph_seed=0).unwrapped)


def test_the_contract_of_the_readme(small_graph):
    env = gymnasium.make(ID, nodes=50, graph_seed=0, regions="community:4", deformation="full")
    x, info = env.reset(seed=0, options={"stimulus": 5, "keep_memory": False})
    assert x.shape == (5,) and info["stimulus"] == 5
    x, reward, terminated, truncated, info = env.step(0)
    assert isinstance(reward, float) and terminated is False and truncated is False
    assert {"harm", "cost", "cost_G", "cost_H", "reach", "sensitive_mass", "odds_ratio"} <= set(
        info
    )
    assert all(isinstance(value, (int, float)) for value in info.values())


def test_an_episode_is_1200_steps_and_reset_is_needed_after():
    env = gymnasium.make(ID, nodes=50, graph_seed=0)
    env.reset(seed=0)
    for t in range(1200):
        *_, truncated, _ = env.step(t % 3)
        assert truncated == (t == 1199)
    with pytest.raises(ValueError, match="reset"):
        env.step(0)


def test_same_seed_same_trajectory_and_resets_draw_new_episodes():
    env = gymnasium.make(ID, nodes=50, graph_seed=0)

    def series(seed):
        env.reset(seed=seed)
        return [env.step(0)[4]["reach"] for _ in range(100)]

    first = series(3)
    assert first == series(3)
    assert first != series(4)
    env.reset(seed=3)
    stimuli = {env.reset()[1]["stimulus"] for _ in range(40)}
    assert len(stimuli) > 10


def test_snapshot_round_trip():
    env = gymnasium.make(ID, nodes=50, graph_seed=0).unwrapped
    env.reset(seed=0)
    for _ in range(80):
        env.step(0)
    state = env.snapshot()
    ahead = [env.step(0)[1] for _ in range(50)]
    env.restore(state)
    assert [env.step(0)[1] for _ in range(50)] == ahead


def test_phases_from_outside(short, small_graph):
    env = gymnasium.make(ID, graph=small_graph, setting=short, schedule="external").unwrapped
    env.reset(seed=0)
    for _ in range(200):
        *_, truncated, info = env.step(0)
    assert info["phase"] == 0 and not truncated
    x = env.begin("decay")
    assert x[4] == 0
    assert env.step(0)[4]["served"] == 0
    x = env.begin("replay", stimulus=2)
    assert x[0] == 0
    assert env.step(0)[4]["stimulus"] == 2


def test_rendering_shows_the_state(small_graph, short):
    env = gymnasium.make(
        ID, graph=small_graph, setting=short, deformation="off", render_mode="rgb_array"
    ).unwrapped
    env.reset(seed=0)
    quiet = env.render()
    assert quiet.shape == (640, 640, 3) and quiet.dtype == np.uint8
    for _ in range(140):
        env.step(0)
    busy = env.render()
    assert (busy != quiet).any(axis=-1).sum() > 500
    orange = (np.abs(busy.astype(int) - [0xE6, 0x9F, 0x00]).max(axis=-1) < 12).sum()
    assert orange > (np.abs(quiet.astype(int) - [0xE6, 0x9F, 0x00]).max(axis=-1) < 12).sum()
    env.close()
    silent = gymnasium.make(ID, graph=small_graph, setting=short).unwrapped
    silent.reset(seed=0)
    assert silent.render() is None


def test_options_of_the_vector_environment_only_are_refused(small_graph):
    with pytest.raises(ValueError, match="no num_envs"):
        gymnasium.make(ID, graph=small_graph, num_envs=2)
