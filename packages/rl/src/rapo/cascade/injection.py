"""Injection: how stimulus and action turn into per-node injection rates `b_v`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.landmarks import exposure_scores
from rapo.cascade.setting import Setting


def injection_rates(graph: Graph, setting: Setting) -> npt.NDArray[np.float32]:
    """`b` in [0, 1], (Z, 3, k): per stimulus, action and seed node of `graph.support`.

    The expected number of seeds a step is the action's rate. The aggressive action leans to
    influential seeds by `exp(influence_tilt * influence)`, the conservative one to low-risk
    seeds by `exp(-risk_tilt * risk)`; the moderate one takes the stimulus as it is.
    """
    influence, risk = exposure_scores(graph.adjacency, graph.sensitive)
    lean = np.stack(
        [setting.influence_tilt * influence, np.zeros(graph.n), -setting.risk_tilt * risk]
    )[:, graph.support].transpose(1, 0, 2)
    lean -= lean.max(axis=-1, keepdims=True)  # so that a steep tilt cannot overflow
    leaning = graph.weights[:, None, :] * np.exp(lean)
    leaning /= leaning.sum(axis=-1, keepdims=True)
    rates = np.asarray(setting.rates)[None, :, None] * leaning
    if rates.max() > 1:
        z, a, _ = np.unravel_index(rates.argmax(), rates.shape)
        raise ValueError(
            f"rates {setting.rates} inject node by node with probability {rates.max():.3g} > 1 "
            f"(stimulus {z + 1}, action {a}); lower the rates or widen the support"
        )
    return np.asarray(rates, np.float32)
