"""Foreign environments as tasks: costs, whole episodes, flat observations, what is refused."""

from functools import partial

import gymnasium
import numpy as np
import pytest

from rapo.agents.cost_env import GymTask, find_cost, make_env, probe, seeds_from

LADDER = partial(make_env, "foreign_envs:test/Ladder-v0", {})
ODD = partial(make_env, "foreign_envs:test/Odd-v0", {})


def test_a_cost_from_info_is_that_of_the_step_even_of_the_last():
    task = GymTask(LADDER, 2, find_cost("info:toll"))
    x, info = task.reset(seed=0)
    assert x.shape == (2, 10) and info == {}
    costs = []
    for _ in range(12):
        *_, info = task.step(np.array([1, 0]))
        costs.append(info["cost"])
    rungs = np.r_[np.arange(10), 0, 1]
    assert np.allclose(costs, np.stack([rungs / 4.5, 0 * rungs], axis=1))


def test_a_cost_function_sees_what_the_action_was_taken_at():
    calls = []

    def cost(observation, action, info):
        calls.append((observation, int(action), info["toll"]))
        return 2.0 * observation + action

    task = GymTask(LADDER, 1, cost)
    task.reset(seed=0)
    found = [task.step(np.array([t % 2]))[-1]["cost"][0] for t in range(11)]
    rungs = [*range(10), 0]
    assert found == [2 * rung + t % 2 for t, rung in enumerate(rungs)]
    assert [call[:2] for call in calls] == [(rung, t % 2) for t, rung in enumerate(rungs)]
    assert calls[3][2] == pytest.approx(3 / 4.5)


def test_episodes_are_summed_undiscounted_and_told_once():
    task = GymTask(LADDER, 2, find_cost("info:toll"))
    task.reset(seed=0)
    for _ in range(15):
        task.step(np.array([1, 0]))
    assert np.allclose(task.ended(), [[10, 10, 10], [0, 0, 10]])
    assert task.ended().shape == (0, 3)
    for _ in range(5):
        task.step(np.array([0, 0]))
    assert np.allclose(task.ended(), [[5, 10 / 4.5, 10], [0, 0, 10]])


def test_parts_are_made_flat_actions_begin_anywhere_and_cut_ends_are_shown():
    task = GymTask(ODD, 2, find_cost("info:spent"))
    assert task.single_observation_space.shape == (5,)
    assert task.single_action_space == gymnasium.spaces.Discrete(3)
    x, _ = task.reset(seed=0)
    assert np.array_equal(x, [[0, 0, 1, 0, 0]] * 2)
    for _ in range(3):
        x, _, terminated, truncated, info = task.step(np.array([0, 2]))
    assert np.array_equal(info["cost"], [5, 7])
    assert truncated.all() and not terminated.any()
    assert np.allclose(np.stack(info["final_obs"]), [[0.75, 0.75, 1, 0, 0]] * 2)


def test_copies_follow_the_seed_and_differ():
    task = GymTask(partial(make_env, "CartPole-v1", {}), 3)
    one, two, three = (task.reset(seed=s)[0] for s in (2**40, 2**40, 2**40 + 1))
    assert np.array_equal(one, two) and len(np.unique(one[:, 0])) == 3
    assert np.array_equal(three[:2], one[1:]) and not np.array_equal(three, one)


@pytest.mark.parametrize(
    ("cost", "named"),
    [
        (find_cost("info:fuel"), ["fuel", "toll", "rung"]),
        (lambda observation, action, info: np.nan, ["finite", "nan"]),
        (lambda observation, action, info: np.inf, ["finite", "inf"]),
        (lambda observation, action, info: None, ["TypeError"]),
        (lambda observation, action, info: info["no"], ["KeyError"]),
        (lambda observation, action: 1.0, ["TypeError"]),
    ],
)
def test_a_cost_that_is_none_is_found_before_training(cost, named):
    with pytest.raises(ValueError, match=named[0]) as caught:
        probe(LADDER, cost)
    assert all(word in str(caught.value) for word in named)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("CartPol-v1", {}, "CartPole"),
        ("no_such_package:CartPole-v1", {}, "no_such_package"),
        ("CartPole-v1", {"length_of_rope": 2}, "length_of_rope"),
    ],
)
def test_an_environment_that_cannot_be_made_is_named(name, options, named):
    with pytest.raises(ValueError, match=named) as caught:
        make_env(name, options)
    assert "\n" not in str(caught.value)


def test_continuous_actions_are_refused():
    with pytest.raises(ValueError, match=r"discrete.*Pendulum-v1.*Box"):
        probe(partial(make_env, "Pendulum-v1", {}), None)


@pytest.mark.parametrize("words", ["toll", ":x", "no_such_module:f", "math:no_such", "math:pi"])
def test_words_that_name_no_cost(words):
    with pytest.raises(ValueError, match="cost"):
        find_cost(words)


def test_a_package_is_imported_and_its_functions_found(tmp_path, monkeypatch):
    (tmp_path / "my_platform.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv\n"
        "gymnasium.register('Lake-v7', FrozenLakeEnv, max_episode_steps=9)\n"
        "def cost(observation, action, info):\n    return info['prob']\n"
    )
    monkeypatch.chdir(tmp_path)
    task = GymTask(
        partial(make_env, "my_platform:Lake-v7", {"is_slippery": False}), 1,
        find_cost("my_platform:cost"),
    )  # fmt: skip
    task.reset(seed=0)
    assert task.step(np.array([0]))[-1]["cost"] == [1.0]


def test_copies_begin_with_seeds_in_a_row_that_every_environment_takes(monkeypatch):
    seen, reset = [], gymnasium.vector.SyncVectorEnv.reset

    def watched(self, *, seed=None, options=None):
        seen.append(seed)
        return reset(self, seed=seed, options=options)

    monkeypatch.setattr(gymnasium.vector.SyncVectorEnv, "reset", watched)
    task = GymTask(LADDER, 3)
    for seed in (7, 2**29 - 1, 2**40 + 5):
        task.reset(seed=seed)
    first = 2**30
    assert seen == [
        [first + 7, first + 8, first + 9],
        [first + 2**29 - 1, first, first + 1],
        [first + 5, first + 6, first + 7],
    ]


@pytest.mark.parametrize("seed", [0, 2**29 - 2, 2**29, 2**30 - 1, 2**40 + 3])
def test_no_training_meets_an_episode_that_is_held_out(seed):
    training, kept = set(seeds_from(seed, 8)), set(seeds_from(0, 1000, held_out=True))
    assert len(training) == 8 and not training & kept
    assert min(training) >= 2**30 and max(seeds_from(seed, 8, held_out=True)) < 2**31
