"""Why off@rep is near 1 only if Exposure ends before its harm arrives, and what a gate does then.

Under the laws `outbreak` and `cascade` a node is activated at most once in a phase. Activity is a
single wave that ends by itself. If it ends within the delay D, no harm has arrived yet, Exposure is
the same as under `P0`, and Replay without the deformation repeats it: off@rep is 1. Under `contact`
activity goes on for the whole of Exposure, and most of Exposure is gated (`off_at_replay`).

How far a wave gets is its final size, which depends on one number, the reproduction number R: the
mean number of nodes that one active node activates. Conductance lowers R twice under `outbreak`: an
active node succeeds less often in a step, and it stays active for fewer steps. Under `cascade` an
edge is tried once, and the gate is percolation with the contracted probability.
"""

from __future__ import annotations

from math import exp, isfinite

import numpy as np
import numpy.typing as npt

from rapo_core.checks import UserError
from rapo_core.deformation import gate_odds


def share_before_harm(exposure: npt.ArrayLike, delay: int) -> float:
    """Share of an Exposure's activity that falls into its first `delay` steps.

    Args:
        exposure: (T,) activity under `P0`, >= 0, not all 0.
        delay: D, >= 0; harm of the first active set arrives at this step.
    """
    curve = np.asarray(exposure, np.float64)
    if curve.ndim != 1 or not np.isfinite(curve).all() or curve.min(initial=0) < 0:
        raise UserError(f"exposure must be a curve of numbers >= 0, got shape {curve.shape}")
    if curve.sum() == 0:
        raise UserError("exposure has no activity, so it has no share before the harm")
    return float(curve[:delay].sum() / curve.sum())


def off_at_replay(before_harm: float, kept: float) -> float:
    """AUC-R of off@rep: a free Replay over an Exposure of which only a part was free.

    The part of Exposure after the first harm is taken to be gated as Replay is. It is gated less
    while scars form, so this is the largest value; without deformation, or with all activity before
    the harm, it is 1.

    Args:
        before_harm: share of a free Exposure's activity before harm arrives, in [0, 1].
        kept: share of a free phase's activity that the gate leaves, in (0, 1].
    """
    _share("before_harm", before_harm)
    if not 0 < kept <= 1:
        raise UserError(f"kept must be a share in (0, 1], got {kept}")
    return 1 / (before_harm + (1 - before_harm) * kept)


def transmissibility(probability: float, persistence: float | None, psi: float = 1.0) -> float:
    """Probability that an active node ever activates a given neighbour, alone, behind a gate.

    With a persistence s the node tries in every step and stays with probability s, both gated:
    `p / (1 - s (1 - p))`. With None, the law `cascade`, it tries once: p.

    Args:
        probability: p of the edge in one step, in [0, 1].
        persistence: s in [0, 1), or None.
        psi: conductance of the node's and the neighbour's region, in (0, 1].
    """
    _share("probability", probability)
    if not 0 < psi <= 1:
        raise UserError(f"psi must be in (0, 1], got {psi}")
    p = float(gate_odds(probability, psi))
    if persistence is None:
        return p
    if not 0 <= persistence < 1:
        raise UserError(f"persistence must be in [0, 1) or None, got {persistence}")
    s = float(gate_odds(persistence, psi))
    return p / (1 - s * (1 - p))


def reproduction_number(
    degree: float, probability: float, persistence: float | None, psi: float = 1.0
) -> float:
    """R: mean number of neighbours that one active node activates, among `degree` of them.

    For small p and s near 1 it falls by about psi on the hazard and again by about psi on the
    duration; under `cascade` it falls by about psi.
    """
    if not (isfinite(degree) and degree >= 0):
        raise UserError(f"degree must be a number >= 0, got {degree}")
    return degree * transmissibility(probability, persistence, psi)


def final_size(R: float, seeded: float = 0.0) -> float:
    """Share of all nodes that a large outbreak reaches where every node has many possible sources.

    It is the largest root of `z = 1 - (1 - seeded) exp(-R z)`, which holds on random digraphs with
    Poisson in-degrees. Without seeds and with R <= 1 it is 0.

    Args:
        R: reproduction number, >= 0.
        seeded: share of nodes that are activated from outside, in [0, 1].
    """
    if not (isfinite(R) and R >= 0):
        raise UserError(f"R must be a number >= 0, got {R}")
    _share("seeded", seeded)
    if seeded == 0 and R <= 1:
        return 0.0
    z = 1.0  # from above the iteration falls to the largest root
    for _ in range(100_000):
        lower = 1 - (1 - seeded) * exp(-R * z)
        if z - lower < 1e-13:
            break
        z = lower
    return z


def _share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise UserError(f"{name} must be in [0, 1], got {value}")
