"""Gradient of PPO's clipped objective with respect to the logits, in one pass over a minibatch.

Twenty small torch operations and their backward pass cost more than the arithmetic at this size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo.core.jit import kernel

ENTROPY, KL, CLIPPED = range(3)
"""Means that `policy_gradient` reports."""


@kernel
def policy_gradient(logits: Any, actions: Any, before: Any, advantage: Any, clip: float,
                    bonus: float, gradient: Any) -> Any:  # fmt: skip
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
        highest = logits[i, 0]
        for a in range(1, A):
            highest = max(highest, logits[i, a])
        total = 0.0
        for a in range(A):
            log_p[a] = np.float64(logits[i, a]) - highest
            total += np.exp(log_p[a])
        total = np.log(total)
        entropy = 0.0
        for a in range(A):
            log_p[a] -= total
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
    B, A = logits.shape
    for i in range(B):
        highest = logits[i, 0]
        for a in range(1, A):
            highest = max(highest, logits[i, a])
        total = 0.0
        for a in range(A):
            total += np.exp(np.float64(logits[i, a]) - highest)
        out[i] = np.float64(logits[i, actions[i]]) - highest - np.log(total)
