"""The recurrent part of a GRU and its way back, one call for a whole sequence.

A step of a few short sequences is thirty small torch operations whose overhead is five times the
arithmetic. Only what hangs on the step before is here; the products over all steps stay in torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rapo_core.jit import inlined, kernel

ONE, TWO = np.float32(1), np.float32(2)


@inlined
def add_product(a: Any, b: Any, out: Any) -> None:
    """Add `a @ b` to `out`: (S, m), (m, n), (S, n). Faster than BLAS while S is small."""
    for k in range(b.shape[0]):
        row = b[k]
        for s in range(a.shape[0]):
            factor = a[s, k]
            into = out[s]
            for j in range(row.size):
                into[j] += factor * row[j]


@inlined
def sigmoid(x: Any) -> Any:
    """Of a float32, as a float32."""
    return ONE / (ONE + np.exp(-x))


@kernel
def run_forward(
    from_x: Any, w_h: Any, b_h: Any, h: Any, keep: Any, states: Any, befores: Any, gates: Any
) -> None:
    """Fill states, befores and gates; all float32 and contiguous.

    Args:
        from_x: (T, S, 3 hidden) what the inputs give to reset, update and new.
        w_h: (hidden, 3 hidden) weights of the state.
        b_h: (3 hidden,) their biases.
        h: (S, hidden) states before the first step.
        keep: (T, S) 0 where the state is forgotten before the step, else 1.
        states: (T, S, hidden) after each step.
        befores: (T, S, hidden) before each step, where forgotten 0.
        gates: (T, S, 4 hidden) reset, update, new, and what the state gives to new.
    """
    T, S, n = states.shape
    from_h = np.empty((S, 3 * n), np.float32)
    for t in range(T):
        last = h if t == 0 else states[t - 1]
        for s in range(S):
            for j in range(n):
                befores[t, s, j] = last[s, j] * keep[t, s]
            from_h[s] = b_h
        add_product(befores[t], w_h, from_h)
        for s in range(S):
            for j in range(n):
                reset = sigmoid(from_x[t, s, j] + from_h[s, j])
                update = sigmoid(from_x[t, s, n + j] + from_h[s, n + j])
                gave = from_h[s, 2 * n + j]
                # tanh by its exponential, which is half the time of tanh itself
                new = TWO * sigmoid(TWO * (from_x[t, s, 2 * n + j] + reset * gave)) - ONE
                states[t, s, j] = new + update * (befores[t, s, j] - new)
                gates[t, s, j] = reset
                gates[t, s, n + j] = update
                gates[t, s, 2 * n + j] = new
                gates[t, s, 3 * n + j] = gave


@kernel
def run_backward(
    arriving: Any, back: Any, keep: Any, befores: Any, gates: Any, to_x: Any, to_h: Any
) -> None:
    """Fill to_x and to_h, (T, S, 3 hidden): slopes of the loss at both linear maps of each step.

    Args:
        arriving: (T, S, hidden) slopes at the states from outside; overwritten.
        back: (3 hidden, hidden) weights of the state, transposed.
        keep: as in `run_forward`.
        befores: as there.
        gates: as there.
        to_x: at what the inputs give.
        to_h: at what the state gives.
    """
    T, S, n = befores.shape
    for t in range(T - 1, -1, -1):
        for s in range(S):
            for j in range(n):
                reset, update = gates[t, s, j], gates[t, s, n + j]
                new, gave = gates[t, s, 2 * n + j], gates[t, s, 3 * n + j]
                d = arriving[t, s, j]
                d_new = d * (ONE - update) * (ONE - new * new)
                d_update = d * (befores[t, s, j] - new) * update * (ONE - update)
                d_reset = d_new * gave * reset * (ONE - reset)
                to_x[t, s, j] = to_h[t, s, j] = d_reset
                to_x[t, s, n + j] = to_h[t, s, n + j] = d_update
                to_x[t, s, 2 * n + j] = d_new
                to_h[t, s, 2 * n + j] = d_new * reset
                arriving[t, s, j] = d * update
        if t == 0:
            break
        add_product(to_h[t], back, arriving[t])  # now what the state before is carried
        for s in range(S):
            for j in range(n):
                arriving[t - 1, s, j] += arriving[t, s, j] * keep[t, s]
