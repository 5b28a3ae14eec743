"""`RSDResult`: the numbers of a diagnostic, episode by episode, with how it was run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.cascade.graph import Graph
from rapo.rsd.bootstrap import Tails, judge_tails
from rapo.rsd.pooled import one_nan, pooled_ratios, totals
from rapo.rsd.statistics import interval_name, mean_interval
from rapo_core.checks import UserError
from rapo_core.files import refuse_to_overwrite

ON_REQUEST = (
    "SM_vs_P0", "Reach_vs_P0", "ReturnKept",  # evaluate(..., against_P0=True)
    "OddsSame", "OddsOther", "Selectivity",  # evaluate(..., selectivity=True)
)  # fmt: skip
"""Metrics that need more runs than the diagnostic's own; NaN unless they were asked for."""
METRICS = (
    "RAG", "AUC_R", "SM_R", "ExposureReturn", "ReplayReturn", "OddsRatio", "EventOdds", "R_c",
    "ASD", "GatingRate", "ScarMass", *ON_REQUEST,
)  # fmt: skip
"""Metrics of the frame; undefined or not available is NaN, never 0."""
MAY_BE_NEGATIVE = ("ExposureReturn", "ReplayReturn", "ReturnKept", "Selectivity")
"""Metrics that rewards or a difference can bring below 0; all others are at least 0."""
TRACES = (
    "reach", "sensitive_mass", "reward", "odds_ratio", "event_odds_ratio", "scar_mass", "served",
    "cost_G",
)  # fmt: skip
"""Series over exposure, decay and replay; what an environment does not report is NaN."""
_FILES = ("episodes.csv", "traces.npz", "manifest.json")


