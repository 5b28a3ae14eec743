"""The arrays that both kernels of the engine share, and the names of their entries.

Both kernels receive these arrays first, with n nodes, R harm regions (those that can ever carry
harm), Z stimuli of k seeds and D the delay. Each kernel describes the arrays that follow.

- ptr, target, prob: out-edges, as in `Graph`.
- site: (n * 8,) what is summed over active nodes, see `sites_of`.
- region: (n,) harm region of a node, or -1.
- sensitive: (n,) whether a node is in V_sens; `inside` holds the same as a set.
- harm_region_of: (n,) harm region that receives the harm of a sensitive node.
- gated_regions: the harm regions that may be deformed, a set.
- constants: (10,) constants of a step, see `constants_of`.
- seeds: (Z, k) nodes, ascending, and (Z, 3, k) the values 1 - b of each stimulus and action.
- visits, ever, frames: what a thread records of active nodes, last of all arrays: (n,) in how many
  steps of its episodes a node was active; (E, node words) or (B, n) which nodes were active in
  any step; (FRAMES, node words) the active sets of the first episode in the steps of this call.
- schedule, episode, keys, thread_state: see `phases`. A thread runs episodes in the one kernel and
  blocks of 32 episodes in the other.
- own_harm: (E,) harm of this step by a function of the setting; below 0 the kernel counts nodes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.setting import SPREADS
from rapo_core.fields import HARM_PER_NODE
from rapo_core.params import FieldParams

PROB, MISS = 2, 11
"""Places of `prob` and of the values 1 - b among these arrays."""
OUTBREAK, CASCADE, CONTACT = range(len(SPREADS))
"""Numbers of the spreading laws in the kernels."""
PERSISTENCE, KEPT, ALPHA, DELTA, ETA, TAU, W_G, W_H, PSI_MIN, PER_NODE = range(10)
"""Entries of `constants`: `KEPT` is 1 - lambda, `PER_NODE` the harm of one affected node."""
FRAMES = 64
"""Most steps of a call whose active sets of the first episode are recorded."""
SITE_SIZE = 8
"""Numbers of a node that are summed over active nodes; the last three are 0."""
SITE_X, SITE_Y, SITE_SQUARES, SITE_REACH, SITE_SENSITIVE = range(5)
"""Entries of a site: position, its square, 1, and whether the node is in V_sens."""


def constants_of(params: FieldParams, persistence: float | None) -> npt.NDArray[np.float32]:
    """(10,) the constants of a step."""
    constants = np.empty(10, np.float32)
    constants[PERSISTENCE], constants[KEPT] = persistence or 0, 1 - params.lam
    constants[ALPHA], constants[DELTA] = params.alpha, params.delta
    constants[ETA], constants[TAU] = params.eta, params.tau
    constants[W_G], constants[W_H], constants[PSI_MIN] = params.w_G, params.w_H, params.psi_min
    constants[PER_NODE] = HARM_PER_NODE
    return constants


def sites_of(graph: Graph) -> npt.NDArray[np.float32]:
    """(n * 8,) x, y, x^2 + y^2, 1, V_sens, and three 0 of every node.

    Positions are taken relative to the centre 0.5: with small numbers the variance loses few
    digits to cancellation.
    """
    x, y = (graph.positions - np.float32(0.5)).T
    sites = np.zeros((graph.n, SITE_SIZE), np.float32)
    sites[:, SITE_X], sites[:, SITE_Y], sites[:, SITE_SQUARES] = x, y, x * x + y * y
    sites[:, SITE_REACH], sites[:, SITE_SENSITIVE] = 1, graph.sensitive
    return sites.reshape(-1)
