"""Which fit an environment works with, and a warning where it falls short."""

from __future__ import annotations

import warnings

from rapo.cascade.graph import Graph
from rapo.cascade.regions import RegionSpec
from rapo.cascade.setting import EXPOSURE, Setting
from rapo.graphs.fit import Fit, fit
from rapo_core.checks import UserError
from rapo_core.params import FieldParams

TOO_MUCH = 0.5
"""Share of P0's sensitive mass from which on a fit warns: halved odds hold little of it."""


def chosen_fit(
    graph: Graph,
    wanted: bool | Fit | None,
    *,
    regions: RegionSpec | None,
    params: FieldParams | None,
    setting: Setting,
) -> Fit | None:
    """The fit that an environment works with, or None.

    By default a graph that was brought is fitted and a generated one keeps the paper's constants.
    Given regions leave only tau to be fitted, given params only the regions, both nothing.
    """
    if isinstance(wanted, Fit):
        if wanted.graph_hash != graph.hash:
            raise UserError(
                f"the fit is of graph {wanted.graph_hash}, this is {graph.hash}; fit this one"
            )
        return wanted
    if not isinstance(wanted, bool | None):
        raise UserError(f"fit must be True, False, None or a Fit, got {wanted!r}")
    if not fits(graph, wanted):
        return None
    if regions is not None and params is not None:
        if wanted:
            raise UserError("nothing is left to fit: both regions and params are given")
        return None
    if params is not None:
        found = fit(graph, params=params, setting=setting, move="regions")
    else:
        found = fit(graph, regions=regions, setting=setting)
    _warn(found, setting)
    return found


class FitWarning(UserWarning):
    """A fit does not do what it is for."""


_TOLD: set[Fit] = set()


def _warn(found: Fit, setting: Setting) -> None:
    """Say once that a fit falls short, and why as far as that can be told."""
    if found in _TOLD or (found.reached and not found.mass > TOO_MUCH):
        return
    _TOLD.add(found)
    p = found.params
    if found.reached:
        why = (
            f"though the odds are at {found.odds:.2f}, {found.mass:.0%} of the sensitive mass "
            "stays: cascades this strong outrun them; scale the probabilities down "
            "(scale=True on loading, rapo graph --scale)"
        )
    elif setting.horizons[EXPOSURE] <= setting.delay:
        steps = setting.horizons[EXPOSURE]
        why = f"Exposure of {steps} steps ends before harm arrives, D = {setting.delay}"
    elif p.psi_min >= found.theta:
        why = f"psi_min {p.psi_min:g} does not let odds fall to {found.theta:g}"
    elif p.w_H == 0 or p.eta == 0:
        why = f"w_H {p.w_H:g} and eta {p.eta:g} make no scar that bites"
    else:
        why = "no tau is low enough"
    warnings.warn(f"the fit falls short: {why}. It is {found}", FitWarning, 4)


def fits(graph: Graph, wanted: bool | None) -> bool:
    """Whether a graph is to be fitted: as wanted, by default unless it was generated."""
    return "generator" not in graph.meta if wanted is None else wanted
