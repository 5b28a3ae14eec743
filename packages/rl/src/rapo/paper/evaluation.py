"""Frozen evaluation of a run as any method that its policy can stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rapo.agents.agent import Agent
from rapo.agents.cost_env import make_env
from rapo.agents.env_agent import EnvAgent
from rapo.agents.methods import SHIELD_THRESHOLD, Method, method_named
from rapo.agents.resolve import EpisodeRun
from rapo.agents.saved_run import SavedRun, load_agent, load_run, open_saved
from rapo.agents.shield import Shield
from rapo.rsd.result import RSDResult
from rapo.rsd.runner import evaluate
from rapo_core.checks import UserError


def evaluate_run(
    folder: Path | str,
    *,
    method: str | None = None,
    threshold: float | None = None,
    graph_hash: str | None = None,
    expected: Mapping[str, int] | None = None,
    **options: Any,
) -> RSDResult:
    """Run RSD with the policy of a run on the environment it was trained on.

    An environment that is not of this package has to offer the protocol of `rapo.rsd.evaluate`.

    Args:
        folder: the folder of the run.
        method: as what to evaluate it: its own method (default), or one that evaluates its policy
            (off@rep, slow-decay, top-k and local for RAPO; Shield for GE).
        threshold: of a shield, instead of its own.
        graph_hash: the graph that the caller expects; another one is refused.
        expected: the nodes and graph_seed that the caller expects.
        options: of `rapo.rsd.evaluate`.
    """
    if not load_run(folder).config.has_episodes:
        return _evaluate_foreign(folder, (method, threshold, graph_hash, expected), options)
    saved, run = run_of_graph(folder, graph_hash, expected)
    policy, config = saved.policy(), run.config
    row = method_named(config.method if method is None else method)
    if options.get("off_at_replay") and row.name == "RAPO":
        row = method_named("off@rep")
    env = run.evaluation(row.name)
    policy = shielded(policy, row, run, threshold)
    result = evaluate(env, policy, **options)
    rollout = config.ppo.rollout
    training = {"steps": saved.updates * rollout, "of": config.updates * rollout}
    result.manifest.update({"method": row.name, "policy": config.to_dict(), "training": training})
    if isinstance(policy, Shield):
        result.manifest["shield"] = {
            "threshold": policy.threshold,
            "reference": policy.reference,
            "transitions_per_step": policy.transitions_per_step,
        }
    return result


def _evaluate_foreign(
    folder: Path | str, only_ours: Sequence[Any], options: Mapping[str, Any]
) -> RSDResult:
    """Run RSD on the user's own environment that a policy was trained on."""
    policy, config = load_agent(folder)
    assert isinstance(policy, EnvAgent)
    if any(value for value in only_ours):
        raise UserError(
            f"{folder} was trained on {config.env}: leave --method, --threshold and the options "
            "of a graph out"
        )
    result = evaluate(make_env(config.env, config.env_kwargs), policy.actor, **options)
    result.manifest.update({"method": config.method, "policy": config.to_dict()})
    return result


def run_of_graph(
    folder: Path | str, graph_hash: str | None = None, expected: Mapping[str, int] | None = None
) -> tuple[SavedRun, EpisodeRun]:
    """Load a run, if it was trained on the graph that the caller expects.

    Args:
        folder: the folder of the run.
        graph_hash: of the graph; None for whichever it is.
        expected: nodes and graph_seed of a generated one.
    """
    saved, run = open_saved(folder)
    kwargs = run.config.env_kwargs
    if graph_hash is not None and graph_hash != run.graph_hash:
        raise UserError(
            f"{folder} was trained on graph {run.graph_hash}, got graph {graph_hash}; leave "
            "--nodes, --graph-seed and --graph out to evaluate it on its own"
        )
    for name, value in (expected or {}).items():
        if kwargs.get(name) != value:
            trained = kwargs.get("graph") or ", ".join(
                f"{key} {kwargs[key]}" for key in ("nodes", "graph_seed") if key in kwargs
            )
            raise UserError(
                f"{folder} was trained on {trained or run.config.env}, got {name} {value}; leave "
                "--nodes, --graph-seed and --graph out to evaluate it on its own"
            )
    return saved, run


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
            f"{row.name} needs its tuned threshold: rapo train {row.name} --policy GE --match "
            "RAPO, or give --threshold"
        )
    reference = run.references()["sensitive_mass"]
    chosen = SHIELD_THRESHOLD if threshold is None else threshold
    return Shield(bare, chosen, reference=reference)
