"""`fit`: regions and tau for a graph nobody has tuned anything for, by a measured odds ratio.

The paper's tau suits the paper's graphs. On another network a region's steady trace may lie far
below it, and then no scar forms (see `rapo.core.operating_point`). How far the odds fall cannot be
read off the steady traces, so the rule measures it: short runs of the diagnostic with draws of
their own, and the largest tau that brings the odds down to theta.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rapo.cascade import stats as row
from rapo.cascade.engine import Cascade
from rapo.cascade.exposure import exposure_point, fit_episodes
from rapo.cascade.graph import Graph
from rapo.cascade.regions import RegionSpec, make_regions
from rapo.cascade.setting import AGGRESSIVE, EXPOSURE, REPLAY, Setting
from rapo.core.params import FieldParams

THETA = 0.41
"""The paper's mean OddsRatio."""
WINDOW = 50
"""First steps of Replay, before its own harm arrives: scars act alone there. The same and another
stimulus are compared over them."""
SCAR_SLACK = 1.05
"""Over those steps the odds may be this much above theta. Where few regions carry all harm the
trace alone would reach theta over the whole of Replay, and nothing would be remembered."""
PIECE = 5.0
"""Mean size of the first pieces of V_sens."""
MASS = 0.25
"""Share of P0's sensitive mass that may stay in Replay, where a lower tau can bring it there: in a
V_sens of a few nodes the odds alone leave too much."""
SELECTIVE = 0.2
"""Pieces are halved, down to single nodes, until another stimulus keeps its odds by this much."""
HIGHEST_TAU, RATIO, LOWEST_TAU = 2.0, 1.15, 1e-4
TAUS = HIGHEST_TAU / RATIO ** np.arange(
    1 + np.ceil(np.log(HIGHEST_TAU / LOWEST_TAU) / np.log(RATIO))
)
"""The ladder, from the highest to the lowest tau."""

Move = Literal["tau", "regions"]


