"""Gradient of PPO's clipped objective with respect to the logits, in one pass over a minibatch.

Twenty small torch operations and their backward pass cost more than the arithmetic at this size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo_core.jit import inlined, kernel

ENTROPY, KL, CLIPPED = range(3)
"""Means that `policy_gradient` reports."""


@inlined
def _largest_and_log_sum(logits: Any) -> Any:
    """Of (A,) float32 logits the largest, and the log of the sum of `exp(logit - largest)`.

    A logit minus the one minus the other is its log-probability: float64, and no exp overflows.
    """
    largest = logits[0]
    for a in range(1, logits.size):
        largest = max(largest, logits[a])
    total = 0.0
    for a in range(logits.size):
        total += np.exp(np.float64(logits[a]) - largest)
    return largest, np.log(total)


@kernel
def policy_gradient(
    logits: Any, actions: Any, before: Any, advantage: Any, clip: float, bonus: float, gradient: Any
) -> Any:
    """Gradient of `-mean(min(r A, clip(r) A)) - bonus mean(entropy)`.

    With `r = exp(log p - before)` and `p = softmax(logits)`; where the clip holds, the first term
    has no gradient.

    Args:
        logits: (B, A) float32.
        actions: (B,) int64.
        before: (B,) float32 log-probability of the action when it was taken.
        advantage: (B,) float32.
        clip: epsilon.
        bonus: weight of the entropy.
        gradient: (B, A) float32, filled.

    Returns:
        (3,) mean entropy, estimate of KL(before, now), share of clipped steps.
    """
    B, A = logits.shape
    sums = np.zeros(3)
    log_p = np.empty(A)
    for i in range(B):
        largest, log_sum = _largest_and_log_sum(logits[i])
        entropy = 0.0
        for a in range(A):
            log_p[a] = np.float64(logits[i, a]) - largest - log_sum
            entropy -= np.exp(log_p[a]) * log_p[a]
        gap = log_p[actions[i]] - before[i]
        ratio = np.exp(gap)
        gain = np.float64(advantage[i])
        held = (gain > 0.0 and ratio > 1.0 + clip) or (gain < 0.0 and ratio < 1.0 - clip)
        push = 0.0 if held else -gain * ratio
        for a in range(A):
            p = np.exp(log_p[a])
            chosen = 1.0 if a == actions[i] else 0.0
            slope = push * (chosen - p) + bonus * p * (log_p[a] + entropy)
            gradient[i, a] = slope / B
        sums[ENTROPY] += entropy / B
        sums[KL] += (ratio - 1.0 - gap) / B
        sums[CLIPPED] += (1.0 if abs(ratio - 1.0) > clip else 0.0) / B
    return sums


@kernel
def log_probability(logits: Any, actions: Any, out: Any) -> None:
    """Fill `out` with log softmax(logits)[action]; logits (B, A), actions (B,), out (B,)."""
    for i in range(logits.shape[0]):
        largest, log_sum = _largest_and_log_sum(logits[i])
        out[i] = np.float64(logits[i, actions[i]]) - largest - log_sum
