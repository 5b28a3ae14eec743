"""The environment and the policy that `rapo watch` films."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rapo.cascade.setting import ACTIONS
from rapo.envs.episodes import EpisodesVectorEnv
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.load import read_graph
from rapo.platforms.cascade.entry import CASCADE
from rapo.policies import ConstantPolicy, find_policy, is_run
from rapo.suite.domains import DOMAINS
from rapo.suite.policies import ScoredPolicy
from rapo_core.checks import UserError

ENTRIES = {entry.env: entry for entry in DOMAINS.values()}


def open_subject(
    env: str,
    *,
    nodes: int | None = None,
    graph_seed: int | None = None,
    graph: Path | None = None,
    platform_seed: int | None = None,
    policy: str | None = None,
) -> tuple[EpisodesVectorEnv, Any]:
    """Make the environment, under the deformed kernel, and the policy.

    Args:
        env: Gymnasium id of a graph or of a platform of this package.
        nodes: size of a generated graph.
        graph_seed: seed of a generated graph.
        graph: file of a graph.
        platform_seed: seed of a platform.
        policy: name or number of an action, a run, a .zip of Stable-Baselines3,
            `module:name`, or on graphs `scripted`; default the constant action of the environment.

    Raises:
        UserError: the arguments do not fit together, or name nothing.
    """
    entry = ENTRIES.get(env)
    if entry is None:
        raise UserError(f"no film of {env!r}; --env is one of {', '.join(ENTRIES)}")
    of_graphs = {"--nodes": nodes, "--graph-seed": graph_seed, "--graph": graph}
    of_platforms = {"--platform-seed": platform_seed}
    kind, foreign = ("platforms", of_platforms) if entry is CASCADE else ("graphs", of_graphs)
    for option, value in foreign.items():
        if value is not None:
            raise UserError(f"{option} {value} is for {kind}, not for --env {env}")
    if graph is not None and (nodes is not None or graph_seed is not None):
        raise UserError(f"give either --graph {graph} or --nodes and --graph-seed, not both")
    if entry is CASCADE and policy is not None and is_run(policy):
        return _trained(policy, nodes, graph_seed, graph)
    if graph is not None:
        made: EpisodesVectorEnv = GraphDiffusionVectorEnv(1, graph=read_graph(graph))
    else:
        size: dict[str, Any] = {} if nodes is None else {"nodes": nodes}
        made = entry.make(graph_seed or platform_seed or 0, **size)
    space: Any = made.single_action_space
    if policy is None:
        return made, ConstantPolicy(entry.action, int(space.n))
    if is_run(policy) or policy.endswith(".zip") or ":" in policy:
        scored = ScoredPolicy.named(policy)
        observe = scored.check(entry, made)
        shown = made if observe == "x" else made.like(1, observe=observe)
        return shown, scored.load(entry, made)[0]
    names = ACTIONS if entry is CASCADE else ()
    return made, find_policy(policy, actions=int(space.n), action_names=names)


def _trained(
    path: str, nodes: int | None, graph_seed: int | None, graph: Path | None
) -> tuple[EpisodesVectorEnv, Any]:
    """A run on the graph that it was trained on; options that name another are refused."""
    from rapo.paper.evaluation import run_of_graph

    expected = {"nodes": nodes, "graph_seed": graph_seed}
    saved, run = run_of_graph(
        path,
        None if graph is None else read_graph(graph).hash,
        {name: value for name, value in expected.items() if value is not None},
    )
    return run.environment(1, deformation="full"), saved.policy()