@dataclass(frozen=True)
class RSDResult:
    """Episodes of one policy on one environment."""

    frame: pd.DataFrame
    """A row per episode: episode, seed, stimulus, `METRICS`, and `undefined_odds`, the Replay steps
    without nominal harmful mass, which the mean OddsRatio leaves out; then P0Reach,
    P0SensitiveMass and P0Return, totals of the Replay of the `P0` reference run."""
    traces: dict[str, npt.NDArray[np.float32]]
    """(E, T) each, see `TRACES`."""
    phase: npt.NDArray[np.int64]
    """(T,) 0 exposure, 1 decay, 2 replay."""
    scars: npt.NDArray[np.float32] | None = None
    """(E, R) scar per region at the end of Replay; None if the environment does not tell."""
    laws: npt.NDArray[np.float32] | None = None
    """(E, T, A) action law at every step; None if the policy does not tell."""
    cascade: npt.NDArray[np.bool_] | None = None
    """(T, n) active set of the first episode after every step; None without a graph."""
    activity: npt.NDArray[np.float32] | None = None
    """(3, n) share of each phase's steps that a node is active, over all episodes."""
    graph: Graph | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    """Config, seeds, versions, graph hash."""

    @property
    def graph_hash(self) -> str | None:
        """Hash of the graph that the episodes ran on."""
        graph_hash = self.manifest.get("graph_hash")
        return None if graph_hash is None else str(graph_hash)

    def summary(self, level: float = 0.95) -> dict[str, dict[str, Any]]:
        """Mean, std, interval, n and undefined episodes of every metric.

        The interval is named by its level: `ci95` by default, `ci50` for `level=.5`. It does not
        reach below 0 where no value can.
        """
        out: dict[str, dict[str, Any]] = {}
        for name in METRICS:
            least = -np.inf if name in MAY_BE_NEGATIVE else 0.0
            interval = mean_interval(self.frame[name].to_numpy(float), level, least=least)
            out[name] = {
                "mean": one_nan(interval.mean),
                "std": one_nan(interval.std),
                interval_name(level): [one_nan(interval.low), one_nan(interval.high)],
                "n": interval.n,
                "undefined": interval.undefined,
            }
        return out

    def pooled(self, level: float = 0.95, seed: int = 0) -> dict[str, dict[str, Any]]:
        """The ratios again as ratios of means, with a bootstrap over whole episodes.

        Sum of Replay's peaks over sum of Exposure's for RAG, sums of totals for the others (per
        step where the horizons differ), over those of the `P0` reference run where `evaluate` made
        one. Where Replay repeats Exposure bit for bit this is exactly 1, its interval without
        width. An episode with an empty Exposure counts: only the sum has to be above 0.

        Returns:
            By metric: `ratio` (also as `mean`, to read like `summary`), `std` of the resamples,
            the interval (see `ratio_bootstrap`), named as in `summary`, n and undefined episodes.
        """
        return pooled_ratios(self, level, seed)

    @property
    def tails(self) -> Tails:
        """How much Exposure varies between the episodes, see `judge_tails`."""
        return judge_tails({metric: totals(self, metric)[1] for metric in ("RAG", "AUC_R", "SM_R")})

    @property
    def heavy_tailed(self) -> bool:
        """Whether Exposure varies so much that the pooled ratios are the ones to read."""
        return self.tails.heavy

    def of_phase(self, name: str, phase: int) -> npt.NDArray[np.float32]:
        """(E, steps of the phase) of one trace."""
        if name not in self.traces:
            raise UserError(f"no trace is called {name!r}, there are {sorted(self.traces)}")
        return self.traces[name][:, self.phase == phase]

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write episodes.csv, traces.npz and manifest.json; earlier results are not overwritten."""
        folder = Path(folder)
        refuse_to_overwrite(*files_in(folder), force=force)
        folder.mkdir(parents=True, exist_ok=True)
        self.frame.to_csv(folder / _FILES[0], index=False)
        extra = {
            "scars": self.scars,
            "laws": self.laws,
            "cascade": self.cascade,
            "activity": self.activity,
        }
        arrays: dict[str, Any] = {
            "phase": self.phase,
            **self.traces,
            **{name: value for name, value in extra.items() if value is not None},
        }
        np.savez_compressed(folder / _FILES[1], **arrays)
        text = json.dumps(self.manifest, indent=2, default=str)
        (folder / _FILES[2]).write_text(text + "\n", encoding="utf-8")
        if self.graph is not None:
            target = folder / f"graph-{self.graph.hash}.npz"
            if not target.exists():
                self.graph.save(target)
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> RSDResult:
        """Read what `save` wrote.

        Raises:
            UserError: a file is missing, damaged or of another version.
        """
        folder = Path(folder)
        for name in _FILES:
            if not (folder / name).exists():
                raise UserError(
                    f"{folder} holds no RSD result: {name} is missing; rapo rsd POLICY --out "
                    "writes one"
                )
        try:
            frame = pd.read_csv(folder / _FILES[0])
            manifest = json.loads((folder / _FILES[2]).read_text(encoding="utf-8"))
            with np.load(folder / _FILES[1], allow_pickle=False) as data:
                arrays = {name: data[name] for name in data.files}
        except Exception as error:  # csv, json, zip and NumPy each have their own
            raise UserError(f"the RSD result in {folder} is damaged: {error}") from error
        lost = [name for name in ("phase", *TRACES) if name not in arrays]
        if lost:
            raise UserError(f"the RSD result in {folder} is damaged: {lost} missing")
        lost = [name for name in METRICS if name not in frame]
        if lost:
            raise UserError(f"the RSD result in {folder} has no columns {lost}; run rapo rsd anew")
        stored = folder / f"graph-{manifest.get('graph_hash')}.npz"
        return cls(
            frame=frame,
            traces={name: arrays[name] for name in TRACES},
            phase=arrays["phase"],
            scars=arrays.get("scars"),
            laws=arrays.get("laws"),
            cascade=arrays.get("cascade"),
            activity=arrays.get("activity"),
            graph=Graph.load(stored) if stored.exists() else None,
            manifest=manifest,
        )


def files_in(folder: Path | str) -> list[Path]:
    """The files of a result that is saved in a folder."""
    return [Path(folder) / name for name in _FILES]


def same_graph(results: dict[str, RSDResult]) -> None:
    """Refuse to compare episodes of different graphs as if they were one."""
    hashes = {name: result.graph_hash for name, result in results.items()}
    if len(set(hashes.values())) > 1:
        raise UserError(
            f"the results are of different graphs: {hashes}; compare like with like "
            "(rapo report --mixed shows them side by side)"
        )
