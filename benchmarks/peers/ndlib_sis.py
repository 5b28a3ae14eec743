"""NDlib's SIS model on the same graph: one iteration is its nearest equivalent of an episode-step.

It has no injection, fields or delay, and one infection rate for all edges; it does less. Its
cost is a Python loop over nodes and neighbours and hardly depends on how many are infected.
"""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np

from benchmarks.problem import Problem


class NdlibSis:
    """`run(steps)` iterates one episode; only the counts are kept, not each node's status."""

    def __init__(self, problem: Problem) -> None:
        from ndlib.models import ModelConfig
        from ndlib.models.epidemics import SISModel

        targets = np.repeat(np.arange(problem.n), np.diff(problem.indptr))
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(problem.n))
        graph.add_edges_from(zip(problem.sources.tolist(), targets.tolist(), strict=True))
        config = ModelConfig.Configuration()
        config.add_model_parameter("beta", float(problem.prob.mean()))
        config.add_model_parameter("lambda", 1.0 - problem.persistence)
        config.add_model_parameter("fraction_infected", 0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = SISModel(graph, seed=0)
            self.model.set_initial_status(config)

    def run(self, steps: int) -> None:
        """Iterate `steps` times."""
        for _ in range(steps):
            self.model.iteration(node_status=False)
