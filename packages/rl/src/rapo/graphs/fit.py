"""`fit`: regions and tau for a graph nobody has tuned anything for, by a measured odds ratio.

The paper's tau suits the paper's graphs. On another network a region's steady trace may lie far
below it, and then no scar forms (see `rapo_core.operating_point`). How far the odds fall cannot be
read off the steady traces, so the rule measures it: short runs of the diagnostic with draws of
their own, and the largest tau that brings the odds down to theta.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from hashlib import sha256
from typing import Any, Literal

from rapo.cascade.graph import Graph
from rapo.cascade.regions import RegionSpec, make_regions
from rapo.cascade.setting import Setting
from rapo.graphs.fit_outcome import Fit
from rapo.graphs.fit_search import THETA, WINDOW, Search
from rapo_core.checks import UserError
from rapo_core.params import FieldParams

__all__ = ["THETA", "WINDOW", "Fit", "Move", "fit", "need_graph"]

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
    setting = Setting.default() if setting is None else setting
    if not isinstance(setting, Setting):
        raise UserError(f"setting must be a Setting, got {setting!r}")
    params = setting.params if params is None else params
    given = None
    if regions is not None:
        given = make_regions(regions, graph, straddle=setting.straddle)
    key = (
        graph.hash,
        setting,
        params if move == "regions" else replace(params, tau=0.0),
        move,
        theta,
        None if given is None else sha256(given.tobytes()).hexdigest(),
        regions if isinstance(regions, str) else None,
    )
    if key in _KNOWN:
        _KNOWN.move_to_end(key)
        return _KNOWN[key]
    search = Search(graph, params, setting, theta)
    if given is not None:
        found = search.outcome(
            search.lower_tau(given), regions if isinstance(regions, str) else None, "tau"
        )
    elif move == "regions":
        free = fit(graph, params=params, setting=setting, theta=theta)
        found = replace(search.coarsen(), free_selectivity=free.selectivity)
    else:
        found = search.both()
    _KNOWN[key] = found
    while len(_KNOWN) > _KEPT:
        _KNOWN.popitem(last=False)
    return found


_KEPT = 32
_KNOWN: OrderedDict[Any, Fit] = OrderedDict()
"""Fits of this process: graphs are immutable and environments are made many times over."""


def need_graph(graph: object) -> None:
    """Refuse what is no `Graph`, with how to make one."""
    if not isinstance(graph, Graph):
        raise UserError(
            f"graph must be a rapo.Graph, got {type(graph).__name__}; make one with "
            "rapo.from_networkx(graph) or rapo.read_graph(path)"
        )
