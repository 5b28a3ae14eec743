"""What `rapo watch` films, from its words: an environment of ours and a policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rapo.cascade.setting import ACTIONS
from rapo.envs.episodes import EpisodesVectorEnv
from rapo.envs.vector import GraphDiffusionVectorEnv
from rapo.graphs.load import read_graph
from rapo.platforms.entry import Entry
from rapo.platforms.vector import PlatformVectorEnv
from rapo.policies import ConstantPolicy, find_policy, is_run
from rapo.suite.domains import DOMAINS
from rapo.suite.policies import ScoredPolicy
from rapo_core.checks import UserError

GRAPH_ENV = "rapo/GraphDiffusion-v0"
BY_ENV = {domain.env: domain for domain in DOMAINS.values()}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Words that name an environment and a policy; None where a default stands."""

    env: str = GRAPH_ENV
    """Gymnasium id of a graph or of a platform of `rapo.platforms`."""
    nodes: int | None = None
    graph_seed: int | None = None
    graph: Path | None = None
    platform_seed: int | None = None
    action: str | None = None
    """Name or number of a constant action."""
    policy: str | None = None
    """A run, an SB3 .zip, `module:name`, and on graphs also `scripted`."""

    def find(self) -> tuple[EpisodesVectorEnv, Any]:
        """The environment, under the deformed kernel, and the policy.

        Raises:
            ValueError: the words do not fit together, or name nothing.
        """
        domain = BY_ENV.get(self.env)
        if domain is None:
            raise UserError(f"no film of {self.env!r}; --env is one of {', '.join(BY_ENV)}")
        if self.action is not None and self.policy is not None:
            raise UserError(f"give --action {self.action} or --policy {self.policy}, not both")
        self._refuse_idle()
        if self.env == GRAPH_ENV and self.policy is not None and is_run(self.policy):
            return self._trained()
        env = self._made(domain)
        if self.policy is None:
            return env, self._constant(domain, env)
        if self.env == GRAPH_ENV and self.policy in (*ACTIONS, "scripted"):
            return env, find_policy(self.policy)
        scored = ScoredPolicy.named(self.policy)
        observe = scored.check(domain, env)
        seen = env if observe == "x" else env.like(1, observe=observe)
        return seen, scored.load(domain, env)[0]

    def _refuse_idle(self) -> None:
        """Options that another environment has."""
        if self.graph is not None and (self.nodes is not None or self.graph_seed is not None):
            raise UserError(
                f"give either --graph {self.graph} or --nodes and --graph-seed, not both"
            )
        on_graph = self.env == GRAPH_ENV
        for name, value, whose in (
            ("--nodes", self.nodes, "graphs"),
            ("--graph-seed", self.graph_seed, "graphs"),
            ("--graph", self.graph, "graphs"),
            ("--platform-seed", self.platform_seed, "platforms"),
        ):
            if value is not None and on_graph != (whose == "graphs"):
                raise UserError(f"{name} {value} is for {whose}, not for --env {self.env}")

    def _made(self, domain: Entry) -> EpisodesVectorEnv:
        if domain.env != GRAPH_ENV:
            seed = 0 if self.platform_seed is None else self.platform_seed
            return PlatformVectorEnv(1, platform=domain.made_by, seed=seed)
        if self.graph is not None:
            return GraphDiffusionVectorEnv(1, graph=read_graph(self.graph))
        return GraphDiffusionVectorEnv(1, nodes=self.nodes, graph_seed=self.graph_seed)

    def _trained(self) -> tuple[EpisodesVectorEnv, Any]:
        """A checkpoint on the graph that it was trained on."""
        assert self.policy is not None
        from rapo.paper.evaluation import run_of_graph

        names = {"nodes": self.nodes, "graph_seed": self.graph_seed}
        saved, run = run_of_graph(
            self.policy,
            None if self.graph is None else read_graph(self.graph).hash,
            {name: value for name, value in names.items() if value is not None},
        )
        return run.environment(1, deformation="full"), saved.policy()

    def _constant(self, domain: Entry, env: EpisodesVectorEnv) -> ConstantPolicy:
        space: Any = env.single_action_space
        count, words = int(space.n), self.action
        if words is None:
            return ConstantPolicy(domain.action, count)
        if self.env == GRAPH_ENV and words in ACTIONS:
            return ConstantPolicy(ACTIONS.index(words), count)
        if not words.isdecimal() or int(words) >= count:
            named = f", or {', '.join(ACTIONS)}" if self.env == GRAPH_ENV else ""
            raise UserError(f"--action must be in 0..{count - 1}{named}, got {words!r}")
        return ConstantPolicy(int(words), count)
