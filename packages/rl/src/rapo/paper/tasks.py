"""The pieces that every experiment is made of: train, guard with a shield, evaluate.

A task is a value: its key says everything its result depends on, so results are the same however
tasks are scheduled, and what is there is not done again. Training leaves its folder under `work/`;
evaluations leave one small file each under `pieces/`, which is all that tables are made of and
may be packed into one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from rapo.agents.methods import method_named
from rapo.agents.resolve import EpisodeRun, open_episodes
from rapo.agents.run_config import RunConfig
from rapo.agents.saved_run import load_run, policy_of
from rapo.agents.train import train
from rapo.cascade.engine import Cascade
from rapo.cascade.greedy_policy import GreedyPolicy
from rapo.cascade.setting import ACTIONS
from rapo.graphs.fit import Fit
from rapo.paper.evaluation import shielded
from rapo.paper.noisy_harm import NoisyReportsEnv
from rapo.paper.piece_content import curves_of, episodes_of, shield_of, training_of
from rapo.paper.piece_folder import existing
from rapo.paper.pieces import write_piece
from rapo.paper.shields import make_shield
from rapo.paper.task import Task, Tell, digest, without_additions
from rapo.policies import ConstantPolicy
from rapo.rsd.runner import evaluate
from rapo_core.checks import UserError
from rapo_core.version import VERSION


@dataclass(frozen=True)
class Train:
    """Train a method; leaves `work/<key>/checkpoint.pt`."""

    config: RunConfig

    @property
    def key(self) -> str:
        """Name of the run and of its folder."""
        c = self.config
        name = f"{c.method}-n{c.nodes}-g{c.graph_seed}-s{c.seed}"
        return f"train-{name}-{digest(without_additions(named_values(c)))}"

    @property
    def needs(self) -> tuple[Task, ...]:
        """Tasks that must be done before."""
        return ()

    def checkpoint(self, root: Path) -> Path:
        """Where the policy is."""
        return root / "work" / self.key / "checkpoint.pt"

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        return (root / "work" / self.key / "summary.json").exists()

    def run(self, root: Path, tell: Tell) -> None:
        """Train, going on from an earlier checkpoint."""
        total = self.config.updates * self.config.ppo.rollout
        train(
            self.config,
            root / "work" / self.key,
            resume=True,
            report=lambda steps, means: tell(steps / total),
        )


@dataclass(frozen=True)
class Guard:
    """Shield-UM: tune the threshold of a shield around GE to RAPO's replay return."""

    ge: Train
    rapo: Train
    episodes: int = 20

    @property
    def key(self) -> str:
        """Name of the tuned shield and of its folder."""
        c = self.ge.config
        spec = [self.ge.key, self.rapo.key, self.episodes]
        return f"shield-n{c.nodes}-g{c.graph_seed}-{digest(spec)}"

    @property
    def config(self) -> RunConfig:
        """Of the policy inside."""
        return replace(self.ge.config, method="Shield-UM")

    @property
    def needs(self) -> tuple[Task, ...]:
        """Both policies."""
        return (self.ge, self.rapo)

    def checkpoint(self, root: Path) -> Path:
        """Where the shielded policy is."""
        return root / "work" / self.key / "checkpoint.pt"

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        return self.checkpoint(root).exists()

    def run(self, root: Path, tell: Tell) -> None:
        """Tune it."""
        make_shield(
            self.ge.checkpoint(root),
            root / "work" / self.key,
            match=self.rapo.checkpoint(root),
            episodes=self.episodes,
        )


@dataclass(frozen=True)
class Constant:
    """Always the same action: a policy that nothing has to be run for."""

    config: RunConfig
    """Graph, setting, regions and field constants of what it stands beside."""
    action: int

    @property
    def key(self) -> str:
        """Name of the policy; numbers of a training have no part in it."""
        c, whole = self.config, without_additions(named_values(self.config))
        parts = ("nodes", "graph_seed", "graph", "regions", "setting", "params", "fit")
        spec = [self.action, {name: whole[name] for name in parts if name in whole}]
        return f"constant-{ACTIONS[self.action]}-n{c.nodes}-g{c.graph_seed}-{digest(spec)}"


@dataclass(frozen=True)
class Greedy:
    """The action that serves most under the present fields, see `GreedyPolicy`."""

    config: RunConfig
    """Graph, setting, regions and field constants of what it stands beside."""

    @property
    def key(self) -> str:
        """Name of the policy, as a constant action's."""
        return "greedy" + Constant(self.config, 0).key.removeprefix(f"constant-{ACTIONS[0]}")


