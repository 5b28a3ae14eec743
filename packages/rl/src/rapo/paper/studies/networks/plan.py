"""What is run on a network: load, fit, constant and trained policies under three kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

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
from rapo.paper.pieces import write_rows
from rapo.paper.studies.networks.catalogue import NETWORKS, Network
from rapo.paper.task import Alone, Tell, digest
from rapo.policies import ConstantPolicy
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo_core.version import VERSION

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
class Measure(Alone):
    """Everything about one network."""

    network: Network
    size: Size
    data: Path

    @property
    def key(self) -> str:
        """Name of the piece."""
        size, setting = self.size, Setting.default().to_dict()
        spec = [self.network.key, size.steps, size.episodes, asdict(size.ppo), setting]
        return f"{self.network.key}-{digest(spec)}"

    def run(self, root: Path, tell: Tell) -> None:
        """Load, fit, train and measure; the piece is written at once or not at all."""
        start = process_time()
        graph = self.network.load(self.data)
        loading = process_time() - start
        start = process_time()
        fit(graph)
        fitting = process_time() - start
        work = root / "work" / self.key
        saved = work / f"graph-{graph.hash}.npz"
        if not saved.exists():
            work.mkdir(parents=True, exist_ok=True)
            graph.save(saved)
        start = perf_counter()
        config = graph_run(
            "RAPO", graph=str(saved), steps=self.size.steps, ppo=self.size.ppo, fit=True
        )
        total = config.updates * config.ppo.rollout
        train(config, work / "RAPO", resume=True, report=lambda s, _: tell(0.9 * s / total))
        trained, config = load_agent(work / "RAPO" / "checkpoint.pt")
        training = perf_counter() - start
        policies = {"aggressive": ConstantPolicy(AGGRESSIVE), "RAPO": trained}
        rows = [
            row
            for name in policies
            for row in self._rows(open_episodes(config), name, policies[name])
        ]
        rows += self._unfitted(graph)
        content = {
            "key": self.key, "version": VERSION, "network": self.network.name,
            "sensitive": self.network.sensitive, "graph_hash": graph.hash, "nodes": graph.n,
            "edges": graph.edges, "v_sens": int(graph.sensitive.sum()),
            "components": graph.meta.get("components", 1),
            "capped_edges": graph.meta.get("capped_edges", 0),
            "load_seconds": round(loading, 2), "fit_seconds": round(fitting, 2),
            "train_seconds": round(training, 1), "fit": _without_regions(fit(graph).to_dict()),
            "rows": rows,
        }  # fmt: skip
        write_rows(self.piece(root), content)

    def _rows(self, run: EpisodeRun, name: str, policy: Any) -> Iterator[dict[str, Any]]:
        for kernel, options in KERNELS.items():
            env = run.environment(1, **options)
            result = evaluate(
                env, policy, self.size.episodes, against_P0=True, selectivity=kernel == "full"
            )
            yield {"policy": name, "kernel": kernel, **measured(result)}

    def _unfitted(self, graph: Graph) -> list[dict[str, Any]]:
        """RAPO with the paper's constants and regions, as it is without a fit."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is idle is what the row shows
            env = GraphDiffusionVectorEnv(1, graph=graph, fit=False)
        result = evaluate(
            env, ConstantPolicy(AGGRESSIVE), self.size.episodes, against_P0=True, selectivity=True
        )
        point = env.operating_point.to_dict()
        return [{"policy": "aggressive", "kernel": "full, not fitted", "point": point,
                 **measured(result)}]  # fmt: skip


def measured(result: RSDResult) -> dict[str, Any]:
    """Means over episodes, and pooled ratios with their intervals."""
    means = {
        name: result.frame[name].mean()
        for name in ("RAG", "AUC_R", "SM_R", "OddsRatio", "EventOdds", "OddsSame", "OddsOther",
                     "Selectivity", "R_c", "GatingRate", "ReplayReturn", "ASD")
    }  # fmt: skip
    pooled = {
        name: {"ratio": found["ratio"], "low": found["ci95"][0], "high": found["ci95"][1]}
        for name, found in result.pooled().items()
    }
    return {
        "means": {name: _plain(value) for name, value in means.items()},
        "pooled": {n: {k: _plain(v) for k, v in found.items()} for n, found in pooled.items()},
        "heavy_tailed": bool(result.heavy_tailed),
    }


def _plain(value: Any) -> float | None:
    number = float(value)
    return None if number != number else float(f"{number:.6g}")


def _without_regions(outcome: dict[str, Any]) -> dict[str, Any]:
    counted = max(outcome["regions"]) + 1
    return {**{k: v for k, v in outcome.items() if k != "regions"}, "count": counted}
