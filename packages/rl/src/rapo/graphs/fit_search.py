"""`Fit`, and the short runs of the diagnostic that search regions and tau; see `rapo.fit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rapo.cascade import stats
from rapo.cascade.engine import Cascade
from rapo.cascade.graph import Graph
from rapo.cascade.regions import make_regions
from rapo.cascade.setting import AGGRESSIVE, EXPOSURE, REPLAY, Setting
from rapo.graphs.exposure import fit_episodes, nominal_harm
from rapo_core.checks import UserError
from rapo_core.operating_point import operating_point
from rapo_core.params import FieldParams

THETA = 0.41
"""The paper's mean OddsRatio."""
WINDOW = 50
"""Number of first steps of Replay, before its own harm arrives: scars act alone there. The same
and another stimulus are compared over these steps."""
SCAR_SLACK = 1.05
"""Factor by which the odds may exceed theta over those steps. Where few regions carry all harm, the
trace alone could reach theta over the whole of Replay, with no scar at all."""
PIECE = 5.0
"""Mean size of the first pieces of V_sens."""
MASS = 0.25
"""Largest share of P0's sensitive mass in Replay, wherever some tau reaches it: in a V_sens of a
few nodes the odds alone leave too much."""
SELECTIVE = 0.2
"""Least selectivity: pieces are halved, down to single nodes, until a fit reaches it."""
HIGHEST_TAU, RATIO, LOWEST_TAU = 2.0, 1.15, 1e-4
TAUS = HIGHEST_TAU / RATIO ** np.arange(
    1 + np.ceil(np.log(HIGHEST_TAU / LOWEST_TAU) / np.log(RATIO))
)
"""The ladder, from the highest to the lowest tau."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Regions and constants that were fitted to one graph, with the numbers of a short run."""

    regions: npt.NDArray[np.int32]
    """(n,) region of every node."""
    params: FieldParams
    """The constants of the caller, with the fitted tau."""
    odds: float
    """Mean OddsRatio of Replay in the run that decided. This number is calibrated to theta: do not
    read it as a result."""
    odds_same: float
    """Mean OddsRatio over the first 50 steps of Replay, where scars act alone."""
    odds_other: float
    """Mean OddsRatio of those steps under another stimulus with the same memory; NaN with one
    stimulus."""
    mass: float
    """Sensitive mass of Replay over that of `P0` with the same draws."""
    share: float
    """Share of the nominal harm that can scar."""
    reached: bool
    """Whether the odds came down to theta; if not, this fit is the strongest that was tried."""
    moved: str
    """What was fitted: `tau and regions`, `tau` (for regions of the caller), or `regions` (for a
    tau of the caller)."""
    spec: str | None
    """The regions as a spec; None for an array or a callable."""
    free_selectivity: float
    """Where tau was not fitted: selectivity of the fit with a free tau; otherwise `selectivity`."""
    runs: int
    """Number of short runs that the search took."""
    theta: float
    graph_hash: str

    @property
    def selectivity(self) -> float:
        """Odds under another stimulus minus odds under the same one: how local the memory acts."""
        return self.odds_other - self.odds_same

    @property
    def count(self) -> int:
        """Number of regions."""
        return int(self.regions.max()) + 1

    def in_force(self, regions: npt.NDArray[np.int32], params: FieldParams) -> bool:
        """Whether an environment with these regions and constants uses this fit."""
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
        """Build from the values of `to_dict`."""
        known = set(cls.__dataclass_fields__)
        if set(values) != known:
            raise UserError(f"unknown or missing entries {sorted(set(values) ^ known)} in a fit")
        whole: dict[str, Any] = {
            k: float("nan") if v is None and k != "spec" else v for k, v in values.items()
        }
        regions = np.asarray(values["regions"], np.int32)
        regions.setflags(write=False)
        return cls(
            **{**whole, "regions": regions, "params": FieldParams.from_dict(values["params"])}
        )

    def outcome(self) -> dict[str, float]:
        """The numbers for `info` and manifests: regions, tau, odds, share and selectivity."""
        return {
            "regions": self.count,
            "tau": self.params.tau,
            "odds": self.odds,
            "share": self.share,
            "selectivity": self.selectivity,
            "reached": self.reached,
        }

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


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


class Tried(NamedTuple):
    """One short run, and the state at the start of its Replay."""

    regions: npt.NDArray[np.int32]
    params: FieldParams
    odds: float
    odds_same: float
    mass: float
    enough: bool
    state: dict[str, npt.NDArray[Any]]