@dataclass(frozen=True)
class Evaluate:
    """RSD of a policy as a method, perhaps with changed fields; leaves `pieces/<key>.parquet`."""

    policy: Train | Guard | Constant | Greedy
    method: str
    """As what: the policy's own method, or one that evaluates it."""
    episodes: int = 20
    seed: int = 0
    coupled: bool = False
    params: tuple[tuple[str, float], ...] = ()
    """Changed constants of the fields."""
    options: tuple[tuple[str, str], ...] = ()
    """Changed options of the environment, such as deformation; `misattribute` is the share of the
    sensitive nodes whose harm is credited to a wrong region, `lost` and `spread` are those of
    `NoisyReportsEnv`."""
    threshold: float | None = None
    """Of a shield, instead of its own."""
    label: str = ""
    """What tables call it; default the method."""

    @property
    def spec(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        return {
            "policy": self.policy.key,
            "method": self.method,
            "episodes": self.episodes,
            "seed": self.seed,
            "coupled": self.coupled,
            "params": dict(self.params),
            "options": dict(self.options),
            "threshold": self.threshold,
        }

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.label or self.method

    @property
    def key(self) -> str:
        """Name of the piece."""
        c = self.policy.config
        return f"{self.name}-n{c.nodes}-g{c.graph_seed}-s{c.seed}-{digest(self.spec)}"

    @property
    def needs(self) -> tuple[Task, ...]:
        """The policy, unless it is there without training."""
        return () if isinstance(self.policy, Constant | Greedy) else (self.policy,)

    def piece(self, root: Path) -> Path:
        """Where the result is written to."""
        return root / "pieces" / f"{self.key}.parquet"

    def done(self, root: Path) -> bool:
        """Whether there is nothing left to do."""
        return existing(self.piece(root)).exists()

    def run(self, root: Path, tell: Tell) -> None:
        """Evaluate and write the piece at once, or not at all."""
        start = perf_counter()
        policy, run, folder = self._policy(root)
        config, env = run.config, run.evaluation(self.method)
        changed = replace(env.engine.params, **dict(self.params))
        options: dict[str, Any] = dict(self.options)
        share = options.pop("misattribute", None)
        if share is not None:
            options["harm_region_of"] = misattributed(env.engine, float(share), config.graph_seed)
        noise = {name: float(options.pop(name)) for name in ("lost", "spread") if name in options}
        env = env.like(1, params=changed, **options)
        if noise:
            env = NoisyReportsEnv(1, **noise, **env.options)
        result = evaluate(env, policy, self.episodes, self.seed, self.coupled)
        content = {
            "key": self.key,
            "spec": self.spec,
            "version": VERSION,
            "graph_hash": run.graph_hash,
            "seconds": round(perf_counter() - start, 2),
            "training": None if folder is None else training_of(folder / "summary.json"),
            "shield": None if folder is None else shield_of(policy, folder),
            "episodes": episodes_of(result),
            "curves": curves_of(result),
        }
        write_piece(self.piece(root), content)

    def _policy(self, root: Path) -> tuple[Any, EpisodeRun, Path | None]:
        """The policy as the method wants it, its config and the folder of its training."""
        row = method_named(self.method)
        if isinstance(self.policy, Constant | Greedy):
            if row.shield is not None or self.threshold is not None:
                raise UserError(f"no shield guards a constant action or greedy, got {self.spec}")
            if isinstance(self.policy, Constant):
                return ConstantPolicy(self.policy.action), open_episodes(self.policy.config), None
            return GreedyPolicy(), open_episodes(self.policy.config), None
        path = self.policy.checkpoint(root)
        content, config = load_run(path)
        run = open_episodes(config)
        return shielded(policy_of(content), row, run, self.threshold), run, path.parent


def named_values(config: RunConfig) -> dict[str, Any]:
    """The values of a training as the names of earlier results have them."""
    kwargs = config.env_kwargs
    fit, regions = kwargs.get("fit"), kwargs.get("regions")
    params = config.params if "params" in kwargs or kwargs.get("graph") is None else None
    return {
        "method": config.method, "nodes": kwargs.get("nodes", 250),
        "graph_seed": kwargs.get("graph_seed", 0), "graph": kwargs.get("graph"),
        "seed": config.seed, "steps": config.steps,
        "regions": list(regions) if isinstance(regions, tuple) else regions,
        "setting": config.setting.to_dict(),
        "params": None if params is None else params.to_dict(),
        "fit": fit.to_dict() if isinstance(fit, Fit) else fit, "ppo": asdict(config.ppo),
    }  # fmt: skip


def misattributed(engine: Cascade, share: float, seed: int) -> npt.NDArray[np.int32]:
    """Credit of harm, (n,), with a share of the sensitive nodes crediting a wrong live region.

    The nodes of a smaller share are among those of a larger one and err alike, so shares compare.

    Args:
        engine: its regions, graph and live regions.
        share: of the sensitive nodes, in [0, 1], rounded to whole nodes.
        seed: of the choice.
    """
    if not 0 <= share <= 1:
        raise UserError(f"the misattributed share must be in [0, 1], got {share}")
    live = engine.harm_regions
    if len(live) < 2:
        raise UserError(f"a wrong live region needs two of them, got {live.tolist()}")
    rng = np.random.default_rng([seed, 1])
    nodes = rng.permutation(np.flatnonzero(engine.graph.sensitive))
    own = np.searchsorted(live, engine.regions[nodes])
    wrong = live[(own + rng.integers(1, len(live), len(nodes))) % len(live)]
    count = round(share * len(nodes))
    credit = engine.regions.astype(np.int32)
    credit[nodes[:count]] = wrong[:count]
    return credit
