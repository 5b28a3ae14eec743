"""Advantages: the kernel, the forward sum, and the eligibility trace that they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rapo.agents.advantage import advantages, reference_advantages


def case(seed, T, N, K, end_rate):
    rng = np.random.default_rng(seed)
    rewards, values, nexts = rng.normal(0, 1, (3, T, N, K)).astype(np.float32)
    return rewards, values, nexts, rng.random((T, N)) < end_rate, rng.uniform(0, 1, K)


shapes = {
    "seed": st.integers(0, 2**32),
    "T": st.integers(1, 30),
    "N": st.integers(1, 4),
    "K": st.integers(1, 3),
    "end_rate": st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    "gamma": st.sampled_from([0.1, 0.9, 0.99]),
}


@settings(max_examples=50, deadline=None)
@given(**shapes)
def test_kernel_equals_the_forward_sum(seed, T, N, K, end_rate, gamma):
    rewards, values, nexts, ends, decay = case(seed, T, N, K, end_rate)
    found = advantages(rewards, values, nexts, ends, gamma, decay)
    expected = reference_advantages(rewards, values, nexts, ends, gamma, decay)
    assert found.dtype == np.float32 and found.shape == (T, N, K)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(**shapes)
def test_the_backward_view_is_an_eligibility_trace(seed, T, N, K, end_rate, gamma):
    """sum_t g_t A_t = sum_t delta_t e_t, with e_t = decay e_{t-1} + g_t begun anew per episode."""
    rewards, values, nexts, ends, decay = case(seed, T, N, K, end_rate)
    g = np.random.default_rng(seed + 1).normal(0, 1, (T, N))  # gradients of log-probabilities
    found = advantages(rewards, values, nexts, ends, gamma, decay)
    for n in range(N):
        for k in range(K):
            trace = total = 0.0
            for t in range(T):
                trace = decay[k] * trace + g[t, n]
                delta = rewards[t, n, k] + gamma * nexts[t, n, k] - values[t, n, k]
                total += float(delta) * trace
                if ends[t, n]:
                    trace = 0.0
            assert np.dot(g[:, n], found[:, n, k]) == pytest.approx(total, rel=1e-4, abs=1e-3)


def test_a_late_cost_is_carried_back_by_powers_of_the_decay_up_to_the_episodes_start():
    rewards = np.zeros((8, 1, 2), np.float32)
    rewards[6] = 1
    nothing = np.zeros_like(rewards)
    ends = np.zeros((8, 1), bool)
    ends[2] = True
    found = advantages(rewards, nothing, nothing, ends, 0.99, [0.5, 0.9])
    assert np.allclose(found[3:, 0, 0], [0.125, 0.25, 0.5, 1, 0])
    assert np.allclose(found[3:, 0, 1], [0.9**3, 0.9**2, 0.9, 1, 0])
    assert not found[:3].any()  # another episode


def test_with_exact_values_and_full_decay_the_advantage_is_return_minus_value():
    rng = np.random.default_rng(0)
    rewards = rng.normal(0, 1, (20, 3, 1)).astype(np.float32)
    values = rng.normal(0, 1, (21, 3, 1)).astype(np.float32)
    ends = np.zeros((20, 3), bool)
    found = advantages(rewards, values[:-1], values[1:], ends, 0.9, [0.9])
    discounts = 0.9 ** np.arange(20)
    returns = (discounts[:, None] * rewards[:, :, 0]).sum(0) + 0.9**20 * values[20, :, 0]
    assert np.allclose(found[0, :, 0], returns - values[0, :, 0], atol=1e-5)
