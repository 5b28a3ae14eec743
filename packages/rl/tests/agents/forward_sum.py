"""Advantages by the forward sum, in float64: slow and obvious."""

import numpy as np


def reference_advantages(rewards, values, nexts, terminated, truncated, gamma, decay, lag=0):
    """What `rapo.agents.advantage.advantages` must give: (T, N, K) advantages and what is known."""
    T, N, K = rewards.shape
    weights = np.asarray(decay, np.float64)
    lags = np.broadcast_to(np.asarray(lag, np.int64), (K,))
    discounts = np.broadcast_to(np.asarray(gamma, np.float64), (K,))
    ends = terminated | truncated
    out, known = np.zeros((T, N, K)), np.zeros((T, N, K), np.bool_)
    for n in range(N):
        for k in range(K):
            arrived = np.full(T, np.nan)  # what step t is answerable for
            for t in range(T):
                later = [j for j in range(t, T) if ends[j, n]]
                if t + lags[k] <= (later[0] if later else T - 1):
                    arrived[t] = rewards[t + lags[k], n, k]
                elif later and terminated[later[0], n]:
                    arrived[t] = 0
            known[:, n, k] = ~np.isnan(arrived)
            for t in range(T):
                for j in range(t, T):
                    if not known[j, n, k]:
                        break
                    delta = arrived[j] - float(values[j, n, k])
                    delta += discounts[k] * float(nexts[j, n, k])
                    out[t, n, k] += weights[k] ** (j - t) * delta
                    if ends[j, n]:
                        break
    return out, known
