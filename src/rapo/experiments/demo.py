"""The demo: one scripted policy through exposure, washout and replay under three kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapo.cascade.generate import generate
from rapo.cascade.graph import Graph
from rapo.cascade.setting import AGGRESSIVE, EXPOSURE, MODERATE, REPLAY, Setting
from rapo.core.validate import whole_number
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.rsd.metrics import auc_ratio, discounted, rag

KERNELS: dict[str, dict[str, Any]] = {
    "P0": {"deformation": "off"},
    "RAPO": {"deformation": "full"},
    "off@rep": {"deformation": "full", "deform_phases": (True, True, False)},
}
"""The stationary kernel, the deformed one, and the deformed one switched off in Replay."""

WIDE = 0.03
"""Active share above which the scripted policy holds back."""


def scripted_policy(x: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Inject aggressively, moderately while more than 3% of the nodes are active; x is (E, 5)."""
    return np.where(x[:, 0] > WIDE, MODERATE, AGGRESSIVE)


@dataclass(frozen=True)
class Run:
    """One kernel's episodes: series are (E, T) over the whole schedule."""

    reach: npt.NDArray[np.float64]
    sensitive: npt.NDArray[np.float64]
    reward: npt.NDArray[np.float64]
    odds_ratio: npt.NDArray[np.float64]
    scar: npt.NDArray[np.float64]
    phase: npt.NDArray[np.int64]
    """(T,) phase of each step."""
    activity: npt.NDArray[np.float64]
    """(2, n) share of Exposure's and of Replay's steps that a node is active."""


def run_kernel(
    graph: Graph,
    kernel: str,
    episodes: int,
    seed: int,
    on_step: Callable[[], object] = lambda: None,
) -> Run:
    """Run the RSD schedule once for all episodes with the scripted policy."""
    env = GraphDiffusionVectorEnv(
        episodes, graph=graph, autoreset_mode="Disabled", **KERNELS[kernel]
    )
    x, _ = env.reset(seed=seed)
    names = ("reach", "sensitive_mass", "odds_ratio", "scar_mass")
    rows: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in (*names, "reward")}
    activity = np.zeros((3, graph.n))
    phases: list[int] = []
    truncated = np.zeros(episodes, np.bool_)
    while not truncated.all():
        phases.append(int(env.phase[0]))
        x, reward, _, truncated, info = env.step(scripted_policy(x))
        for name in names:
            rows[name].append(info[name])
        rows["reward"].append(reward)
        activity[phases[-1]] += env.engine.active.mean(axis=0)
        on_step()
    series = {name: np.stack(values, axis=1).astype(float) for name, values in rows.items()}
    steps = np.bincount(phases, minlength=3)[:, None]
    return Run(
        reach=series["reach"],
        sensitive=series["sensitive_mass"],
        reward=series["reward"],
        odds_ratio=series["odds_ratio"],
        scar=series["scar_mass"],
        phase=np.array(phases),
        activity=(activity / steps)[[EXPOSURE, REPLAY]],
    )


def summarise(runs: dict[str, Run]) -> pd.DataFrame:
    """A row per kernel: mean and std over episodes of the replay metrics."""
    base = discounted(runs["P0"].reward[:, runs["P0"].phase == REPLAY]).mean()
    table = []
    for name, run in runs.items():
        before, after = run.phase == EXPOSURE, run.phase == REPLAY
        metrics = {
            "RAG": rag(run.reach[:, before], run.reach[:, after]),
            "AUC_R": auc_ratio(run.reach[:, before], run.reach[:, after]),
            "SM_R": auc_ratio(run.sensitive[:, before], run.sensitive[:, after]),
            "ReplayRet": discounted(run.reward[:, after]) / base,
            "OddsRatio": np.nanmean(run.odds_ratio[:, after], axis=1),
        }
        row: dict[str, object] = {"kernel": name, "episodes": len(run.reach)}
        for metric, values in metrics.items():
            row[metric] = np.nanmean(values)
            row[f"{metric}_std"] = np.nanstd(values, ddof=1)
        table.append(row)
    return pd.DataFrame(table)


def run_demo(
    nodes: int, graph_seed: int, episodes: int, seed: int, out: Path, *, force: bool = False
) -> tuple[pd.DataFrame, list[Path]]:
    """Run all kernels, write `table.csv` and `replay.png` to `out`; returns the table and files."""
    from rich.progress import Progress

    from rapo.experiments.demo_figure import replay_figure

    if episodes < 2:
        raise ValueError(f"episodes must be >= 2 to tell a spread, got {episodes}")
    whole_number("seed", seed, 0)
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out} is a file; choose another --out")
    files = [out / "table.csv", out / "replay.png"]
    taken = [file for file in files if file.exists()]
    if taken and not force:
        raise FileExistsError(f"{taken[0]} exists; choose another --out or pass --force")
    with Progress(transient=True) as progress:
        building = progress.add_task(f"graph of {nodes} nodes", total=None)
        graph = generate(nodes, graph_seed)
        progress.remove_task(building)
        runs = {}
        for kernel in KERNELS:
            steps = sum(Setting.default().horizons)
            task = progress.add_task(f"{kernel}: exposure, washout, replay", total=steps)
            runs[kernel] = run_kernel(
                graph, kernel, episodes, seed, partial(progress.advance, task)
            )
            progress.remove_task(task)
    table = summarise(runs)
    out.mkdir(parents=True, exist_ok=True)
    table.to_csv(files[0], index=False, float_format="%.4f")
    figure, _ = replay_figure(graph, runs)
    figure.savefig(files[1], dpi=120)
    return table, files
