"""Generalised advantage estimation, as a kernel and as a formula to read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rapo_core.jit import kernel

Float = npt.NDArray[np.floating[Any]]
Bool = npt.NDArray[np.bool_]


@kernel
def _advantages(
    rewards: Any,
    values: Any,
    nexts: Any,
    terminated: Any,
    truncated: Any,
    gamma: Any,
    decay: Any,
    lag: Any,
    out: Any,
    known: Any,
) -> None:
    T, N, K = rewards.shape
    for n in range(N):
        for k in range(K):
            carried = 0.0
            last = T - 1  # of the episode that step t belongs to, as far as it is known
            over = False  # whether nothing comes after `last`
            for t in range(T - 1, -1, -1):
                end = terminated[t, n] or truncated[t, n]
                if end:
                    last, over = t, terminated[t, n]
                arrival = t + lag[k]
                known[t, n, k] = arrival <= last or over
                if not known[t, n, k]:
                    carried = 0.0
                    out[t, n, k] = carried
                    continue
                reward = rewards[arrival, n, k] if arrival <= last else 0.0
                delta = reward + gamma[k] * nexts[t, n, k] - values[t, n, k]
                carried = delta + (0.0 if end else decay[k] * carried)
                out[t, n, k] = carried


def advantages(
    rewards: Float,
    values: Float,
    nexts: Float,
    terminated: Bool,
    truncated: Bool,
    gamma: npt.ArrayLike,
    decay: npt.ArrayLike,
    lag: npt.ArrayLike = 0,
) -> tuple[npt.NDArray[np.float32], Bool]:
    """Advantages of K signals: `A_t = delta_t + decay A_{t+1}`, cut where an episode ends.

    `delta_t = r_{t+lag} + gamma V(x_{t+1}) - V(x_t)`, where V predicts the discounted sum of
    `r_{t+lag}, r_{t+lag+1}, ...`: what the action at t can still change. Seen backwards in time
    this is an eligibility trace: what arrives at t is carried back to step t - lag - j with weight
    `decay^j`. What would arrive after a terminal state is 0. What would arrive after a truncated
    end, or after step T, is not known: such a step has no advantage, and the trace begins at the
    last one before that has.

    Args:
        rewards: (T, N, K) rewards or costs as they arrive.
        values: (T, N, K) V(x_t).
        nexts: (T, N, K) V(x_{t+1}) of the same episode: the last observation of a truncated
            episode, 0 after a terminal state.
        terminated: (T, N) whether the step leads to a terminal state.
        truncated: (T, N) whether the episode is cut off after the step.
        gamma: (K,) discount of each signal, or one for all.
        decay: (K,) gamma lambda of each signal.
        lag: (K,) steps between an action and the first of the signal that it can cause, >= 0.

    Returns:
        (T, N, K) advantages, 0 where not known; (T, N, K) whether they are known.
    """
    lags = np.broadcast_to(np.asarray(lag, np.int64), rewards.shape[2:])
    discounts = np.broadcast_to(np.asarray(gamma, np.float64), rewards.shape[2:])
    out, known = np.empty(rewards.shape, np.float32), np.empty(rewards.shape, np.bool_)
    _advantages(
        rewards,
        values,
        nexts,
        terminated,
        truncated,
        np.ascontiguousarray(discounts),
        np.asarray(decay, np.float64),
        np.ascontiguousarray(lags),
        out,
        known,
    )
    return out, known
