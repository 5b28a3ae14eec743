"""What `rapo rsd` does with its words: find policy and graph, read the horizons, evaluate."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.cascade.graph import Graph
from rapo.cascade.setting import ACTIONS, AGGRESSIVE, MODERATE
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.generate import generate
from rapo.graphs.load import read_graph
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo_core.checks import UserError


class ConstantPolicy:
    """Always the same action, with its law.

    Args:
        action: which one.
        actions: how many there are; default those of a graph.
    """

    batched = True

    def __init__(self, action: int, actions: int = len(ACTIONS)) -> None:
        self.action, self.actions = action, actions

    def __call__(self, x: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Actions (E,) for observations (E, d)."""
        return np.full(len(x), self.action)

    def law(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """(E, A) all mass on the action."""
        law = np.zeros((len(x), self.actions))
        law[:, self.action] = 1
        return law


SCRIPTED_SHARE = 0.03
"""Share of active nodes above which the scripted policy holds back."""


def scripted_policy(x: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Inject aggressively, moderately while more than 3% of the nodes are active; x is (E, 5)."""
    return np.where(x[:, 0] > SCRIPTED_SHARE, MODERATE, AGGRESSIVE)


scripted_policy.batched = True  # type: ignore[attr-defined]  # takes all observations at once


def run_rsd(
    policy: str,
    *,
    nodes: int | None,
    graph_seed: int | None,
    graph: Path | None,
    made_of: Mapping[str, Any],
    method: str | None,
    threshold: float | None,
    options: Mapping[str, Any],
) -> RSDResult:
    """Evaluate a policy by name, or a checkpoint on the graph it was trained on.

    Args:
        policy: words of `find_policy`, or a checkpoint (.pt).
        nodes: size of a generated graph, default 250; or None.
        graph_seed: its seed, default 0; or None.
        graph: a saved graph instead.
        made_of: deformation, regions, fit and observe of the environment; None for the default.
        method: as what to evaluate a checkpoint.
        threshold: of a checkpoint's shield.
        options: of `rapo.rsd.evaluate`.
    """
    if graph is not None and (nodes is not None or graph_seed is not None):
        raise UserError(f"give either --graph {graph} or --nodes and --graph-seed, not both")
    chosen = {name: value for name, value in made_of.items() if value is not None}
    if not policy.endswith(".pt"):
        for name, value in (("--method", method), ("--threshold", threshold)):
            if value is not None:
                raise UserError(f"{name} is for checkpoints (RUN/checkpoint.pt), got {policy!r}")
        whole = _graph(nodes, graph_seed, graph)
        env = GraphDiffusionVectorEnv(1, graph=whole, **chosen)
        return evaluate(env, find_policy(policy), **options)
    try:
        from rapo.paper.evaluation import evaluate_checkpoint
    except ImportError as error:
        raise UserError(f"this needs torch; pip install 'rapo-rl[torch]' ({error})") from None
    if chosen:
        raise UserError(
            f"a checkpoint brings its own {', '.join(made_of)}, got {chosen}; see --method for "
            "what else it can be evaluated as"
        )
    expected = {"nodes": nodes, "graph_seed": graph_seed}
    return evaluate_checkpoint(
        policy,
        method=method,
        threshold=threshold,
        expected={name: value for name, value in expected.items() if value is not None},
        graph_hash=None if graph is None else _read(graph).hash,
        **options,
    )


def _graph(nodes: int | None, graph_seed: int | None, graph: Path | None) -> Graph:
    if graph is not None:
        return _read(graph)
    return generate(250 if nodes is None else nodes, 0 if graph_seed is None else graph_seed)


def _read(graph: Path) -> Graph:
    """The graph of `--graph`; the options that mend a file are those of `rapo graph`."""
    try:
        return read_graph(graph)
    except ValueError as error:
        raise UserError(
            f"{error}; rapo graph {graph} --out net.npz takes such options, and "
            "--graph takes net.npz"
        ) from error


def find_policy(name: str) -> Any:
    """A policy from its name: a constant action, `scripted`, an SB3 file or `module:attribute`."""
    if name in ACTIONS:
        return ConstantPolicy(ACTIONS.index(name))
    if name == "scripted":
        return scripted_policy
    if name.endswith(".zip"):
        from rapo.rsd.saved_models import load_saved_model

        return load_saved_model(name)
    if (Path(name) / "checkpoint.pt").exists():
        raise UserError(f"{name} is a run; its policy is {Path(name) / 'checkpoint.pt'}")
    module, colon, attribute = name.partition(":")
    if colon and module and attribute:
        if (here := os.getcwd()) not in sys.path:  # the console script does not look here
            sys.path.insert(0, here)
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UserError(f"cannot load the policy {name}: {error}") from error
    raise UserError(
        f"no policy is called {name!r}; choose {', '.join(ACTIONS)}, scripted, a checkpoint .pt, "
        "an SB3 .zip or package.module:name"
    )


def remarks(manifest: Mapping[str, Any]) -> list[str]:
    """What a reader of the numbers should know of the policy behind them, a line each."""
    lines = []
    shield, training = manifest.get("shield"), manifest.get("training")
    if shield is not None:
        lines.append(
            f"The shield (threshold {shield['threshold']:.4g}) simulated "
            f"{shield['transitions_per_step']:,.0f} transitions per environment step."
        )
    if training is not None and training["steps"] < training["of"]:
        lines.append(
            f"The policy's training is not finished: {training['steps']:,} of "
            f"{training['of']:,} steps."
        )
    return lines


def parse_horizons(text: str) -> tuple[int, int, int]:
    """Three whole numbers from `500,200,500`."""
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
        raise UserError(f"horizons must be three whole numbers such as 500,200,500, got {text!r}")
    exposure, decay, replay = (int(part) for part in parts)
    return exposure, decay, replay
