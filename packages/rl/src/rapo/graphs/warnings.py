"""Warnings about a loaded graph: how strongly it spreads, and how much the gate can hold back."""

from __future__ import annotations

import numpy as np

from rapo.cascade.graph import Graph
from rapo.cascade.setting import MODERATE, Setting
from rapo.graphs.scale import size_up_to
from rapo.graphs.spectral_radius import spectral_radius
from rapo_core.checks import UserError

SUBCRITICAL = 0.5
"""Given probabilities whose spectral radius / (1 - s) is below this are warned about. At this value
the mean |A_t| of ten networks out of eleven was 1.4 to 2.1 times what injection alone keeps, so a
seed activated about one other node or none; |A_t| is 1 at about 0.7, and 8.5 at 0.9 to 1.6."""
LITTLE = 2.5
"""Times what injection alone keeps active, below which a cascade is hardly one."""
FAR = 20.0
"""Times the usual cascade from which on given probabilities are warned about. On a network of 1,500
nodes a fit held 14 times as many down and still told stimuli apart; at 30 times it did not."""


def ungated_edges(graph: Graph, psi_min: float) -> int:
    """Number of edges above 1 / (1 + psi_min), which stay above one half whatever the gate does.

    The gate turns q into q psi / (q psi + 1 - q): at psi = psi_min that is one half for q = 1 / (1
    + psi_min), more for any larger q, and 1 for q = 1.

    Args:
        graph: the network.
        psi_min: lower bound of the conductance, in (0, 1].
    """
    if not 0 < psi_min <= 1:
        raise UserError(f"psi_min must be in (0, 1], got {psi_min!r}")
    return int((graph.prob.astype(np.float64) > 1 / (1 + psi_min)).sum())


def graph_warnings(graph: Graph, setting: Setting, *, own_probabilities: bool) -> list[str]:
    """Return a sentence for everything that a user should know before using a loaded graph.

    Args:
        graph: as it was loaded.
        setting: with which it was loaded.
        own_probabilities: whether the probabilities are those of the file, neither drawn nor
            scaled.
    """
    sentences: list[str] = []
    psi_min = setting.psi_min
    if graph.sensitive.sum() == 1:
        sentences.append(
            f"V_sens was drawn as a single node of {graph.n}; on a graph this small name it with "
            "sensitive= (--sensitive)"
        )
    if capped := graph.meta["capped_edges"]:
        sentences.append(
            f"{capped:,} of {graph.edges:,} edges exceeded the largest probability of "
            f"{setting.edge_cap:g} and stand at it now: odds of 1 are infinite, and no gate lowers "
            "them; another cap is setting=Setting.default().replace(edge_cap=...)"
        )
    if ungated := ungated_edges(graph, psi_min):
        sentences.append(
            f"{ungated:,} of {graph.edges:,} edges have a probability above "
            f"{1 / (1 + psi_min):.2f}, which even psi_min {psi_min:g} leaves above one half; what "
            "passes over them stays, whatever the odds ratio says: lower those weights"
        )
    return sentences + (_spread_warnings(graph, setting) if own_probabilities else [])


def _spread_warnings(graph: Graph, setting: Setting) -> list[str]:
    """Whether the probabilities of a file make cascades far from the usual size."""
    usual = setting.cascade_target
    size = size_up_to(graph, setting, FAR * usual, rounds=2)
    alone = setting.rates[MODERATE] / setting.stopping
    spread = spectral_radius(graph.adjacency) / setting.stopping
    if not size.finished or size.guess > FAR * usual:
        return [
            f"the probabilities spread far: over {FAR * usual:,.0f} nodes are active on average, "
            f"where the usual cascade has {usual:g}; odds that a fit halves hold little of that: "
            "pass scale=True (--scale), which scales them down"
        ]
    if spread < SUBCRITICAL and size.guess < LITTLE * alone:  # without a cycle the radius is 0
        factor = f" by about {1 / spread:.1f}" if spread > 0 else ""
        return [
            f"the probabilities hardly spread: spectral radius / (1 - s) is {spread:.2g}, and "
            f"below {SUBCRITICAL:g} a seed activates about one other node or none; pass "
            f"scale=True (--scale), which multiplies them{factor} to reach cascades of "
            f"{usual:g} nodes"
        ]
    return []
