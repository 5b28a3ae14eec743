"""`RSDResult`: what a diagnostic found, episode by episode, with how it was run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.cascade.graph import Graph
from rapo.rsd.statistics import mean_interval

METRICS = (
    "RAG", "AUC_R", "SM_R", "ExposureReturn", "ReplayReturn", "OddsRatio", "R_c", "ASD",
    "GatingRate", "ScarMass",
)  # fmt: skip
"""Metrics of the frame; undefined or not available is NaN, never 0."""
TRACES = ("reach", "sensitive_mass", "reward", "odds_ratio", "scar_mass", "served")
"""Series over exposure, decay and replay; what an environment does not report is NaN."""
_FILES = ("episodes.csv", "traces.npz", "manifest.json")


@dataclass(frozen=True)
class RSDResult:
    """Episodes of one policy on one environment."""

    frame: pd.DataFrame
    """A row per episode: episode, seed, stimulus, `METRICS`, and `undefined_odds`, the Replay steps
    without nominal harmful mass, which the mean OddsRatio leaves out."""
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
        found = self.manifest.get("graph_hash")
        return None if found is None else str(found)

    def summary(self, level: float = 0.95) -> dict[str, dict[str, Any]]:
        """Mean, std, `ci95` (of the given level), n and undefined episodes of every metric."""
        out = {}
        for name in METRICS:
            found = mean_interval(self.frame[name].to_numpy(float), level)
            out[name] = {
                "mean": found.mean,
                "std": found.std,
                "ci95": [found.low, found.high],
                "n": found.n,
                "undefined": found.undefined,
            }
        return out

    def of_phase(self, name: str, phase: int) -> npt.NDArray[np.float32]:
        """(E, steps of the phase) of one trace."""
        if name not in self.traces:
            raise ValueError(f"no trace is called {name!r}, there are {sorted(self.traces)}")
        return self.traces[name][:, self.phase == phase]

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write episodes.csv, traces.npz and manifest.json; earlier results are not overwritten."""
        folder = Path(folder)
        if not force:
            refuse_to_overwrite(folder)
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
        """Read what `save` wrote; a missing or damaged file is named."""
        folder = Path(folder)
        for name in _FILES:
            if not (folder / name).exists():
                raise ValueError(
                    f"{folder} holds no RSD result: {name} is missing; rapo rsd POLICY --out "
                    "writes one"
                )
        try:
            frame = pd.read_csv(folder / _FILES[0])
            manifest = json.loads((folder / _FILES[2]).read_text(encoding="utf-8"))
            with np.load(folder / _FILES[1], allow_pickle=False) as data:
                arrays = {name: data[name] for name in data.files}
        except Exception as error:  # csv, json, zip and NumPy each have their own
            raise ValueError(f"the RSD result in {folder} is damaged: {error}") from error
        lost = [name for name in ("phase", *TRACES) if name not in arrays]
        if lost:
            raise ValueError(f"the RSD result in {folder} is damaged: {lost} missing")
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


def refuse_to_overwrite(folder: Path, *, force: bool = False) -> None:
    """Raise if a folder is a file, or holds results already that are not to be overwritten."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise FileExistsError(f"{place} is a file; choose another folder")
    taken = [name for name in _FILES if (folder / name).exists()]
    if taken and not force:
        raise FileExistsError(
            f"{folder / taken[0]} exists; choose another folder or pass force=True (--force)"
        )


def same_graph(results: dict[str, RSDResult]) -> None:
    """Refuse to compare episodes of different graphs as if they were one."""
    hashes = {name: result.graph_hash for name, result in results.items()}
    if len(set(hashes.values())) > 1:
        raise ValueError(
            f"the results are of different graphs: {hashes}; compare like with like "
            "(rapo report --mixed shows them side by side)"
        )
