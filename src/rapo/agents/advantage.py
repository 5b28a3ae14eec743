"""Generalised advantage estimation, as a kernel and as a formula to read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.core.jit import kernel

Float = npt.NDArray[np.floating[Any]]


@kernel
def _advantages(rewards: Any, values: Any, nexts: Any, ends: Any, gamma: float, decay: Any,
                out: Any) -> None:  # fmt: skip
    T, N, K = rewards.shape
    for n in range(N):
        for k in range(K):
            carried = 0.0
            for t in range(T - 1, -1, -1):
                delta = rewards[t, n, k] + gamma * nexts[t, n, k] - values[t, n, k]
                carried = delta + (0.0 if ends[t, n] else decay[k] * carried)
                out[t, n, k] = carried


def advantages(
    rewards: Float,
    values: Float,
    nexts: Float,
    ends: npt.NDArray[np.bool_],
    gamma: float,
    decay: npt.ArrayLike,
) -> npt.NDArray[np.float32]:
    """Advantages of K signals: `A_t = delta_t + decay A_{t+1}`, cut where an episode ends.

    `delta_t = r_t + gamma V(x_{t+1}) - V(x_t)`. Seen backwards in time this is an eligibility
    trace: what arrives at t is carried back to step t - j with weight `decay^j`.

    Args:
        rewards: (T, N, K) rewards or costs.
        values: (T, N, K) V(x_t).
        nexts: (T, N, K) V(x_{t+1}) of the same episode: the last observation of a truncated
            episode, 0 after a terminal state.
        ends: (T, N) whether the episode ends with the step.
        gamma: discount.
        decay: (K,) gamma lambda of each signal.
    """
    out = np.empty(rewards.shape, np.float32)
    _advantages(rewards, values, nexts, ends, gamma, np.asarray(decay, np.float64), out)
    return out


def reference_advantages(
    rewards: Float,
    values: Float,
    nexts: Float,
    ends: npt.NDArray[np.bool_],
    gamma: float,
    decay: npt.ArrayLike,
) -> npt.NDArray[np.float64]:
    """The same by the forward sum, in float64; slow and obvious."""
    T, N, K = rewards.shape
    weight = np.asarray(decay, np.float64)
    delta = rewards.astype(np.float64) + gamma * nexts - values
    out = np.zeros((T, N, K))
    for n in range(N):
        for t in range(T):
            for j in range(t, T):
                out[t, n] += weight ** (j - t) * delta[j, n]
                if ends[j, n]:
                    break
    return out
