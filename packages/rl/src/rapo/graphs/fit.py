"""`fit`: regions and tau for any graph, by a measured odds ratio; warnings where both do little.

The paper's tau suits the paper's graphs. On another network a region's steady trace may lie far
below it, and then no scar forms (see `rapo_core.operating_point`). How far the odds fall cannot be
read off the steady traces, so the rule measures it: short runs of the diagnostic with draws of
their own, and the largest tau that brings the odds down to theta.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from dataclasses import replace
from hashlib import sha256
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.regions import RegionSpec, make_regions
from rapo.cascade.setting import EXPOSURE, Setting
from rapo.graphs.exposure import nominal_harm
from rapo.graphs.fit_search import THETA, Search
from rapo.graphs.fit_search import Fit as Fit
from rapo_core.checks import UserError, need_kind
from rapo_core.operating_point import OperatingPoint, operating_point
from rapo_core.params import FieldParams

TOO_MUCH = 0.5
"""Share of P0's sensitive mass from which on a fit warns: halved odds hold little of it."""
Move = Literal["tau", "regions"]


def fit(
    graph: Graph,
    *,
    regions: RegionSpec | None = None,
    params: FieldParams | None = None,
    setting: Setting | None = None,
    move: Move = "tau",
    theta: float = THETA,
) -> Fit:
    """Regions and tau for any graph, deterministic, in seconds.

    V_sens is cut into connected pieces of about five nodes, and all else is one region that never
    carries harm. Then the largest tau of a geometric ladder is taken whose mean OddsRatio, in a
    short run with the constant aggressive action and draws of its own, is at most theta,
    and within a twentieth above it over Replay's first 50 steps, where scars act alone. If no tau
    is enough the pieces double; if the result throttles other stimuli nearly as much as the
    harmful one, they are halved.

    Args:
        graph: the network.
        regions: given regions, for which only tau is fitted.
        params: constants of the fields; tau among them is replaced unless `move="regions"`.
        setting: open choices of the platform.
        move: `"tau"`, or `"regions"` to leave tau as it is and take the finest pieces of V_sens
            that reach theta; that costs selectivity, which is told.
        theta: odds to reach, in (0, 1).

    Raises:
        ValueError: an argument outside of the above, or a graph whose V_sens no stimulus reaches.
    """
    if move not in ("tau", "regions"):
        raise UserError(f"move must be 'tau' or 'regions', got {move!r}")
    if move == "regions" and regions is not None:
        raise UserError("regions are given, so they cannot be what moves; leave one of them out")
    need_graph(graph)
    if not isinstance(theta, float | int) or not 0 < theta < 1:
        raise UserError(f"theta must be a number in (0, 1), got {theta!r}")
    setting = need_kind("setting", Setting.default() if setting is None else setting, Setting)
    params = setting.params if params is None else params
    own = None if regions is None else make_regions(regions, graph, straddle=setting.straddle)
    spec = regions if isinstance(regions, str) else None
    key = (
        graph.hash,
        setting,
        params if move == "regions" else replace(params, tau=0.0),
        move,
        theta,
        None if own is None else sha256(own.tobytes()).hexdigest(),
        spec,
    )
    if key in _FITS:
        _FITS.move_to_end(key)
        return _FITS[key]
    search = Search(graph, params, setting, theta)
    if own is not None:
        fitted = search.outcome(search.lower_tau(own), spec, "tau")
    elif move == "regions":
        free = fit(graph, params=params, setting=setting, theta=theta)
        fitted = replace(search.coarsen(), free_selectivity=free.selectivity)
    else:
        fitted = search.both()
    _FITS[key] = fitted
    while len(_FITS) > _MOST_FITS:
        _FITS.popitem(last=False)
    return fitted


_MOST_FITS = 32
_FITS: OrderedDict[Any, Fit] = OrderedDict()
"""Fits of this process: graphs never change, and environments are made many times over."""


