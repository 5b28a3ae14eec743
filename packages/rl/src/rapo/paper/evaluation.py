"""Frozen evaluation of a checkpoint as any method that its policy can stand for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rapo.agents.agent import Agent, load_run, policy_of
from rapo.agents.methods import SHIELD_THRESHOLD, Method, method_named
from rapo.agents.shield import Shield
from rapo.agents.train_config import TrainConfig
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo_core.checks import UserError


def evaluate_checkpoint(
    path: Path | str,
    *,
    method: str | None = None,
    threshold: float | None = None,
    graph_hash: str | None = None,
    expected: Mapping[str, int] | None = None,
    **options: Any,
) -> RSDResult:
    """Run RSD with the policy of a checkpoint on the graph it was trained on.

    Args:
        path: `RUN/checkpoint.pt`.
        method: as what to evaluate it: its own method (default), or one that evaluates its policy
            (off@rep, slow-decay, top-k and local for RAPO; Shield for GE).
        threshold: of a shield, instead of its own.
        graph_hash: the graph that the caller expects; another one is refused.
        expected: the nodes and graph_seed that the caller expects.
        options: of `rapo.rsd.evaluate`.
    """
    content, config = run_of_graph(path, graph_hash, expected)
    policy = policy_of(content)
    row = method_named(config.method if method is None else method)
    if options.get("off_at_replay") and row.name == "RAPO":
        row = method_named("off@rep")
    env = config.evaluation(row.name)
    policy = shielded(policy, row, config, threshold)
    result = evaluate(env, policy, **options)
    rollout = config.ppo.rollout
    training = {"steps": content["learner"]["updates"] * rollout, "of": config.updates * rollout}
    result.manifest.update({"method": row.name, "policy": config.to_dict(), "training": training})
    if isinstance(policy, Shield):
        result.manifest["shield"] = {
            "threshold": policy.threshold,
            "reference": policy.reference,
            "transitions_per_step": policy.transitions_per_step,
        }
    return result


def run_of_graph(
    path: Path | str, graph_hash: str | None = None, expected: Mapping[str, int] | None = None
) -> tuple[dict[str, Any], TrainConfig]:
    """A checkpoint's content and config, if it was trained on the graph that the caller expects.

    Args:
        path: `RUN/checkpoint.pt`.
        graph_hash: of the graph; None for whichever it is.
        expected: nodes and graph_seed of a generated one.
    """
    content, config = load_run(path)
    if graph_hash is not None and graph_hash != config.network.hash:
        raise UserError(
            f"{path} was trained on graph {config.network.hash}, got graph {graph_hash}; leave "
            "--nodes, --graph-seed and --graph out to evaluate it on its own"
        )
    for name, value in (expected or {}).items():
        if config.graph is not None or getattr(config, name) != value:
            trained = config.graph or f"{config.nodes} nodes, graph_seed {config.graph_seed}"
            raise UserError(
                f"{path} was trained on {trained}, got {name} {value}; leave --nodes, --graph-seed "
                "and --graph out to evaluate it on its own"
            )
    return content, config


def shielded(
    policy: Agent | Shield, row: Method, config: TrainConfig, threshold: float | None
) -> Agent | Shield:
    """The policy as the method wants it: bare, or behind a shield with the given threshold."""
    bare = policy.policy if isinstance(policy, Shield) else policy
    if row.shield is None:
        if threshold is not None:
            raise UserError(f"{row.name} has no shield, got a threshold of {threshold}")
        assert isinstance(bare, Agent)
        return bare
    if threshold is None and isinstance(policy, Shield) and row.name == config.method:
        return policy
    if threshold is None and row.shield == "matched":
        raise UserError(
            f"{row.name} needs its tuned threshold: rapo train {row.name} --policy GE/checkpoint.pt"
            " --match RAPO/checkpoint.pt, or give --threshold"
        )
    reference = config.references()["sensitive_mass"]
    chosen = SHIELD_THRESHOLD if threshold is None else threshold
    return Shield(bare, chosen, reference=reference)
