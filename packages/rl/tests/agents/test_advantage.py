"""Advantages: the kernel, the forward sum, and the eligibility trace that they are."""

import numpy as np
import pytest
from forward_sum import reference_advantages
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo.agents.advantage import advantages


def case(seed, T, N, K, end_rate):
    """Rewards, values, nexts, terminated, truncated, decay and lags; some steps end in both."""
    rng = np.random.default_rng(seed)
    rewards, values, nexts = rng.normal(0, 1, (3, T, N, K)).astype(np.float32)
    terminated, truncated = rng.random((2, T, N)) < end_rate
    lag = rng.integers(0, rng.choice([1, 4, T + 3]), K)
    return rewards, values, nexts, terminated, truncated, rng.uniform(0, 1, K), lag


shapes = {
    "seed": st.integers(0, 2**32),
    "T": st.integers(1, 30),
    "N": st.integers(1, 4),
    "K": st.integers(1, 3),
    "end_rate": st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    "gamma": st.sampled_from([0.1, 0.9, 0.99]),
}


@settings(max_examples=150, deadline=None)
@given(**shapes)
def test_kernel_equals_the_forward_sum(seed, T, N, K, end_rate, gamma):
    *given, decay, lag = case(seed, T, N, K, end_rate)
    gamma = gamma * np.linspace(1, 0.8, K)  # each signal has its own
    found, known = advantages(*given, gamma, decay, lag)
    expected, known_expected = reference_advantages(*given, gamma, decay, lag)
    assert found.dtype == np.float32 and found.shape == (T, N, K)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.array_equal(known, known_expected)
    assert not found[~known].any()


@settings(max_examples=50, deadline=None)
@given(**shapes)
def test_the_backward_view_is_an_eligibility_trace(seed, T, N, K, end_rate, gamma):
    """sum_t g_t A_t = sum_t delta_t e_t, with e_t = decay e_{t-1} + g_t begun anew per episode."""
    rewards, values, nexts, terminated, truncated, decay, _ = case(seed, T, N, K, end_rate)
    g = np.random.default_rng(seed + 1).normal(0, 1, (T, N))  # gradients of log-probabilities
    found, known = advantages(rewards, values, nexts, terminated, truncated, gamma, decay)
    assert known.all()
    for n in range(N):
        for k in range(K):
            trace = total = 0.0
            for t in range(T):
                trace = decay[k] * trace + g[t, n]
                delta = rewards[t, n, k] + gamma * nexts[t, n, k] - values[t, n, k]
                total += float(delta) * trace
                if terminated[t, n] or truncated[t, n]:
                    trace = 0.0
            assert np.dot(g[:, n], found[:, n, k]) == pytest.approx(total, rel=1e-4, abs=1e-3)


def arriving(t, T=12, K=1):
    """Nothing but 1 at step t; no values, no ends."""
    rewards = np.zeros((T, 1, K), np.float32)
    rewards[t] = 1
    return rewards, *np.zeros((2, T, 1, K), np.float32), *np.zeros((2, T, 1), bool)


def test_a_late_cost_is_carried_back_by_powers_of_the_decay_up_to_the_episodes_start():
    case = arriving(6, 8, 2)
    case[4][2] = True
    found, _ = advantages(*case, 0.99, [0.5, 0.9])
    assert np.allclose(found[3:, 0, 0], [0.125, 0.25, 0.5, 1, 0])
    assert np.allclose(found[3:, 0, 1], [0.9**3, 0.9**2, 0.9, 1, 0])
    assert not found[:3].any()  # another episode


def test_credit_begins_with_the_latest_action_that_can_be_a_cause():
    found, known = advantages(*arriving(8), 0.99, [0.5], [3])
    assert np.allclose(found[:, 0, 0], [*0.5 ** np.arange(5, -1, -1), 0, 0, 0, 0, 0, 0])
    assert known[:, 0, 0].tolist() == 9 * [True] + 3 * [False]  # the last three are to wait


@pytest.mark.parametrize("terminates", [True, False])
def test_costs_beyond_the_end_are_none_or_not_known(terminates):
    """An episode ends with step 5; the cost at 8 belongs to the next one and its own causes."""
    case = arriving(8)
    case[3 if terminates else 4][5] = True
    values = case[1]
    values[:6] = 1
    found, known = advantages(*case, 1.0, [0.0], [3])
    assert known[:, 0, 0].tolist() == 3 * [True] + 3 * [terminates] + 3 * [True] + 3 * [False]
    assert found[:6, 0, 0].tolist() == 3 * [-1] + 3 * [-1 if terminates else 0]
    assert found[6:, 0, 0].tolist() == 6 * [0]


def test_the_trace_begins_where_a_cost_did_arrive_with_the_value_that_comes_next():
    """Truncated after step 5, lag 3: step 2 is the last that is told, and V(x_3) says the rest."""
    case = arriving(5)
    case[4][5] = True
    case[2][2] = 10  # V(x_3)
    case[2][3:6] = 100  # values of steps that nothing is known of
    found, _ = advantages(*case, 0.5, [0.5], [3])
    assert found[:6, 0, 0].tolist() == [0.25 * 6, 0.5 * 6, 6, 0, 0, 0]


def test_with_exact_values_and_full_decay_the_advantage_is_return_minus_value():
    rng = np.random.default_rng(0)
    rewards = rng.normal(0, 1, (20, 3, 1)).astype(np.float32)
    values = rng.normal(0, 1, (21, 3, 1)).astype(np.float32)
    ends = np.zeros((20, 3), bool)
    found, _ = advantages(rewards, values[:-1], values[1:], ends, ends, 0.9, [0.9])
    discounts = 0.9 ** np.arange(20)
    returns = (discounts[:, None] * rewards[:, :, 0]).sum(0) + 0.9**20 * values[20, :, 0]
    assert np.allclose(found[0, :, 0], returns - values[0, :, 0], atol=1e-5)