class Search:
    """Short runs on one graph, counted; one engine for each choice of regions."""

    def __init__(self, graph: Graph, params: FieldParams, setting: Setting, theta: float) -> None:
        self.graph, self.params, self.setting, self.theta = graph, params, setting, theta
        self.keys, self.stimuli = fit_episodes(graph, purpose=2)
        self.runs = 0
        self.most_mass = MASS
        self._engine: Cascade | None = None
        self._nominal: float | None = None

    def both(self) -> Fit:
        """Fit pieces of about five nodes and their tau; take coarser or finer pieces if need be."""
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
        """Find the finest pieces that reach theta with the caller's tau."""
        size = 1.0
        tried = self.run(self.pieces(size), self.params)
        while not tried.enough and size < self.graph.sensitive.sum():
            size = max(2 * size, PIECE / 2)
            tried = self.run(self.pieces(size), self.params)
        return self.outcome(tried, f"pieces:{size:g}", "regions")

    def lower_tau(self, regions: npt.NDArray[np.int32]) -> Tried:
        """Find the largest tau of the ladder that is enough, or return the smallest."""
        self.most_mass = np.inf
        best = self.run(regions, replace(self.params, tau=float(TAUS[-1])))
        if best.mass <= MASS:  # otherwise no tau reaches MASS, and the odds decide alone
            self.most_mass = MASS
        if not best.enough:
            return best
        low, high = -1, len(TAUS) - 1  # TAUS[high] is enough; no tau up to TAUS[low] is
        while high - low > 1:
            middle = (low + high) // 2
            tried = self.run(regions, replace(self.params, tau=float(TAUS[middle])))
            if tried.enough:
                best, high = tried, middle
            else:
                low = middle
        return best

    def pieces(self, size: float) -> npt.NDArray[np.int32]:
        """Cut V_sens into connected pieces of that mean size; all else is one region."""
        return make_regions(f"pieces:{size:g}", self.graph)

    def run(self, regions: npt.NDArray[np.int32], params: FieldParams) -> Tried:
        """Measure the odds of one choice."""
        engine = self._engine_of(regions)
        if self._nominal is None:
            engine.set_deformation(False)
            self._nominal = self._mass(self._replay(engine)[1])
            engine.set_deformation(True)
        self.runs += 1
        engine.set_params(params)
        state, replay = self._replay(engine)
        odds, same = _mean_odds(replay), _mean_odds(replay[:WINDOW])
        if np.isnan(odds):
            raise UserError(
                "no harm can be measured: no stimulus leads into V_sens in "
                f"{sum(self.setting.horizons)} steps; add edges from the seeds to V_sens, name "
                "another V_sens, or raise the probabilities (scale=True)"
            )
        mass = self._mass(replay) / self._nominal if self._nominal > 0 else np.nan
        enough = odds <= self.theta and not same > SCAR_SLACK * self.theta
        enough = enough and not mass > self.most_mass
        return Tried(regions, params, odds, same, mass, enough, state)

    def outcome(self, tried: Tried, spec: str | None, moved: str) -> Fit:
        """Measure what else a fit reports, and return the fit."""
        engine = self._engine_of(tried.regions)
        other = float("nan")
        if self.graph.stimuli > 1:
            engine.set_params(tried.params)
            engine.restore(tried.state)
            engine.enter(REPLAY, stimuli=self.stimuli % self.graph.stimuli + 1)
            steps = min(WINDOW, self.setting.horizons[REPLAY])
            other = _mean_odds(engine.run(AGGRESSIVE, steps))
        harm = nominal_harm(self.graph, tried.regions, self.setting, engine=engine)
        return Fit(
            regions=tried.regions,
            params=tried.params,
            odds=tried.odds,
            odds_same=tried.odds_same,
            odds_other=other,
            mass=tried.mass,
            share=operating_point(harm, tried.params).share,
            reached=tried.enough,
            moved=moved,
            spec=spec,
            free_selectivity=other - tried.odds_same,
            runs=self.runs,
            theta=self.theta,
            graph_hash=self.graph.hash,
        )

    def _engine_of(self, regions: npt.NDArray[np.int32]) -> Cascade:
        """The engine of these regions; the last one is kept, since most runs share its regions."""
        if self._engine is None or not np.array_equal(self._engine.regions, regions):
            episodes = len(self.keys)
            self._engine = Cascade(
                self.graph, episodes, setting=self.setting, params=self.params, regions=regions
            )
        return self._engine

    def _replay(
        self, engine: Cascade
    ) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.float32]]:
        """Run all phases; return the state at the start of Replay, and Replay's statistics."""
        engine.start(self.keys, self.stimuli)
        engine.run(AGGRESSIVE, sum(self.setting.horizons[EXPOSURE:REPLAY]))
        return engine.snapshot(), engine.run(AGGRESSIVE, self.setting.horizons[REPLAY])

    @staticmethod
    def _mass(replay: npt.NDArray[np.float32]) -> float:
        return float(replay[:, stats.SENSITIVE].sum(dtype=np.float64))


def _mean_odds(trace: npt.NDArray[np.float32]) -> float:
    """Mean over episodes of the mean OddsRatio of a trace (T, rows, E); NaN where undefined."""
    nominal = trace[:, stats.ENTRY_NOMINAL].astype(np.float64)
    deformed = trace[:, stats.ENTRY_DEFORMED].astype(np.float64)
    some = nominal > 0
    ratio = np.where(some, deformed / np.where(some, nominal, 1), 0)
    steps = some.sum(axis=0)
    known = steps > 0
    if not known.any():
        return float("nan")
    return float((ratio.sum(axis=0)[known] / steps[known]).mean())
