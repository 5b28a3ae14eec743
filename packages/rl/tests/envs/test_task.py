"""Observation, reward and report as pure functions."""

import numpy as np
import pytest

from rapo.cascade.setting import Setting
from rapo.cascade.stats import ENTRY_NOMINAL, REACH, SENSITIVE, SERVED, STATS, STAY_NOMINAL
from rapo.envs.task import observable, report_of, reward_of


@pytest.fixture
def stats():
    return np.zeros((len(STATS), 3), np.float32)


def test_reward_is_one_for_the_aggressive_action_under_the_nominal_kernel(stats):
    stats[SERVED] = [0.7, 0.35, 0.0]
    linear = reward_of(stats, np.full(3, 0.7), Setting.default().replace(kappa_s=0))
    assert np.allclose(linear, [1, 0.5, 0])
    reward = reward_of(stats, np.full(3, 0.7), Setting.named("compact"))
    assert np.isclose(reward[0], 1)
    assert 0.9 < reward[1] < 1  # saturates: half the seeds keep most of the reward
    assert reward[2] == 0


def test_engagement_counts_outside_the_sensitive_set_only(stats):
    stats[REACH], stats[SENSITIVE] = [10, 10, 0], [10, 0, 0]
    setting = Setting.default()
    reward = reward_of(stats, np.ones(3), setting)
    expected = setting.outside_weight * (1 - np.exp(-10 / setting.kappa))
    assert np.allclose(reward, [0, expected, 0])


def test_observable_columns(stats):
    stats[REACH] = 5
    clock = np.array([0, 50, 500])
    x = observable(stats, clock, n=250, horizon=500, entrance=np.empty((3, 0), np.float32))
    assert x.shape == (3, 5)
    assert np.allclose(x[:, 0], 0.02)
    assert np.allclose(x[:, 4], [0, 0.1, 1])
    assert x.dtype == np.float32


def test_observable_ends_with_where_the_stimulus_enters(stats):
    entrance = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.5]], np.float32)
    x = observable(stats, np.array([0, 50, 500]), n=250, horizon=500, entrance=entrance)
    assert np.array_equal(x[:, 5:], entrance)


def test_report_marks_undefined_ratios(stats):
    stats[STAY_NOMINAL] = 1
    assert np.isnan(report_of(stats)["odds_ratio"]).all()
    stats[ENTRY_NOMINAL] = 1
    assert (report_of(stats)["odds_ratio"] == 0).all()
