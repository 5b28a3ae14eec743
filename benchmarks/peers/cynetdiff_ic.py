"""CyNetDiff's independent cascade (Cython) on the same graph and probabilities.

An *edge trial* is an out-edge of a node that became active: CyNetDiff draws once for each. All
cascades of a call run inside its compiled code. With the out-degree as a node's payoff, the mean
payoff it reports is the mean number of edge trials, so they are counted exactly.
"""

from __future__ import annotations

import array
from typing import Any

import numpy as np

from rapo.cascade.graph import Graph


class CynetdiffCascade:
    """`run(cascades)` runs cascades from the seeds of one stimulus and returns the edge trials."""

    def __init__(self, graph: Graph, stimulus: int = 1, seed: int = 0) -> None:
        from cynetdiff.models import IndependentCascadeModel

        self.seeds: list[int] = graph.support[stimulus - 1].tolist()
        self.model: Any = IndependentCascadeModel(
            array.array("I", graph.indptr[:-1].tolist()),
            array.array("I", graph.indices.tolist()),
            activation_probs=array.array("f", graph.prob.tolist()),
            payoffs=array.array("f", np.diff(graph.indptr).tolist()),
            rng=np.random.Generator(np.random.SFC64(seed)),
        )

    def run(self, cascades: int) -> float:
        """Edge trials of that many cascades from scratch."""
        return cascades * float(self.model.compute_marginal_gains(self.seeds, [], cascades)[0])
