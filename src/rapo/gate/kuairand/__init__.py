"""Real likes and hates through the gate, beside two simple rivals.

The data: a slice of KuaiRand-27K (Gao et al., CIKM 2022), short videos that people liked or hated,
8-21 April 2022. It is not an exposure log: only liked or hated rows, of people who did both, so the
share of hates is an artefact and nothing here says how often people hate what they are shown. What
it can say: of two ways to turn past hates into down-weights, which takes away more later hated
rows for the liked rows that it costs.
"""

from __future__ import annotations

from rapo.gate.kuairand.command import find_data, run_kuairand

__all__ = ["find_data", "run_kuairand"]
