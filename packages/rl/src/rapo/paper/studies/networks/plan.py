"""One job for each network: load, fit, and run constant and trained policies under each kernel."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import pandas as pd

from rapo.agents.config import PPOConfig
from rapo.agents.methods import METHODS
from rapo.agents.resolve import open_episodes
from rapo.agents.run_config import graph_run
from rapo.agents.saved_run import load_agent
from rapo.agents.train import train
from rapo.cascade.graph import Graph
from rapo.cascade.setting import AGGRESSIVE, Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit import fit
from rapo.jobs.job import Job, digest
from rapo.jobs.lock import locked
from rapo.jobs.tables import JOBS, job_table, write_table
from rapo.paper.jobs import STEPS_A_SECOND
from rapo.paper.presets import Preset
from rapo.paper.studies.networks.catalogue import NETWORKS, Network
from rapo.policies import ConstantPolicy
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate

POOLED = ("RAG", "AUC_R", "SM_R", "SM_vs_P0", "Reach_vs_P0", "ReturnKept")
MEANS = ("OddsRatio", "EventOdds", "OddsSame", "OddsOther", "Selectivity", "RAG", "SM_R")
TABLES = ("networks", "results")
"""Frames of a job: the network and its fit, then a row per policy and kernel."""
KERNELS: dict[str, dict[str, Any]] = {
    "off": {"deformation": "off"},
    "full": {},
    "off@rep": dict(METHODS["off@rep"].evaluation),
}
"""Options of the environment: `P0`, RAPO, and RAPO switched off in Replay."""
UNFITTED = "full, not fitted"
"""RAPO's kernel with the paper's constants and regions."""


@dataclass(frozen=True)
class NetworkJob:
    """Everything that is measured on one network."""

    network: Network
    data: Path
    """Folder below which the files of real networks lie."""
    steps: int
    """Training steps of RAPO's policy."""
    episodes: int
    ppo: PPOConfig

    @property
    def key(self) -> str:
        """Name of the job: the network, the contents of its files, and all that is run on it."""
        values = [self.steps, self.episodes, asdict(self.ppo), Setting.default().to_dict()]
        return f"{self.network.key}-{digest([self.network.contents(self.data), *values])}"

    @property
    def needs(self) -> tuple[Job, ...]:
        """A network needs no other job."""
        return ()

    @property
    def seconds(self) -> float:
        """Roughly how long one thread will take; large graphs take longer."""
        return self.steps / STEPS_A_SECOND["mlp"]

    def folder(self, root: Path) -> Path:
        """Where the tables and the training are."""
        return root / JOBS / self.key

    def done(self, root: Path) -> bool:
        """Whether both tables of the network are there."""
        return all(job_table(root, self.key, name) is not None for name in TABLES)

    def read(self, root: Path, name: str) -> pd.DataFrame:
        """Read one of the tables, with a column `title` for tables and figures."""
        frame = job_table(root, self.key, name)
        assert frame is not None  # a study is drawn when its jobs are done
        return frame.assign(title=f"{self.network.title} ({frame['nodes'].iloc[0]:,})")

    def run(self, root: Path) -> None:
        """Load, fit, train and measure, and write both tables."""
        with locked(self.folder(root), f"the job {self.key}"):
            self._run(self.folder(root))

    def _run(self, folder: Path) -> None:
        start = process_time()
        graph = self.network.load(self.data)
        loaded = process_time()
        fitted = fit(graph)
        end = process_time()
        rows = [*self._fitted_rows(graph, folder)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they say that RAPO is idle, which the row shows
            env = GraphDiffusionVectorEnv(1, graph=graph, fit=False)
        rows.append(
            {"policy": "aggressive", "kernel": UNFITTED}
            | self._measured(env, ConstantPolicy(AGGRESSIVE), selectivity=True)
        )
        place = {
            "network": self.network.name,
            "sensitive": self.network.sensitive,
            "nodes": graph.n,
            "v_sens": int(graph.sensitive.sum()),
        }
        about = {
            **place,
            "edges": graph.edges,
            "components": graph.meta.get("components", 1),
            "capped_edges": graph.meta.get("capped_edges", 0),
            "regions": fitted.count,
            "spec": fitted.spec,
            "tau": fitted.params.tau,
            "fit_odds": fitted.odds,
            "share": fitted.share,
            "reached": fitted.reached,
            "share_not_fitted": float(env.operating_point.to_dict()["share"]),
            "load_seconds": round(loaded - start, 2),
            "fit_seconds": round(end - loaded, 2),
            "graph_hash": graph.hash,
        }
        for name, part in (("networks", [about]), ("results", [{**place, **row} for row in rows])):
            write_table(folder / f"{name}.parquet", pd.DataFrame(part))

    def _fitted_rows(self, graph: Graph, work: Path) -> Iterator[dict[str, Any]]:
        """Measure the constant aggressive action and RAPO's policy under each fitted kernel."""
        saved = work / f"graph-{graph.hash}.npz"
        if not saved.exists():
            graph.save(saved)
        config = graph_run("RAPO", graph=str(saved), steps=self.steps, ppo=self.ppo, fit=True)
        train(config, work / "RAPO", resume=True)
        trained, config = load_agent(work / "RAPO")
        run = open_episodes(config)
        for name, policy in (("aggressive", ConstantPolicy(AGGRESSIVE)), ("RAPO", trained)):
            for kernel, options in KERNELS.items():
                env = run.environment(1, **options)
                yield {
                    "policy": name,
                    "kernel": kernel,
                    **self._measured(env, policy, selectivity=kernel == "full"),
                }

    def _measured(self, env: Any, policy: Any, *, selectivity: bool) -> dict[str, Any]:
        """Run RSD; return pooled ratios with their intervals, and means over episodes."""
        result: RSDResult = evaluate(
            env, policy, self.episodes, against_P0=True, selectivity=selectivity
        )
        row: dict[str, Any] = {}
        for name, ratio in result.pooled().items():
            if name in POOLED:
                low, high = ratio["ci95"]
                row |= {name: ratio["ratio"], f"{name}_low": low, f"{name}_high": high}
        for name in MEANS:
            column = f"mean_{name}" if name in POOLED else name
            row[column] = float(result.frame[name].mean())
        return row | {"heavy_tailed": bool(result.heavy_tailed)}


def selected(preset: Preset) -> list[Network]:
    """Networks that a preset asks for, in the order of the catalogue."""
    return [n for n in NETWORKS if not preset.networks or n.key in preset.networks]


def plan(preset: Preset) -> list[NetworkJob]:
    """One job for each network whose files are there."""
    data = Path(preset.data)
    return [
        NetworkJob(network, data, preset.network_steps, preset.network_episodes, preset.ppo)
        for network in selected(preset)
        if not network.missing(data)
    ]
