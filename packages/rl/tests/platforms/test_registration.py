"""What must hold on each of the four domains, with every kind of policy that sees x alone."""

from functools import cache

import gymnasium
import numpy as np
import pytest

from rapo.platforms import PlatformVectorEnv
from rapo.platforms.registration import PLATFORMS
from rapo.rsd import evaluate

HORIZONS = (90, 20, 90)
OPTIONS = {
    "rapo/Feed-v0": {"data": "stand-in", "seed": 1000},
    "rapo/Routing-v0": {"data": "stand-in", "seed": 1001},
    "rapo/Warehouse-v0": {"data": "stand-in", "seed": 1001},
    "rapo/Twin-v0": {"seed": 1000},
}


class Stochastic:
    """A law over the actions that depends on all of x; the last ones are likelier."""

    def __init__(self, actions):
        self.actions = actions

    def law(self, x):
        weights = np.exp(np.arange(self.actions) * (1 + np.tanh(x.sum())))
        return weights / weights.sum()

    def __call__(self, x):
        raise AssertionError("the law is asked")


class Recurrent:
    """Acts on a running sum of what it has seen since its reset."""

    def __init__(self, actions):
        self.actions = actions

    def reset(self):
        self.sum = 0.0

    def __call__(self, x):
        self.sum += float(x.sum())
        return int(50 * self.sum) % self.actions


class Batched:
    """All episodes at once."""

    batched = True

    def __init__(self, actions):
        self.actions = actions

    def __call__(self, x):
        return (100 * np.abs(x.sum(axis=1))).astype(int) % self.actions


@cache
def saved(name):
    """An agent of Stable-Baselines3 that has learned nothing: it acts by chance, on all of x."""
    sb3 = pytest.importorskip("stable_baselines3")
    return sb3.PPO("MlpPolicy", gymnasium.make(name, **OPTIONS[name]), seed=0, device="cpu")


POLICIES = {
    "stochastic": lambda name, actions: Stochastic(actions),
    "recurrent": lambda name, actions: Recurrent(actions),
    "batched": lambda name, actions: Batched(actions),
    "sb3": lambda name, actions: saved(name),
}


def run(name, kind, how=None, **options):
    env = PlatformVectorEnv(
        1, platform=PLATFORMS[name].made_by, **{**OPTIONS[name], "delay": 5, **options}
    )
    policy = POLICIES[kind](name, int(env.single_action_space.n))
    return evaluate(env, policy, 3, 7, True, horizons=HORIZONS, **(how or {}))


def of(found, phase):
    return [found.of_phase(n, phase) for n in ("reach", "sensitive_mass", "reward")]


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", PLATFORMS)
def test_replays_bit_for_bit_and_is_restored_exactly(name, kind):
    nominal = run(name, kind, deformation="off")
    for before, after in zip(of(nominal, 0), of(nominal, 2), strict=True):
        assert np.array_equal(before, after) and np.ptp(before) > 0
    off = run(name, kind, {"off_at_replay": True})
    for mine, theirs in zip(of(off, 2), of(nominal, 2), strict=True):
        assert np.array_equal(mine, theirs)
    assert not all(
        np.array_equal(a, b) for a, b in zip(of(off, 0), of(nominal, 0), strict=True)
    )  # there was a memory to switch off


@pytest.mark.parametrize("name", PLATFORMS)
def test_other_draws_are_another_run(name):
    env = PlatformVectorEnv(1, platform=PLATFORMS[name].made_by, deformation="off", **OPTIONS[name])
    actions = int(env.single_action_space.n)
    found = evaluate(env, Batched(actions), 3, 7, False, horizons=HORIZONS)
    assert not np.array_equal(found.of_phase("reward", 0), found.of_phase("reward", 2))


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_policy_of_another_action_space_is_refused(name):
    env = PlatformVectorEnv(1, platform=PLATFORMS[name].made_by, **OPTIONS[name])
    for action in (int(env.single_action_space.n), -1, 0.5):
        with pytest.raises(ValueError, match=str(action)):
            evaluate(env, lambda x, a=action: a, 1, horizons=(2, 1, 2))


@pytest.mark.parametrize("name", PLATFORMS)
def test_settings_say_what_they_take(name):
    for setting, words in (
        ({"delay": 0}, "delay"),
        ({"delay": 2.5}, "whole"),
        ({"delay": True}, "whole"),
        ({"saturation": 0}, "saturation"),
        ({"saturation": 1.5}, r"\(0, 1\]"),
        ({"saturation": float("nan")}, "nan"),
        ({"stimuli": "many"}, "many"),
        ({"nothing": 1}, "nothing"),
        (5, "5"),
    ):
        with pytest.raises(ValueError, match=words):
            PlatformVectorEnv(1, platform=PLATFORMS[name].made_by, **OPTIONS[name], setting=setting)
