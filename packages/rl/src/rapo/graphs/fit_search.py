"""Short runs of the diagnostic in search of regions and tau, see `fit`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rapo.cascade import stats as row
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import AGGRESSIVE, EXPOSURE, REPLAY, Setting
from rapo.graphs.exposure import exposure_point, fit_episodes
from rapo.graphs.fit_outcome import Fit
from rapo_core.checks import UserError
from rapo_core.params import FieldParams

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


@dataclass(frozen=True)
class Tried:
    """One short run."""

    regions: npt.NDArray[np.int32]
    params: FieldParams
    odds: float
    odds_same: float
    mass: float
    enough: bool


class Search:
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

    def lower_tau(self, regions: npt.NDArray[np.int32]) -> Tried:
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
        """Connected pieces of V_sens of that mean size, and one region for all else."""
        return make_regions(f"pieces:{size:g}", self.graph)

    def run(self, regions: npt.NDArray[np.int32], params: FieldParams) -> Tried:
        """Odds of one choice."""
        self.runs += 1
        replay = self._engine(regions, params).run(AGGRESSIVE, self.setting.horizons[REPLAY])
        odds, same = _mean_odds(replay), _mean_odds(replay[:WINDOW])
        if np.isnan(odds):
            raise UserError(
                "no harm can be measured: no stimulus leads into V_sens in "
                f"{sum(self.setting.horizons)} steps; add edges from the seeds to V_sens, name "
                "another V_sens, or raise the probabilities (scale=True)"
            )
        mass = self._mass(replay) / self.nominal if self.nominal > 0 else np.nan
        enough = odds <= self.theta and not same > SCAR_SLACK * self.theta
        return Tried(regions, params, odds, same, mass, enough and not mass > self.most_mass)

    def outcome(self, tried: Tried, spec: str | None, moved: str) -> Fit:
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
            self.graph,
            len(self.keys),
            setting=self.setting,
            params=params,
            regions=regions,
            deformation=deformation,
        )
        engine.start(self.keys, self.stimuli)
        engine.run(AGGRESSIVE, sum(self.setting.horizons[EXPOSURE:REPLAY]))
        return engine


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
