"""Frozen evaluation of a checkpoint as any method that its policy can stand for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rapo.agents.agent import Agent
from rapo.agents.methods import SHIELD_THRESHOLD, Method, method_named
from rapo.agents.resolve import EpisodeRun, open_episodes
from rapo.agents.saved_run import load_run, policy_of
from rapo.agents.shield import Shield
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
    content, run = run_of_graph(path, graph_hash, expected)
    policy, config = policy_of(content), run.config
    row = method_named(config.method if method is None else method)
    if options.get("off_at_replay") and row.name == "RAPO":
        row = method_named("off@rep")
    env = run.evaluation(row.name)
    policy = shielded(policy, row, run, threshold)
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
) -> tuple[dict[str, Any], EpisodeRun]:
    """A checkpoint's content and its run, if it was trained on the graph that the caller expects.

    Args:
        path: `RUN/checkpoint.pt`.
        graph_hash: of the graph; None for whichever it is.
        expected: nodes and graph_seed of a generated one.
    """
    content, config = load_run(path)
    run, kwargs = open_episodes(config), config.env_kwargs
    if graph_hash is not None and graph_hash != run.graph_hash:
        raise UserError(
            f"{path} was trained on graph {run.graph_hash}, got graph {graph_hash}; leave "
            "--nodes, --graph-seed and --graph out to evaluate it on its own"
        )
    for name, value in (expected or {}).items():
        if kwargs.get(name) != value:
            trained = kwargs.get("graph") or f"{config.nodes} nodes, graph_seed {config.graph_seed}"
            raise UserError(
                f"{path} was trained on {trained}, got {name} {value}; leave --nodes, --graph-seed "
                "and --graph out to evaluate it on its own"
            )
    return content, run


def shielded(
    policy: Agent | Shield, row: Method, run: EpisodeRun, threshold: float | None
) -> Agent | Shield:
    """The policy as the method wants it: bare, or behind a shield with the given threshold."""
    bare = policy.policy if isinstance(policy, Shield) else policy
    if row.shield is None:
        if threshold is not None:
            raise UserError(f"{row.name} has no shield, got a threshold of {threshold}")
        assert isinstance(bare, Agent)
        return bare
    if threshold is None and isinstance(policy, Shield) and row.name == run.config.method:
        return policy
    if threshold is None and row.shield == "matched":
        raise UserError(
            f"{row.name} needs its tuned threshold: rapo train {row.name} --policy GE/checkpoint.pt"
            " --match RAPO/checkpoint.pt, or give --threshold"
        )
    reference = run.references()["sensitive_mass"]
    chosen = SHIELD_THRESHOLD if threshold is None else threshold
    return Shield(bare, chosen, reference=reference)