@dataclass(frozen=True, eq=False)
class Fit:
    """Regions and constants chosen for one graph, and what a short run of them measured."""

    regions: npt.NDArray[np.int32]
    """(n,) region of every node."""
    params: FieldParams
    """The constants given, with the tau that was found."""
    odds: float
    """Mean OddsRatio of Replay in the run that settled it. What is fitted to theta is calibrated:
    do not read it as a result."""
    odds_same: float
    """The same over Replay's first 50 steps, where scars act alone."""
    odds_other: float
    """That under another stimulus with the same memory; NaN with one stimulus."""
    mass: float
    """Sensitive mass of Replay over that of `P0` with the same draws."""
    share: float
    """Share of the nominal harm that can scar."""
    reached: bool
    """Whether the odds came down to theta; if not, this is the strongest that was tried."""
    moved: str
    """What was fitted: `tau and regions`, `tau` (regions were given) or `regions` (tau was)."""
    spec: str | None
    """The regions as a spec; None for an array or a callable."""
    free_selectivity: float
    """Selectivity of the fit whose tau may move, where this one's may not; else its own."""
    runs: int
    """Short runs that it took."""
    theta: float
    graph_hash: str

    @property
    def selectivity(self) -> float:
        """Odds under another stimulus minus odds under the same one: what "localised" means."""
        return self.odds_other - self.odds_same

    @property
    def count(self) -> int:
        """Number of regions."""
        return int(self.regions.max()) + 1

    def in_force(self, regions: npt.NDArray[np.int32], params: FieldParams) -> bool:
        """Whether these are the regions and constants that were fitted."""
        return self.params == params and np.array_equal(self.regions, regions)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, regions as a list; NaN as None."""
        return {
            **{k: _plain(v) for k, v in self.__dict__.items() if k not in ("regions", "params")},
            "params": self.params.to_dict(),
            "regions": self.regions.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Fit:
        """Build from what `to_dict` gave."""
        known = set(cls.__dataclass_fields__)
        if set(values) != known:
            raise ValueError(f"unknown or missing entries {sorted(set(values) ^ known)} in a fit")
        whole: dict[str, Any] = {
            k: float("nan") if v is None and k != "spec" else v for k, v in values.items()
        }
        regions = np.asarray(values["regions"], np.int32)
        regions.setflags(write=False)
        return cls(
            **{**whole, "regions": regions, "params": FieldParams.from_dict(values["params"])}
        )

    def outcome(self) -> dict[str, float]:
        """What `info` and manifests tell: regions, tau, odds, share and selectivity."""
        return {
            "regions": self.count, "tau": self.params.tau, "odds": self.odds, "share": self.share,
            "selectivity": self.selectivity, "reached": self.reached,
        }  # fmt: skip

    def __str__(self) -> str:
        pieces = f" ({self.spec})" if self.spec else ""
        cost = ""
        if self.moved == "regions":
            cost = f" (tau may not move; if it might, {self.free_selectivity:.2f})"
        short = "" if self.reached else f", NOT the {self.theta:g} asked for"
        plural = "" if self.count == 1 else "s"
        return (
            f"{self.count:,} region{plural}{pieces}, tau {self.params.tau:.3g}: odds "
            f"{self.odds:.2f} (calibrated{short}), {np.nan_to_num(self.share):.0%} of the harm can "
            f"scar, {self.mass:.0%} of P0's sensitive mass stays, selectivity "
            f"{self.selectivity:.2f}{cost}"
        )

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fit) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.graph_hash, self.params, self.regions.tobytes()))


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
        raise ValueError(f"move must be 'tau' or 'regions', got {move!r}")
    if move == "regions" and regions is not None:
        raise ValueError("regions are given, so they cannot be what moves; leave one of them out")
    need_graph(graph)
    if not isinstance(theta, float | int) or not 0 < theta < 1:
        raise ValueError(f"theta must be a number in (0, 1), got {theta!r}")
    setting = Setting.default() if setting is None else setting
    if not isinstance(setting, Setting):
        raise ValueError(f"setting must be a Setting, got {setting!r}")
    params = setting.params if params is None else params
    given = None
    if regions is not None:
        given = make_regions(regions, graph, straddle=setting.straddle)
    key = (
        graph.hash, setting, params if move == "regions" else replace(params, tau=0.0), move, theta,
        None if given is None else sha256(given.tobytes()).hexdigest(),
        regions if isinstance(regions, str) else None,
    )  # fmt: skip
    if key in _KNOWN:
        _KNOWN.move_to_end(key)
        return _KNOWN[key]
    search = _Search(graph, params, setting, theta)
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


@dataclass(frozen=True)
class _Tried:
    """One short run."""

    regions: npt.NDArray[np.int32]
    params: FieldParams
    odds: float
    odds_same: float
    mass: float
    enough: bool


class _Search:
    """Short runs on one graph, counted."""

    def __init__(self, graph: Graph, params: FieldParams, setting: Setting, theta: float) -> None:
        self.graph, self.params, self.setting, self.theta = graph, params, setting, theta
        self.keys, self.stimuli = fit_episodes(graph, purpose=2)
        self.runs = 0
        self.most_mass = MASS
        nominal = self._engine(np.zeros(graph.n, np.int32), params, "off")
        self.nominal = self._mass(nominal.run(AGGRESSIVE, setting.horizons[REPLAY]))

    def both(self) -> Fit:
        """Pieces of about five nodes and their tau; coarser if need be, finer if they may be."""
        size = PIECE
        tried = self.lower_tau(self.pieces(size))
        while not tried.enough and size < self.graph.sensitive.sum():
            size *= 2
            tried = self.lower_tau(self.pieces(size))
        best = self.outcome(tried, f"pieces:{size:g}", "tau and regions")
        while best.reached and not best.selectivity >= SELECTIVE and size > 1:
            size = max(size / 2, 1.0)
            finer = self.outcome(
                self.lower_tau(self.pieces(size)), f"pieces:{size:g}", "tau and regions"
            )
            if not finer.reached:
                break
            if not finer.selectivity <= best.selectivity:
                best = finer
        return replace(best, runs=self.runs)

    def coarsen(self) -> Fit:
        """The finest pieces that reach theta with tau as it is."""
        size = 1.0
        tried = self.run(self.pieces(size), self.params)
        while not tried.enough and size < self.graph.sensitive.sum():
            size = max(2 * size, PIECE / 2)
            tried = self.run(self.pieces(size), self.params)
        return self.outcome(tried, f"pieces:{size:g}", "regions")

    def lower_tau(self, regions: npt.NDArray[np.int32]) -> _Tried:
        """The largest tau of the ladder that is enough, or the smallest one."""
        self.most_mass = np.inf
        best = self.run(regions, replace(self.params, tau=float(TAUS[-1])))
        if best.mass <= MASS:  # else no tau is, and the odds decide alone
            self.most_mass = MASS
        if not best.enough:
            return best
        low, high = -1, len(TAUS) - 1  # TAUS[high] is enough; above `low` nothing is known to be
        while high - low > 1:
            middle = (low + high) // 2
            tried = self.run(regions, replace(self.params, tau=float(TAUS[middle])))
            if tried.enough:
                best, high = tried, middle
            else:
                low = middle
        return best

    def pieces(self, size: float) -> npt.NDArray[np.int32]:
        return make_regions(f"pieces:{size:g}", self.graph)

    def run(self, regions: npt.NDArray[np.int32], params: FieldParams) -> _Tried:
        """Odds of one choice."""
        self.runs += 1
        replay = self._engine(regions, params).run(AGGRESSIVE, self.setting.horizons[REPLAY])
        odds, same = _mean_odds(replay), _mean_odds(replay[:WINDOW])
        if np.isnan(odds):
            raise ValueError(
                "no harm can be measured: no stimulus leads into V_sens in "
                f"{sum(self.setting.horizons)} steps; add edges from the seeds to V_sens, name "
                "another V_sens, or raise the probabilities (scale=True)"
            )
        mass = self._mass(replay) / self.nominal if self.nominal > 0 else np.nan
        enough = odds <= self.theta and not same > SCAR_SLACK * self.theta
        return _Tried(regions, params, odds, same, mass, enough and not mass > self.most_mass)

    def outcome(self, tried: _Tried, spec: str | None, moved: str) -> Fit:
        """A choice with what else is told of it."""
        other = float("nan")
        if self.graph.stimuli > 1:
            engine = self._engine(tried.regions, tried.params)
            engine.enter(REPLAY, stimuli=self.stimuli % self.graph.stimuli + 1)
            steps = min(WINDOW, self.setting.horizons[REPLAY])
            other = _mean_odds(engine.run(AGGRESSIVE, steps))
        point = exposure_point(self.graph, tried.regions, tried.params, self.setting)
        return Fit(
            regions=tried.regions,
            params=tried.params,
            odds=tried.odds,
            odds_same=tried.odds_same,
            odds_other=other,
            mass=tried.mass,
            share=point.share,
            reached=tried.enough,
            moved=moved,
            spec=spec,
            free_selectivity=other - tried.odds_same,
            runs=self.runs,
            theta=self.theta,
            graph_hash=self.graph.hash,
        )

    @staticmethod
    def _mass(replay: npt.NDArray[np.float32]) -> float:
        return float(replay[:, row.SENSITIVE].sum(dtype=np.float64))

    def _engine(
        self, regions: npt.NDArray[np.int32], params: FieldParams, deformation: str = "full"
    ) -> Cascade:
        """An engine at the start of Replay."""
        engine = Cascade(
            self.graph, len(self.keys), setting=self.setting, params=params, regions=regions,
            deformation=deformation,
        )  # fmt: skip
        engine.start(self.keys, self.stimuli)
        engine.run(AGGRESSIVE, sum(self.setting.horizons[EXPOSURE:REPLAY]))
        return engine


def need_graph(graph: object) -> None:
    """Refuse what is no `Graph`, with how to make one."""
    if not isinstance(graph, Graph):
        raise ValueError(
            f"graph must be a rapo.Graph, got {type(graph).__name__}; make one with "
            "rapo.from_networkx(graph) or rapo.read_graph(path)"
        )


def _mean_odds(trace: npt.NDArray[np.float32]) -> float:
    """Mean over episodes of the mean OddsRatio of a trace (T, rows, E); NaN where undefined."""
    nominal = trace[:, row.ENTRY_NOMINAL].astype(np.float64)
    deformed = trace[:, row.ENTRY_DEFORMED].astype(np.float64)
    some = nominal > 0
    ratio = np.where(some, deformed / np.where(some, nominal, 1), 0)
    steps = some.sum(axis=0)
    known = steps > 0
    if not known.any():
        return float("nan")
    return float((ratio.sum(axis=0)[known] / steps[known]).mean())


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value
