"""What is run on a network: load, fit, constant and trained policies under three kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any

import pandas as pd

from rapo.agents.config import PPOConfig
from rapo.agents.methods import METHODS
from rapo.agents.resolve import EpisodeRun, open_episodes
from rapo.agents.run_config import graph_run
from rapo.agents.saved_run import load_agent
from rapo.agents.train import train
from rapo.cascade.graph import Graph
from rapo.cascade.setting import AGGRESSIVE, Setting
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.fit import fit
from rapo.jobs.job import Job, digest
from rapo.jobs.lock import locked
from rapo.jobs.tables import read_table, write_table
from rapo.paper.jobs import STEPS_A_SECOND
from rapo.paper.studies.networks.catalogue import NETWORKS, Network
from rapo.policies import ConstantPolicy
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate

POOLED = ("RAG", "AUC_R", "SM_R", "SM_vs_P0", "Reach_vs_P0", "ReturnKept")
MEANS = ("OddsRatio", "EventOdds", "OddsSame", "OddsOther", "Selectivity", "RAG", "SM_R")
TABLES = ("networks", "results")
"""Frames of a job; the last one says that the job is done."""
KERNELS: dict[str, dict[str, Any]] = {
    "off": {"deformation": "off"},
    "full": {},
    "off@rep": dict(METHODS["off@rep"].evaluation),
}
"""Options of the environment: `P0`, RAPO, and RAPO switched off in Replay."""


@dataclass(frozen=True)
class Size:
    """How much is run."""

    steps: int
    """Training steps of RAPO's policy on each network."""
    episodes: int
    networks: tuple[str, ...] = tuple(network.key for network in NETWORKS)
    ppo: PPOConfig = field(default_factory=PPOConfig)


PAPER = Size(steps=400_000, episodes=40)
SIZES = {
    "paper": PAPER,
    "quick": replace(PAPER, steps=60_000, episodes=20),
    "smoke": Size(2_000, 4, ("karate", "generated-50"), PPOConfig(envs=4, rollout=512, hidden=16)),
}


@dataclass(frozen=True)
class Measure:
    """Everything about one network."""

    network: Network
    size: Size
    data: Path

    @property
    def key(self) -> str:
        """Name of the job: the network, its files, and all that is done with them."""
        size, setting = self.size, Setting.default().to_dict()
        values = [size.steps, size.episodes, asdict(size.ppo), setting]
        return f"{self.network.key}-{digest([self.network.contents(self.data), *values])}"

    @property
    def needs(self) -> tuple[Job, ...]:
        """Nothing: a network stands alone."""
        return ()

    @property
    def seconds(self) -> float:
        """Roughly how long one thread will take; large graphs take longer."""
        return self.size.steps / STEPS_A_SECOND["mlp"]

    def done(self, root: Path) -> bool:
        """Whether both tables of the network are there."""
        return all((root / "jobs" / self.key / f"{name}.parquet").exists() for name in TABLES)

    def read(self, root: Path, name: str) -> pd.DataFrame:
        """One of the tables, `results` or `networks`."""
        return read_table(root / "jobs" / self.key / f"{name}.parquet")

    def run(self, root: Path) -> None:
        """Load, fit, train and measure, and write both tables."""
        with locked(root / "jobs" / self.key, f"the job {self.key}"):
            self._run(root / "jobs" / self.key)

    def _run(self, work: Path) -> None:
        start = process_time()
        graph = self.network.load(self.data)
        loading = process_time() - start
        start = process_time()
        fit(graph)
        fitting = process_time() - start
        saved = work / f"graph-{graph.hash}.npz"
        if not saved.exists():
            graph.save(saved)
        config = graph_run(
            "RAPO", graph=str(saved), steps=self.size.steps, ppo=self.size.ppo, fit=True
        )
        train(config, work / "RAPO", resume=True)
        trained, config = load_agent(work / "RAPO")
        policies = {"aggressive": ConstantPolicy(AGGRESSIVE), "RAPO": trained}
        run = open_episodes(config)
        rows = [row for name in policies for row in self._rows(run, name, policies[name])]
        unfitted, share = self._unfitted(graph)
        rows.append(unfitted)
        place = {
            "network": self.network.name, "sensitive": self.network.sensitive, "nodes": graph.n,
            "v_sens": int(graph.sensitive.sum()),
        }  # fmt: skip
        found = fit(graph)
        described = {
            **place, "edges": graph.edges, "components": graph.meta.get("components", 1),
            "capped_edges": graph.meta.get("capped_edges", 0), "regions": found.count,
            "spec": found.spec, "tau": found.params.tau, "fit_odds": found.odds,
            "share": found.share, "reached": found.reached, "share_not_fitted": share,
            "load_seconds": round(loading, 2), "fit_seconds": round(fitting, 2),
            "graph_hash": graph.hash,
        }  # fmt: skip
        write_table(work / "networks.parquet", pd.DataFrame([described]))
        write_table(work / "results.parquet", pd.DataFrame([{**place, **row} for row in rows]))

    def _rows(self, run: EpisodeRun, name: str, policy: Any) -> Iterator[dict[str, Any]]:
        for kernel, options in KERNELS.items():
            env = run.environment(1, **options)
            result = evaluate(
                env, policy, self.size.episodes, against_P0=True, selectivity=kernel == "full"
            )
            yield {"policy": name, "kernel": kernel, **measured(result)}

    def _unfitted(self, graph: Graph) -> tuple[dict[str, Any], float]:
        """RAPO with the paper's constants and regions, and the share of its operating point."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is idle is what the row shows
            env = GraphDiffusionVectorEnv(1, graph=graph, fit=False)
        result = evaluate(
            env, ConstantPolicy(AGGRESSIVE), self.size.episodes, against_P0=True, selectivity=True
        )
        row = {"policy": "aggressive", "kernel": "full, not fitted", **measured(result)}
        return row, float(env.operating_point.to_dict()["share"])


def measured(result: RSDResult) -> dict[str, Any]:
    """Pooled ratios with their intervals, and means over episodes."""
    row: dict[str, Any] = {}
    for name, ratio in result.pooled().items():
        if name in POOLED:
            low, high = ratio["ci95"]
            row |= {name: ratio["ratio"], f"{name}_low": low, f"{name}_high": high}
    means = {name: float(result.frame[name].mean()) for name in MEANS}
    row |= {f"mean_{name}" if name in POOLED else name: mean for name, mean in means.items()}
    return row | {"heavy_tailed": bool(result.heavy_tailed)}
