"""The demo: a scripted policy runs exposure, washout and replay under three kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from rapo.agents.methods import METHODS
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.generate import generate
from rapo.policies import scripted_policy
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo_core.checks import UserError, whole_number
from rapo_core.files import refuse_to_overwrite

KERNELS: dict[str, dict[str, Any]] = {
    "P0": {"deformation": "off"},
    "RAPO": {"deformation": "full"},
    "off@rep": {"deformation": "full", **METHODS["off@rep"].evaluation},
}
"""The stationary kernel, the deformed one, and the deformed one switched off in Replay."""

METRICS = ("RAG", "AUC_R", "SM_R", "ReplayRet", "OddsRatio")
"""Metrics in the columns of the demo's table."""


def summarise(results: dict[str, RSDResult]) -> pd.DataFrame:
    """Mean and standard deviation of the replay metrics over episodes, a row per kernel."""
    base = results["P0"].frame["ReplayReturn"].mean()
    table = []
    for name, result in results.items():
        frame = result.frame.assign(ReplayRet=result.frame["ReplayReturn"] / base)
        row: dict[str, object] = {"kernel": name, "episodes": len(frame)}
        for metric in METRICS:
            row[metric] = frame[metric].mean()
            row[f"{metric}_std"] = frame[metric].std()
        table.append(row)
    return pd.DataFrame(table)


def run_demo(
    nodes: int, graph_seed: int, episodes: int, seed: int, out: Path | str, *, force: bool = False
) -> tuple[dict[str, RSDResult], list[Path]]:
    """Run all kernels, write `table.csv` and `replay.png` to `out`; return results and files."""
    from rich.progress import Progress

    from rapo.show.demo_figure import replay_figure

    out = Path(out)
    if episodes < 2:
        raise UserError(f"episodes must be >= 2 for a standard deviation, got {episodes}")
    whole_number("seed", seed, 0)
    files = [out / "table.csv", out / "replay.png"]
    refuse_to_overwrite(*files, force=force)
    results = {}
    with Progress(transient=True) as progress:
        task = progress.add_task(f"graph of {nodes} nodes", total=1 + len(KERNELS))
        graph = generate(nodes, graph_seed)
        for kernel, options in KERNELS.items():
            progress.update(task, advance=1, description=f"{kernel}: exposure, washout, replay")
            env = GraphDiffusionVectorEnv(1, graph=graph, **options)
            results[kernel] = evaluate(env, scripted_policy, episodes, seed)
    table = summarise(results)
    out.mkdir(parents=True, exist_ok=True)
    table.to_csv(files[0], index=False, float_format="%.4f")
    figure, _ = replay_figure(graph, results)
    figure.savefig(files[1], dpi=120)
    return results, files
