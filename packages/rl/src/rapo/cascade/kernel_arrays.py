"""Positions in the arrays that the engine's kernels share: constants of the step, sites of nodes.

Both kernels get these arrays first, with n nodes, R live regions, Z stimuli of k seeds and D the
delay; what follows them is explained in the kernel.

- ptr, target, prob: out-edges, as in `Graph`.
- site: (n * 8,) what is summed over active nodes, see `sites_of`.
- region: (n,) live region or -1.
- sensitive: (n,) V_sens membership; `inside` is the same as a set.
- credit_of: (n,) live region that a sensitive node's harm is credited to.
- designated: the live regions that may be deformed, a set.
- law: (10,) constants of the step, see `law_of`.
- seeds: (Z, k) nodes, ascending, and (Z, 3, k) 1 - b of each stimulus.
- schedule, episode, keys, turn: see `clock`; the turn is one of blocks or of episodes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.setting import SPREADS
from rapo_core.fields import HARM_PER_NODE
from rapo_core.params import FieldParams

OUTBREAK, CASCADE, CONTACT = range(len(SPREADS))
"""The spreading laws as the kernels know them."""
PERSISTENCE, KEPT, ALPHA, DELTA, ETA, TAU, W_G, W_H, PSI_MIN, PER_NODE = range(10)
"""Of the law: `KEPT` is 1 - lambda, `PER_NODE` the harm of one affected node."""
SITE = 8
"""Numbers of a node that are summed over active ones; the last three are 0."""
X, Y, SQUARES, REACH, SENSITIVE = range(5)
"""Of a site: position, its square, 1, and whether the node is in V_sens."""


def law_of(params: FieldParams, persistence: float | None) -> npt.NDArray[np.float32]:
    """(10,) the constants of a step."""
    law = np.empty(10, np.float32)
    law[PERSISTENCE], law[KEPT], law[ALPHA] = persistence or 0, 1 - params.lam, params.alpha
    law[DELTA], law[ETA], law[TAU] = params.delta, params.eta, params.tau
    law[W_G], law[W_H], law[PSI_MIN] = params.w_G, params.w_H, params.psi_min
    law[PER_NODE] = HARM_PER_NODE
    return law


def sites_of(graph: Graph) -> npt.NDArray[np.float32]:
    """(n * 8,) x, y, x^2 + y^2, 1, V_sens, and three 0 of every node.

    Positions minus 0.5: small numbers keep the variance's cancellation harmless.
    """
    x, y = (graph.positions - np.float32(0.5)).T
    sites = np.zeros((graph.n, SITE), np.float32)
    sites[:, X], sites[:, Y], sites[:, SQUARES] = x, y, x * x + y * y
    sites[:, REACH], sites[:, SENSITIVE] = 1, graph.sensitive
    return sites.reshape(-1)
