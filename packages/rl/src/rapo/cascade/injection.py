"""Injection: how stimulus and action turn into per-node injection rates `b_v`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from rapo.cascade.graph import Graph
from rapo.cascade.setting import Setting
from rapo_core.checks import UserError

HOPS = 3
"""Reach of `exposure_scores`: within it a cascade is still close to linear in its seeds."""


def injection_rates(graph: Graph, setting: Setting) -> npt.NDArray[np.float32]:
    """`b` in [0, 1], (Z, 3, k): per stimulus, action and seed node of `graph.support`.

    The expected number of seeds a step is the action's rate. The aggressive action leans to
    influential seeds by `exp(influence_tilt * influence)`, the conservative one to low-risk
    seeds by `exp(-risk_tilt * risk)`; the moderate one takes the stimulus as it is. With an
    `injection_cap` below 1 no rate is above it; without one, rates above 1 are refused.
    """
    influence, risk = exposure_scores(graph.adjacency, graph.sensitive)
    lean = np.stack(
        [setting.influence_tilt * influence, np.zeros(graph.n), -setting.risk_tilt * risk]
    )[:, graph.support].transpose(1, 0, 2)
    lean -= lean.max(axis=-1, keepdims=True)  # so that a steep tilt cannot overflow
    leaning = graph.weights[:, None, :] * np.exp(lean)
    leaning /= leaning.sum(axis=-1, keepdims=True)
    rates = np.asarray(setting.rates)[None, :, None] * leaning
    if setting.injection_cap < 1:
        rates = np.minimum(rates, setting.injection_cap)
    if rates.max() > 1:
        z, a, _ = np.unravel_index(rates.argmax(), rates.shape)
        raise UserError(
            f"rates {setting.rates} inject node by node with probability {rates.max():.3g} > 1 "
            f"(stimulus {z + 1}, action {a}); lower the rates or widen the support"
        )
    return np.asarray(rates, np.float32)


def exposure_scores(
    adjacency: sparse.csr_array, sensitive: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """How many activations a node causes within three steps, and how many of them in V_sens.

    In linear response, P being the matrix of p_uv: influence is sum_{k=1..3} P^k 1 and risk is
    1_sens + sum_{k=1..3} P^k 1_sens, each divided by its maximum.

    Args:
        adjacency: (n, n) matrix of p_uv, as `Graph.adjacency`.
        sensitive: (n,) membership of V_sens.

    Returns:
        Influence (n,) and risk (n,), both in [0, 1]; all zero where the maximum is 0.
    """
    P = adjacency.astype(np.float64)
    inside = np.asarray(sensitive, np.float64)
    influence = _carried(P, np.ones(P.shape[0]))
    return _relative(influence), _relative(inside + _carried(P, inside))


def _carried(P: sparse.csr_array, start: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    total = np.zeros_like(start)
    for _ in range(HOPS):
        start = P @ start
        total += start
    return total


def _relative(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    top = values.max(initial=0.0)
    return values / top if top > 0 else np.zeros_like(values)