def need_graph(graph: object) -> None:
    """Refuse what is no `Graph`, with how to make one."""
    if not isinstance(graph, Graph):
        raise UserError(
            f"graph must be a rapo.Graph, got {type(graph).__name__}; make one with "
            "rapo.from_networkx(graph) or rapo.read_graph(path)"
        )


def chosen_fit(
    graph: Graph,
    wanted: bool | Fit | None,
    *,
    regions: RegionSpec | None,
    params: FieldParams | None,
    setting: Setting,
) -> Fit | None:
    """Return the fit that an environment works with, or None.

    By default a user's graph is fitted and a generated graph keeps the paper's constants. With
    regions of the caller only tau is fitted, with params of the caller only the regions, with both
    nothing.
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
        fitted = fit(graph, params=params, setting=setting, move="regions")
    else:
        fitted = fit(graph, regions=regions, setting=setting)
    _warn_if_short(fitted, setting)
    return fitted


class FitWarning(UserWarning):
    """A fit falls short: its odds or its mass stay too high."""


_SHORT: set[Fit] = set()
"""Fits about which this process has warned."""


def _warn_if_short(fitted: Fit, setting: Setting) -> None:
    """Warn once that a fit falls short, with the reason where it is known."""
    if fitted in _SHORT or (fitted.reached and not fitted.mass > TOO_MUCH):
        return
    _SHORT.add(fitted)
    p = fitted.params
    if fitted.reached:
        why = (
            f"though the odds are at {fitted.odds:.2f}, {fitted.mass:.0%} of the sensitive mass "
            "stays: cascades this strong outrun them; scale the probabilities down "
            "(scale=True on loading, rapo graph --scale)"
        )
    elif setting.horizons[EXPOSURE] <= setting.delay:
        steps = setting.horizons[EXPOSURE]
        why = f"Exposure of {steps} steps ends before harm arrives, D = {setting.delay}"
    elif p.psi_min >= fitted.theta:
        why = f"psi_min {p.psi_min:g} does not let odds fall to {fitted.theta:g}"
    elif p.w_H == 0 or p.eta == 0:
        why = f"w_H {p.w_H:g} and eta {p.eta:g} make no scar that bites"
    else:
        why = "no tau is low enough"
    warnings.warn(f"the fit falls short: {why}. It is {fitted}", FitWarning, 4)


def fits(graph: Graph, wanted: bool | None) -> bool:
    """Whether to fit a graph: as wanted; by default every graph that was not generated."""
    return "generator" not in graph.meta if wanted is None else wanted


class IdleWarning(UserWarning):
    """Less than a tenth of the harm can scar, so the deformation does next to nothing."""


def point_of(
    graph: Graph, regions: npt.NDArray[np.int32], params: FieldParams, setting: Setting
) -> OperatingPoint:
    """The operating point of regions on a graph in a nominal Exposure."""
    return operating_point(nominal_harm(graph, regions, setting), params)


_IDLE: set[tuple[str, str, FieldParams, Setting]] = set()
"""Choices about which this process has warned."""


def warn_if_idle(
    graph: Graph, regions: npt.NDArray[np.int32], params: FieldParams, setting: Setting
) -> OperatingPoint:
    """Return the operating point, and warn where the memory is idle, once per choice."""
    point = point_of(graph, regions, params, setting)
    key = (graph.hash, sha256(regions.tobytes()).hexdigest(), params, setting)
    if point.idle and key not in _IDLE:
        _IDLE.add(key)
        warnings.warn(f"RAPO is idle here: {point}; {_remedy(graph, setting)}", IdleWarning, 4)
    return point


def _remedy(graph: Graph, setting: Setting) -> str:
    try:
        fitted = fit(graph, setting=setting)
    except ValueError as error:
        return f"rapo.fit finds nothing either: {error}"
    return (
        f"rapo.fit would set tau {fitted.params.tau:.2g} with {fitted.count:,} regions (fit=True, "
        "or leave regions and params out)"
    )
